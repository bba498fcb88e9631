"""What chance and schedules decide at a step: on the host, as functions of (seed, step) alone."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lddr.config import Config
from lddr.data.dataset import Dataset, stream
from lddr.objectives.adversary import Adversary

Numbers = dict[str, Tensor]


def torch_stream(seed: int, purpose: str, *position: int) -> torch.Generator:
    """`stream` for torch: a generator that depends on seed, purpose and position alone."""
    return torch.Generator().manual_seed(int(stream(seed, purpose, *position).integers(2**63)))


@dataclass(frozen=True)
class Draws:
    """The draws of a run, step by step."""

    config: Config
    dataset: Dataset
    adversary: Adversary | None
    by_number: bool  # the device has all images: their numbers will do
    labelled: int  # images that have labels

    def at(self, step: int) -> Numbers:
        """Pictures as bytes or by number, noise, schedules; what objective and adversary want; labelled images."""
        training, latent = self.config.training, self.config.latent
        seed, size = training.seed, training.batch_size
        shape = (size, latent.num_latents)
        numbers = {
            "pictures": self._pictures(step),
            "noise": latent.noise(size, torch_stream(seed, "noise", step)),
            "schedules": torch.tensor(self._schedules(step), dtype=torch.float64),
        }
        drawn = self.config.objective.draw(shape, torch_stream(seed, "objective", step))
        if drawn is not None:
            numbers["objective"] = drawn
        if self.adversary is not None:
            numbers["permutation"] = self.adversary.draw(shape, torch_stream(seed, "permutation", step))
        if self.labelled:
            chosen = stream(seed, "labelled batch", step).integers(self.labelled, size=size)
            numbers["labelled"] = torch.from_numpy(chosen)
        return numbers

    def _pictures(self, step: int) -> Tensor:
        training = self.config.training
        generator = stream(training.seed, "batch", step)
        if self.by_number:
            return torch.from_numpy(self.dataset.space.sample(generator, training.batch_size))
        return torch.from_numpy(np.require(self.dataset.draw(generator, training.batch_size), requirements=["C", "W"]))

    def _schedules(self, step: int) -> tuple[float, float, float]:
        """Scale of the noise, learning rate, and what the objective changes."""
        config, steps = self.config, self.config.training.steps
        scale, rate = config.latent.noise_scale(step, steps), config.training.learning_rate_at(step)
        return scale, rate, config.objective.schedule(step)
