"""Batches on their way to the device: each a function of (seed, step), wherever the images are kept."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lddr.config import Config
from lddr.data.dataset import Dataset, as_floats, stream
from lddr.data.factors import Indices

SHARE = 0.5  # of a device's free memory that images may take
CHUNK = 4096


def as_tensor(floats: np.ndarray, device: torch.device) -> Tensor:
    """(batch, height, width, channels) → (batch, channels, height, width), channels last in memory."""
    images = torch.from_numpy(floats).permute(0, 3, 1, 2)
    return images.contiguous(memory_format=torch.channels_last).to(device, non_blocking=True)


class Feed:
    """Training images by step, and labelled ones by number.

    On a device of its own memory the whole dataset is kept there when it fits and when an image's number is all there
    is to it; the batches are the same either way.
    """

    def __init__(
        self, dataset: Dataset, seed: int, batch_size: int, device: torch.device, keep: bool | None = None
    ) -> None:
        self.dataset, self.seed, self.batch_size, self.device = dataset, seed, batch_size, device
        self._kept = self._all_images() if (self._fits() if keep is None else keep) else None

    def batch(self, step: int) -> Tensor:
        """Training images in [0, 1]: (batch, channels, height, width)."""
        if self._kept is None:
            return as_tensor(self.dataset.batch(self.seed, step, self.batch_size), self.device)
        indices = self.dataset.space.sample(stream(self.seed, "batch", step), self.batch_size)
        return self._kept[torch.from_numpy(indices).to(self.device)].float().mul_(1 / 255).permute(0, 3, 1, 2)

    def _fits(self) -> bool:
        if self.device.type != "cuda" or not self.dataset.is_fixed:
            return False
        free, _ = torch.cuda.mem_get_info(self.device)
        return len(self.dataset) * int(np.prod(self.dataset.image_shape)) < SHARE * free

    def _all_images(self) -> Tensor:
        kept = torch.empty((len(self.dataset), *self.dataset.image_shape), dtype=torch.uint8, device=self.device)
        for first in range(0, len(self.dataset), CHUNK):
            numbers = np.arange(first, min(first + CHUNK, len(self.dataset)))
            kept[first : first + CHUNK] = torch.from_numpy(np.ascontiguousarray(self.dataset.images(numbers)))
        return kept


@dataclass(frozen=True)
class Labels:
    """The labelled images of a run: most to train with, the rest to validate with."""

    train: "LabelledFeed"
    validation: "LabelledFeed"


def feeds(config: Config, dataset: Dataset, device: torch.device) -> tuple[Feed, Labels | None]:
    """What a run is fed with: its images, and the labelled ones of a supervised run."""
    seed, size = config.training.seed, config.training.batch_size
    parts = config.supervision.split(dataset) if config.supervision else ()
    labels = [LabelledFeed(dataset, part, seed, size, device) for part in parts]
    return Feed(dataset, seed, size, device), Labels(*labels) if labels else None


class LabelledFeed:
    """The labelled images and their factors: a batch by step, drawn anew from the same few images."""

    def __init__(self, dataset: Dataset, indices: Indices, seed: int, batch_size: int, device: torch.device) -> None:
        self.seed, self.batch_size = seed, batch_size
        self.factors = dataset.space.factors_of(indices)
        self.images = as_tensor(as_floats(dataset.images(indices, stream(seed, "labelled images"))), device)

    def batch(self, step: int) -> tuple[Tensor, Indices]:
        chosen = stream(self.seed, "labelled batch", step).integers(len(self.factors), size=self.batch_size)
        return self.images[torch.from_numpy(chosen).to(self.images.device)], self.factors[chosen]
