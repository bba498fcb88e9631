"""All that a training step takes besides the weights."""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor

Number = float | Tensor  # a float on the host, or a tensor without dimensions on an accelerator


class Labelled(NamedTuple):
    """Images, and what their labels ask of the latents."""

    images: Tensor  # (batch, channels, height, width)
    targets: Tensor  # (batch, factors)
    known: Tensor  # (batch, factors): whether the image has this label; its target means nothing otherwise


@dataclass(frozen=True)
class Inputs:
    """What a step sees, all of it where the weights are; nothing else tells one step from another."""

    images: Tensor  # (batch, channels, height, width) in [0, 1]
    noise: Tensor  # of the latents
    drawn: Tensor | None  # by the objective
    challenge: Tensor | None  # drawn by the adversary
    labelled: Labelled | None
    noise_scale: Number
    learning_rate: Number
    schedule: Number  # of the objective
