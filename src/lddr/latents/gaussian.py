"""Gaussian latents: diagonal normal posteriors, a standard normal prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lddr import terms
from lddr.latents.family import Latent, LatentFamily, latents
from lddr.latents.targets import normalised
from lddr.lazy import LazyModule

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.data.factors import FactorSpace, Indices
    from lddr.networks.latent_layer import LatentLayer
else:
    torch = LazyModule("torch")

TRAVERSAL = 10  # values, from two standard deviations below the prior's mean to two above


@latents.register("gaussian")
@dataclass(frozen=True)
class Gaussian(LatentFamily):
    """q(z|x) = N(μ(x), σ²(x)), p(z) = N(0, 1), for each latent."""

    title = "Gaussian"
    supervisions = ("bce", "l2")
    outputs_per_latent = 2  # mean and log variance
    prior_variance = 1.0

    def noise(self, batch: int, generator: torch.Generator) -> Tensor:
        return torch.randn(batch, self.num_latents, generator=generator)

    def latent(
        self, layer: LatentLayer, outputs: Tensor, noise: Tensor | None, scale: float | Tensor, hard: bool
    ) -> Latent:
        mean, log_variance = outputs.unbind(2)
        z = mean if noise is None else mean + scale * noise * torch.exp(log_variance / 2)
        variance = log_variance.exp()  # one operation; made later, gradients would be added in another order
        return Latent(z, mean, lambda: variance, terms.gaussian_kl(mean, log_variance), outputs, z)

    def cross_log_density(self, layer: LatentLayer, latent: Latent) -> Tensor:
        return terms.gaussian_cross_log_density(latent.z, *latent.parameters.unbind(2))

    def posterior(self, latent: Latent) -> Tensor:
        """Mean and variance."""
        return torch.stack([latent.mean, latent.variance], dim=2)

    def values(self, layer: LatentLayer) -> Tensor:
        return torch.linspace(-2, 2, TRAVERSAL).expand(self.num_latents, -1)

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        return normalised(factors, space)

    def errors(self, loss: str, latent: Latent, targets: Tensor) -> Tensor:
        """The first latents' means against labels in [0, 1]: BCE of their sigmoid, or squared error."""
        predicted = latent.mean[:, : targets.shape[1]]
        if loss == "bce":
            return torch.nn.functional.binary_cross_entropy_with_logits(predicted, targets, reduction="none")
        return (predicted - targets) ** 2

    def guess(self, loss: str, seen: Tensor, unseen: Tensor) -> Tensor:
        """Of the mean label."""
        mean = seen.mean().expand_as(unseen)
        if loss == "bce":
            return torch.nn.functional.binary_cross_entropy(mean, unseen, reduction="none")
        return (mean - unseen) ** 2
