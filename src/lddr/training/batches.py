"""The batch of every training step: images, noise, schedules and labels, as a function of (seed, step) alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from lddr.data.correlated import Correlated
from lddr.data.dataset import Dataset, stream
from lddr.data.factors import UNKNOWN, Indices
from lddr.data.pairs import Pairs
from lddr.errors import UserError

if TYPE_CHECKING:
    from lddr.training.trainer import Trainer

Number = float | Tensor  # a tensor without dimensions on an accelerator
Draws = dict[str, Tensor]  # the random numbers, schedules and pictures of a step, by name


class Labelled(NamedTuple):
    """Labelled images, and the targets of their latents."""

    images: Tensor  # (batch, channels, height, width)
    targets: Tensor  # (batch, factors)
    known: Tensor  # (batch, factors): whether the image has this label; its target is meaningless otherwise


class Batch(NamedTuple):
    """Everything that a training step depends on besides the weights, on their device."""

    images: Tensor  # (batch, channels, height, width) in [0, 1]
    noise: Tensor  # of the latents
    random: Tensor | None  # numbers that the objective draws
    labelled: Labelled | None
    noise_scale: Number
    learning_rate: Number
    schedule: Number  # of the objective


class Batches:
    """The batches of a run by step, and labelled images to validate with."""

    def __init__(self, trainer: Trainer, dataset: Dataset) -> None:
        self.trainer, self.dataset, self.device = trainer, dataset, trainer.device
        self.sampler = self._sampler()
        self.labelled, self.validation = self._labels()  # the images of the first in bytes: there may be many

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, on the device."""
        draws = self.draw(step)
        scale, rate, schedule = draws["schedules"].tolist()
        return self._batch(as_pixels(draws["pictures"]), draws, scale, rate, schedule)

    def draw(self, step: int) -> Draws:
        """Return images in bytes, noise, schedules, the objective's random numbers, and indices of labelled images."""
        config, latent, objective = self.trainer.config, self.trainer.vae.latent, self.trainer.objective
        seed, size, steps = config.training.seed, config.training.batch_size, config.training.steps
        schedules = (
            latent.noise_scale(step, steps),
            config.training.learning_rate_at(step),
            objective.schedule(step),
        )
        draws = {
            "pictures": self.pictures(stream(seed, "batch", step), size),
            "noise": latent.noise(size, torch_stream(seed, "noise", step)),
            "schedules": torch.tensor(schedules, dtype=torch.float64),
        }
        random = objective.draw(latent, size, torch_stream(seed, objective.random_stream, step))
        if random is not None:
            draws["random"] = random
        if self.labelled is not None:
            count = len(self.labelled.targets)
            draws["labelled"] = torch.from_numpy(stream(seed, "labelled batch", step).integers(count, size=size))
        return draws

    def pictures(self, generator: np.random.Generator, size: int) -> Tensor:
        """Return random images of the dataset in bytes, (batch, height, width, channels)."""
        if self.sampler is None:
            images = self.dataset.draw(generator, size)
        else:
            images = self.dataset.images(self.sampler.sample(generator, size), generator)
        return torch.from_numpy(np.require(images, requirements=["C", "W"]))

    def _batch(self, images: Tensor, draws: Draws, scale: Number, rate: Number, schedule: Number) -> Batch:
        labelled = self.labelled and Labelled(*(each[draws["labelled"]] for each in self.labelled))
        labelled = labelled and labelled._replace(images=as_pixels(labelled.images))
        return Batch(images, draws["noise"], draws.get("random"), labelled, scale, rate, schedule)

    def _sampler(self) -> Pairs | Correlated | None:
        """Return what draws the images of a batch: pairs, correlated factors, or None for all images alike."""
        pairs, training = self.trainer.objective.pairs, self.trainer.config.training
        is_correlated = training.correlate != "none"
        if pairs is None:
            return Correlated(self.dataset.space, training.correlate) if is_correlated else None
        if is_correlated:
            raise UserError("pairs of images cannot have correlated factors; leave correlate out")
        if training.batch_size % 2:
            size = training.batch_size
            raise UserError(f"a batch of pairs has an even number of images, not {size}; change batch_size")
        return Pairs(self.dataset, pairs)

    def _labels(self) -> tuple[Labelled | None, Labelled | None]:
        """Return the labelled images of a supervised run: most to train with, the rest to validate with."""
        supervision = self.trainer.config.supervision
        if supervision is None:
            return None, None
        train, validation = (self._with_targets(images, supervision.loss) for images in supervision.split(self.dataset))
        return train, validation._replace(images=as_pixels(validation.images))

    def _with_targets(self, indices: Indices, loss: str) -> Labelled:
        """Return images in bytes, (images, height, width, channels), with targets."""
        config, space = self.trainer.config, self.dataset.space
        images = self.dataset.images(indices, stream(config.training.seed, "labelled images"))
        factors = space.factors_of(indices)
        known = torch.from_numpy(factors != UNKNOWN)
        targets = self.trainer.vae.latent.targets(loss, np.where(factors == UNKNOWN, 0, factors), space)
        pictures = torch.from_numpy(np.require(images, requirements=["C", "W"]))
        return Labelled(pictures.to(self.device), targets.to(self.device), known.to(self.device))


def torch_stream(seed: int, purpose: str, *position: int) -> torch.Generator:
    """Return a torch generator that depends on seed, purpose and position alone: `stream` for torch."""
    return torch.Generator().manual_seed(int(stream(seed, purpose, *position).integers(2**63)))


def as_tensor(floats: np.ndarray, device: torch.device) -> Tensor:
    """Return (batch, channels, height, width) of (batch, height, width, channels), channels last in memory."""
    images = torch.from_numpy(floats).permute(0, 3, 1, 2)
    return images.contiguous(memory_format=torch.channels_last).to(device, non_blocking=True)


def as_pixels(pictures: Tensor) -> Tensor:
    """Return what `as_tensor` does, with values in [0, 1], of bytes (batch, height, width, channels)."""
    floats = pictures.float().mul_(1 / 255) if pictures.device.type == "cpu" else pictures * (1 / 255)  # one launch
    return floats.permute(0, 3, 1, 2)
