"""Gaussian latents: diagonal normal posteriors, a standard normal prior."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy, binary_cross_entropy_with_logits

from lddr import losses
from lddr.data.factors import FactorSpace, Indices
from lddr.latents.latent import Latent, NumLatents, Posterior, Sample, Scale, normalised
from lddr.parts import latents

TRAVERSAL = 10  # values, from two standard deviations below the prior's mean to two above


@latents.register("gaussian")
class Gaussian(Latent):
    """q(z|x) = N(μ(x), σ²(x)), p(z) = N(0, 1), for each latent; the encoder gives μ and log σ² of each in turn.

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.Gaussian(num_latents=2)
    >>> posterior = latent(torch.tensor([[0.5, 0.0, -1.0, 0.0]]))
    >>> posterior.mean.tolist(), posterior.variance.tolist(), posterior.kl.tolist()
    ([[0.5, -1.0]], [[1.0, 1.0]], [[0.125, 0.5]])
    """

    title = "Gaussian"
    supervisions = ("bce", "l2")
    prior_variance = 1.0
    can_share = True

    def __init__(self, num_latents: NumLatents = 10) -> None:
        super().__init__(num_latents, parameters_per_latent=2)  # mean and log variance

    def posterior(self, parameters: Tensor) -> GaussianPosterior:
        return GaussianPosterior(parameters)

    def noise(self, batch: int, generator: torch.Generator | None = None, device: torch.device | None = None) -> Tensor:
        return torch.randn(batch, self.num_latents, generator=generator, device=device)

    def values(self) -> Tensor:
        return torch.linspace(-2, 2, TRAVERSAL).expand(self.num_latents, -1)

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        return normalised(factors, space)

    def errors(self, loss: str, posterior: Posterior, targets: Tensor) -> Tensor:
        """Return the errors of the first latents' means against labels in [0, 1]: BCE of their sigmoid, or squares."""
        predicted = posterior.mean[:, : targets.shape[1]]
        if loss == "bce":
            return binary_cross_entropy_with_logits(predicted, targets, reduction="none")
        return (predicted - targets) ** 2

    def guess(self, loss: str, seen: Tensor, unseen: Tensor) -> Tensor:
        """Return the errors of the mean label."""
        mean = seen.mean().expand_as(unseen)
        if loss == "bce":
            return binary_cross_entropy(mean, unseen, reduction="none")
        return (mean - unseen) ** 2


class GaussianPosterior(Posterior):
    """N(μ, σ²) of each latent."""

    def __init__(self, outputs: Tensor) -> None:
        self._outputs = outputs  # (batch, latents, 2)
        self.mean, self.log_variance = outputs.unbind(2)

    @cached_property
    def variance(self) -> Tensor:
        return self.log_variance.exp()

    @cached_property
    def kl(self) -> Tensor:
        return losses.gaussian_kl(self.mean, self.log_variance)

    @property
    def parameters(self) -> Tensor:
        """Mean and variance: (batch, latents, 2)."""
        return torch.stack([self.mean, self.variance], dim=2)

    def sample(self, noise: Tensor | None = None, scale: Scale = 1.0, hard: bool | None = None) -> Sample:
        noise = torch.randn_like(self.mean) if noise is None else noise
        z = self.mean + scale * noise * torch.exp(self.log_variance / 2)
        _ = self.variance, self.kl  # now: autograd adds gradients in the order in which their terms were computed
        return Sample(z)

    def expected(self, hard: bool | None = None) -> Sample:
        return Sample(self.mean)

    def pair_kl(self) -> Tensor:
        (mean, other_mean), (log_variance, other) = self.mean.chunk(2), self.log_variance.chunk(2)
        difference = log_variance - other
        return 0.5 * ((mean - other_mean).square() / other.exp() + difference.exp() - 1 - difference)

    def pooled(self, is_shared: Tensor, multiply: bool = False) -> GaussianPosterior:
        means, log_variances = torch.stack(self.mean.chunk(2)), torch.stack(self.log_variance.chunk(2))
        if multiply:
            precisions = (-log_variances).exp()
            mean, log_variance = (means * precisions).sum(0) / precisions.sum(0), -precisions.mean(0).log()
        else:
            mean, log_variance = means.mean(0), log_variances.exp().mean(0).log()
        pool = torch.stack([mean, log_variance], 2).repeat(2, 1, 1)
        return GaussianPosterior(torch.where(is_shared.repeat(2, 1).unsqueeze(2), pool, self._outputs))

    def cross_log_density(self, sample: Sample) -> Tensor:
        mean, log_variance = self._outputs.unbind(2)  # once more, for the order of gradients
        return losses.gaussian_cross_log_density(sample.z, mean, log_variance)
