"""Gaussian and Laplace likelihoods: the decoder gives the location of every pixel, and all pixels share one scale."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from torch import Tensor, nn

from lddr.likelihoods import likelihoods
from lddr.likelihoods.likelihood import Likelihood
from lddr.settings import Setting

SMALLEST_SCALE = 1e-3  # a learned scale is at least about half a step of 256 grey levels


class LocationScale(Likelihood):
    """A location for each pixel, and one scale: fixed, or learned with the networks (σ-VAE, Rybkin et al. 2021)."""

    def __init__(
        self,
        scale: Annotated[float, Setting("Scale of every pixel, or where a learned one starts.", above=0)] = 0.1,
        learn_scale: Annotated[bool, Setting("Train the scale with the networks.")] = True,
    ) -> None:
        super().__init__()
        log_scale = torch.tensor(math.log(scale))
        if learn_scale:
            self.log_scale = nn.Parameter(log_scale)
        else:
            self.register_buffer("log_scale", log_scale, persistent=False)

    @property
    def scale(self) -> Tensor:
        return self.log_scale.exp().clamp(min=SMALLEST_SCALE)

    def mean(self, outputs: Tensor) -> Tensor:
        return outputs.clamp(0, 1)

    def outputs_of(self, pixels: Tensor) -> Tensor:
        return pixels


@likelihoods.register("gaussian")
class GaussianLikelihood(LocationScale):
    """-log p = ½ ((x - μ) / σ)² + log σ + ½ log 2π."""

    title = "Gaussian"

    def pixels(self, outputs: Tensor, images: Tensor) -> Tensor:
        scale = self.scale
        return 0.5 * ((images - outputs) / scale).square() + scale.log() + 0.5 * math.log(2 * math.pi)


@likelihoods.register("laplace")
class LaplaceLikelihood(LocationScale):
    """-log p = |x - μ| / b + log 2b."""

    title = "Laplace"

    def pixels(self, outputs: Tensor, images: Tensor) -> Tensor:
        scale = self.scale
        return (images - outputs).abs() / scale + (2 * scale).log()
