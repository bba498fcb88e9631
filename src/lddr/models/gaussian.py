"""Gaussian latents: diagonal normal posteriors, a standard normal prior."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lddr.models.latent import Latent, LatentFamily, latents
from lddr.objectives.terms import gaussian_cross_log_density, gaussian_kl


@latents.register("gaussian")
@dataclass(frozen=True)
class Gaussian:
    """Settings of Gaussian latents."""

    num_latents: int = 10

    def build(self, active: Tensor | None = None) -> "GaussianLatent":
        return GaussianLatent(self)


class GaussianLatent(LatentFamily):
    """q(z|x) = N(μ(x), σ²(x)), p(z) = N(0, 1), for each latent."""

    outputs_per_latent = 2
    prior_variance = 1.0

    def __init__(self, settings: Gaussian) -> None:
        super().__init__()
        self.num_latents = settings.num_latents

    def noise(self, batch: int, generator: torch.Generator) -> Tensor:
        return torch.randn(batch, self.num_latents, generator=generator)

    def noise_scale(self, step: int, steps: int) -> float:
        return 1.0

    def forward(self, outputs: Tensor, noise: Tensor | None = None, scale: float = 0.0, hard: bool = False) -> Latent:
        parameters = outputs.float().unflatten(1, (self.num_latents, 2))
        mean, log_variance = parameters.unbind(2)
        z = mean if noise is None else mean + scale * noise * torch.exp(log_variance / 2)
        return Latent(z, mean, log_variance.exp(), gaussian_kl(mean, log_variance), parameters, z)

    def cross_log_density(self, latent: Latent) -> Tensor:
        return gaussian_cross_log_density(latent.z, *latent.parameters.unbind(2))
