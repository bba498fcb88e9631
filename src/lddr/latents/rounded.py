"""Latents that are rounded and not drawn: the encoder gives a number, and the nearest of a few values is taken."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lddr import terms
from lddr.latents.family import Latent, LatentFamily
from lddr.latents.targets import normalised
from lddr.lazy import LazyModule
from lddr.settings import setting

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.data.factors import FactorSpace, Indices
    from lddr.networks.latent_layer import LatentLayer
else:
    torch = LazyModule("torch")


@dataclass(frozen=True)
class Rounded(LatentFamily):
    """z is the value nearest to the code c, of two the lower one, with the gradient of c; soft, z is c itself.

    The posterior is sure of one value: its KL from the uniform prior over v values is log v for every image, which has
    no gradient, and there are no densities to compare.
    """

    is_discrete = True
    has_densities = False
    supervisions = ("l2",)
    outputs_per_latent = 1
    rounds_samples = True

    low: ClassVar[float]  # the first of the values as they begin
    high: ClassVar[float]  # the last
    num_categories: int = setting(12, "How many categories a latent has.", at_least=2)

    @abstractmethod
    def code(self, outputs: Tensor) -> Tensor:
        """What is rounded, (batch, latents), from the encoder's outputs of this shape."""

    @property
    def prior_variance(self) -> float:
        return terms.positions_variance(self.low, self.high, self.num_categories)

    def noise(self, batch: int, generator: torch.Generator) -> Tensor:
        """None."""
        return torch.empty(batch, 0)

    def latent(
        self, layer: LatentLayer, outputs: Tensor, noise: Tensor | None, scale: float | Tensor, hard: bool
    ) -> Latent:
        code, values = self.code(outputs[..., 0]), self.values(layer)
        chosen = terms.nearest(code, values)
        rounded = (chosen * values).sum(-1)
        mean = terms.passed_through(rounded, code)
        kl = torch.full_like(code, math.log(self.num_categories), requires_grad=False)
        parameters = torch.stack([code, rounded], dim=2)
        return Latent(mean if hard else code, mean, lambda: torch.zeros_like(code), kl, parameters, chosen, code)

    def posterior(self, latent: Latent) -> Tensor:
        """1 for the value that is taken, 0 for the others."""
        return latent.sample

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        return self.low + (self.high - self.low) * normalised(factors, space)

    def errors(self, loss: str, latent: Latent, targets: Tensor) -> Tensor:
        """Squared error of the first latents' codes, before they are rounded, against places from low to high."""
        code = latent.parameters[:, : targets.shape[1], 0]
        return (code - targets).square()

    def guess(self, loss: str, seen: Tensor, unseen: Tensor) -> Tensor:
        """Of the mean place."""
        return (seen.mean() - unseen).square()
