"""Supervision by a few labels: latent i is tied to factor i (paper, appendix "Semi-supervised training")."""

from dataclasses import dataclass
from math import ceil
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from lddr.data.dataset import Dataset, stream
from lddr.data.factors import FactorSpace, Indices
from lddr.errors import UserError
from lddr.models.latent import Latent

Loss = Literal["bce", "l2", "cross-entropy", "masked"]
FAMILY_OF = {"bce": "gaussian", "l2": "gaussian", "cross-entropy": "categorical", "masked": "categorical"}


@dataclass(frozen=True)
class Supervision:
    """Settings: which loss R_s on the labelled images, how many of them, and its weight ω."""

    loss: Loss
    labels: int = 100
    omega: float = 1.0
    label_seed: int = 0
    validation_share: float = 0.1

    def check(self, latent: str, num_latents: int, dataset: Dataset) -> None:
        """Refuse what cannot be: a loss of the other family, more factors than latents, no factors at all."""
        if FAMILY_OF.get(self.loss) != latent:
            fitting = ", ".join(loss for loss in get_args(Loss) if FAMILY_OF[loss] == latent)
            raise UserError(f"supervision {self.loss!r} is not for {latent} latents; choose one of: {fitting}")
        factors = len(dataset.space.factors)
        if not factors:
            raise UserError(f"{dataset.name} has no factors to supervise with; give factors, or leave supervision out")
        if factors > num_latents:
            raise UserError(f"{dataset.name} has {factors} factors, more than the {num_latents} latents to tie them to")
        if not 2 <= self.labels <= 10**6:
            raise UserError(f"the number of labelled images must be at least 2, not {self.labels}")

    def split(self, dataset: Dataset) -> tuple[Indices, Indices]:
        """The labelled images, drawn once by their own seed: training and validation."""
        drawn = dataset.space.sample(stream(self.label_seed, "labels"), self.labels)
        train = ceil((1 - self.validation_share) * self.labels)
        return drawn[:train], drawn[train:]

    def risk(self, latent: Latent, factors: Indices, space: FactorSpace) -> Tensor:
        """R_s of labelled images: summed over factors, mean over images."""
        device = latent.mean.device
        if FAMILY_OF[self.loss] == "gaussian":
            return gaussian_risk(latent.mean, normalised(factors, space).to(device), self.loss)
        return categorical_risk(latent.parameters, bins(factors, space, latent.parameters.shape[2]).to(device))


def normalised(factors: Indices, space: FactorSpace) -> Tensor:
    """Factor values as numbers from 0 to 1: (images, factors)."""
    return torch.from_numpy((factors / np.maximum(np.array(space.sizes) - 1, 1)).astype(np.float32))


def bins(factors: Indices, space: FactorSpace, num_categories: int) -> Tensor:
    """The category of each factor value: value j of m' goes to round(j · (m-1)/(m'-1)): (images, factors)."""
    steps = (num_categories - 1) / np.maximum(np.array(space.sizes) - 1, 1)
    return torch.from_numpy(np.floor(factors * steps + 0.5).astype(np.int64))


def active_categories(space: FactorSpace, num_latents: int, num_categories: int) -> Tensor:
    """J_i for the latents of factors with fewer values than categories; all categories for every other latent."""
    active = torch.ones(num_latents, num_categories, dtype=torch.bool)
    for latent, size in enumerate(space.sizes):
        if size < num_categories:
            values = np.arange(size)[:, np.newaxis].repeat(len(space.sizes), axis=1)
            active[latent] = False
            active[latent, bins(values, space, num_categories)[:, latent]] = True
    return active


def gaussian_risk(mean: Tensor, targets: Tensor, loss: str) -> Tensor:
    """The first latents' means against targets in [0, 1]: BCE of their sigmoid, or squared error."""
    predicted = mean[:, : targets.shape[1]]
    if loss == "bce":
        errors = F.binary_cross_entropy_with_logits(predicted, targets, reduction="none")
    else:
        errors = (predicted - targets) ** 2
    return errors.sum(1).mean()


def categorical_risk(log_probabilities: Tensor, categories: Tensor) -> Tensor:
    """Cross-entropy of the first latents: -log q(the right category)."""
    first = log_probabilities[:, : categories.shape[1]]  # (images, factors, categories)
    return -first.gather(2, categories.unsqueeze(2)).squeeze(2).sum(1).mean()
