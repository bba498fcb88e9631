"""What a learner is fed with, step by step: each a function of (seed, step), wherever the images are kept."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from lddr.data.dataset import Dataset, stream
from lddr.data.factors import UNKNOWN, Indices
from lddr.training.blocks import Blocks
from lddr.training.draws import Draws
from lddr.training.inputs import Inputs, Labelled

if TYPE_CHECKING:
    from lddr.training.learner import Learner

SHARE = 0.5  # of a device's free memory that images may take
CHUNK = 4096


def as_tensor(floats: np.ndarray, device: torch.device) -> Tensor:
    """(batch, height, width, channels) → (batch, channels, height, width), channels last in memory."""
    images = torch.from_numpy(floats).permute(0, 3, 1, 2)
    return images.contiguous(memory_format=torch.channels_last).to(device, non_blocking=True)


def _as_floats(pictures: Tensor) -> Tensor:
    """Bytes (batch, height, width, channels) → as `as_tensor`, with values in [0, 1]: the same bits either way."""
    floats = pictures.float().mul_(1 / 255) if pictures.device.type == "cpu" else pictures * (1 / 255)  # one launch
    return floats.permute(0, 3, 1, 2)


class Feed:
    """The inputs of every step, and labelled images to validate with.

    On a device of its own memory the whole dataset is kept there when it fits and when an image's number is all there
    is to it, and what is drawn comes in blocks of many steps; the batches are the same either way.
    """

    def __init__(
        self, learner: "Learner", dataset: Dataset, keep: bool | None = None, ahead: bool | None = None
    ) -> None:
        self._learner, self.dataset, self.device = learner, dataset, learner.device
        self._labelled, self.validation = self._labels()  # the images of the first in bytes: there may be many
        self._kept = self._all_images() if (self._fits() if keep is None else keep) else None
        labelled = 0 if self._labelled is None else len(self._labelled.targets)
        draws = Draws(learner.config, dataset, learner.adversary, self._kept is not None, labelled)
        is_ahead = self.device.type != "cpu" if ahead is None else ahead
        self._source = Blocks(draws, self.device) if is_ahead else draws

    def inputs(self, step: int) -> Inputs:
        numbers = self._source.at(step)
        pictures = numbers["pictures"] if self._kept is None else self._kept[numbers["pictures"]]
        schedules = numbers["schedules"]  # doubles where they need not travel
        scale, rate, other = schedules.tolist() if schedules.dtype == torch.float64 else schedules.unbind()
        chosen = self._labelled and Labelled(*(each[numbers["labelled"]] for each in self._labelled))
        labelled = chosen and chosen._replace(images=_as_floats(chosen.images))
        drawn, challenge = numbers.get("objective"), numbers.get("permutation")
        return Inputs(_as_floats(pictures), numbers["noise"], drawn, challenge, labelled, scale, rate, other)

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

    def _labels(self) -> tuple[Labelled | None, Labelled | None]:
        """The labelled images of a supervised run: most to train with, the rest to validate with."""
        supervision = self._learner.config.supervision
        if supervision is None:
            return None, None
        train, validation = (self._with_targets(images, supervision.loss) for images in supervision.split(self.dataset))
        return train, validation._replace(images=_as_floats(validation.images))

    def _with_targets(self, indices: Indices, loss: str) -> Labelled:
        """Images in bytes, (images, height, width, channels), with targets."""
        config, space = self._learner.config, self.dataset.space
        images = self.dataset.images(indices, stream(config.training.seed, "labelled images"))
        factors = space.factors_of(indices)
        known = torch.from_numpy(factors != UNKNOWN)
        targets = config.latent.targets(loss, np.where(factors == UNKNOWN, 0, factors), space)
        pictures = torch.from_numpy(np.require(images, requirements=["C", "W"]))
        return Labelled(pictures.to(self.device), targets.to(self.device), known.to(self.device))
