"""Circular latents: von Mises posteriors on the circle, a uniform prior; for orientations, hues and other angles."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, cached_property

import numpy as np
import torch
from torch import Tensor
from torch.special import i0e, i1e, ndtri

from lddr.data.factors import FactorSpace, Indices
from lddr.latents.latent import Latent, NumLatents, Posterior, Sample, Scale
from lddr.parts import latents

TRAVERSAL = 16  # angles, once round the circle
NODES = 40  # of the Gauss-Legendre rule
FARTHEST = 10.0  # standard deviations, 1/√κ, beyond which there is no mass that float32 noise could reach
NEWTON = 10  # iterations: the error is below 1e-8 standard deviations for κ up to 1e5 and all noise in float32
TINY = 1e-6  # smallest length of a pair of encoder outputs: the origin has no direction


@latents.register("von_mises")
class VonMises(Latent):
    """q(z|x) = vM(μ(x), κ(x)) and p(z) = 1/2π for the angle z of each latent; the decoder gets cos z and sin z.

    The encoder gives a vector for each latent, whose direction is μ. Its length r gives κ = r + r²: for short vectors
    κ ≈ r, so that the posterior is a smooth function of the vector even at the origin, where it has no direction; for
    long ones the standard deviation of z is about 1/r, so that a step of 1 in the encoder's outputs is one standard
    deviation, whatever the concentration. With a third number for κ, the direction would be singular at the origin.
    The code is μ, in (-π, π].

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.VonMises(num_latents=2)
    >>> posterior = latent(torch.tensor([[3.0, 0.0, 0.0, 2.0]]))  # a vector for each latent
    >>> posterior.mean.rad2deg().tolist(), posterior.concentration.tolist()
    ([[0.0, 90.0]], [[12.0, 6.0]])
    """

    title = "von Mises"
    supervisions = ("cosine",)
    prior_variance = 3.289868133696453  # π² / 3

    def __init__(self, num_latents: NumLatents = 10) -> None:
        super().__init__(num_latents, parameters_per_latent=2, numbers_per_latent=2)

    @property
    def code_range(self) -> tuple[float, float]:
        """The whole circle."""
        return -math.pi, math.pi

    def posterior(self, parameters: Tensor) -> VonMisesPosterior:
        return VonMisesPosterior(parameters, self)

    def noise(self, batch: int, generator: torch.Generator | None = None, device: torch.device | None = None) -> Tensor:
        """Return uniform noise in (-½, ½), symmetric and without the ends: the CDF of a sample minus ½."""
        return torch.rand(batch, self.num_latents, generator=generator, device=device) - 0.5 + 2**-25

    def values(self) -> Tensor:
        return (torch.arange(1, TRAVERSAL + 1) * (2 * math.pi / TRAVERSAL) - math.pi).expand(self.num_latents, -1)

    def embed(self, codes: Tensor) -> Tensor:
        """Return cosine and sine of each angle: (batch, latents) → (batch, 2 x latents)."""
        return on_circle(codes).flatten(1)

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        """Return the angle 2πj/m for factor value j of m."""
        return (2 * math.pi * torch.as_tensor(factors).double() / torch.tensor(space.sizes)).float()

    def errors(self, loss: str, posterior: Posterior, targets: Tensor) -> Tensor:
        """Return 1 - cos(angle - target) of the first latents."""
        return 1 - (posterior.mean[:, : targets.shape[1]] - targets).cos()

    def guess(self, loss: str, seen: Tensor, unseen: Tensor) -> Tensor:
        """Return the errors of the mean direction."""
        return 1 - (unseen - torch.atan2(seen.sin().mean(), seen.cos().mean())).cos()


class VonMisesPosterior(Posterior):
    """vM(μ, κ) of each latent."""

    def __init__(self, outputs: Tensor, latent: VonMises) -> None:
        x, y = outputs.unbind(2)
        x = x.masked_fill(outputs.detach().square().sum(2) < TINY**2, TINY)
        angle, length = torch.atan2(y, x), torch.hypot(x, y)
        self.mean = torch.where(angle.detach() <= -math.pi, angle + 2 * math.pi, angle)
        self.concentration, self.latent = length + length.square(), latent  # κ: (batch, latents)

    @cached_property
    def kl(self) -> Tensor:
        """κ I₁(κ)/I₀(κ) - log I₀(κ), with exponentially scaled Bessel functions."""
        kappa = _precise(self.concentration)
        return (kappa * (i1e(kappa) / i0e(kappa) - 1) - i0e(kappa).log()).to(self.mean.dtype)

    @cached_property
    def variance(self) -> Tensor:
        """E[(z - μ)²] of the angle on the arc of length 2π around μ: π²/3 for κ = 0, about 1/κ for large κ."""
        kappa = _precise(self.concentration)
        return (2 * _integral(lambda angle: angle.square() * _density(angle, kappa), _farthest(kappa))).to(
            self.mean.dtype
        )

    @property
    def parameters(self) -> Tensor:
        """Mean direction and concentration: (batch, latents, 2)."""
        return torch.stack([self.mean, self.concentration], dim=2)

    def sample(self, noise: Tensor | None = None, scale: Scale = 1.0, hard: bool | None = None) -> Sample:
        """Return a sample μ + x, where x has the CDF ½ + scale · noise under vM(0, κ).

        With x fixed for fixed noise, μ would shift z by 1, which makes gradients large where κ is small and the shift
        changes nothing. The velocity of z may be any that moves the density as μ does: 1 - c/p(z) for a constant c, of
        which c = 1/(2π I₀(κ)²) has the smallest mean square. Gradients of expectations are the same.
        """
        noise = self.latent.noise(len(self.mean), device=self.mean.device) if noise is None else noise
        with torch.no_grad():
            kappa = _precise(self.concentration)
            offset = quantile(_precise(scale * noise).expand_as(kappa), kappa)
            by_kappa = _slope(offset, kappa).to(self.mean.dtype)
            by_mean = (1 - (-kappa * (1 + offset.cos())).exp() / i0e(kappa)).to(self.mean.dtype)
        angle = self.mean.detach() + offset.to(self.mean.dtype)
        angle = angle + by_mean * (self.mean - self.mean.detach())
        angle = angle + by_kappa * (self.concentration - self.concentration.detach())
        return Sample(on_circle(angle).flatten(1))

    def expected(self, hard: bool | None = None) -> Sample:
        return Sample(on_circle(self.mean).flatten(1))

    def cross_log_density(self, sample: Sample) -> Tensor:
        """Return κ (cos(z - μ) - 1) - log(2π e^-κ I₀(κ)) of all pairs, where cos - 1 is -distance²/2."""
        distance = (sample.z.unflatten(1, (-1, 2))[:, None] - on_circle(self.mean)).square().sum(-1)
        return -self.concentration * distance / 2 - (2 * math.pi * i0e(self.concentration)).log()


def on_circle(angle: Tensor) -> Tensor:  # (…) → (…, 2)
    """Return cosine and sine of an angle."""
    return torch.stack([angle.cos(), angle.sin()], dim=-1)


def quantile(noise: Tensor, kappa: Tensor) -> Tensor:  # of one shape
    """Return the angle x at which the CDF of vM(0, κ) is ½ + noise, in (-π, π), without gradient.

    By Newton's method on |noise|. The density falls from 0 to π, so that it converges from below from any lower bound:
    that of a density as high as at 0 everywhere, or of the normal distribution, whose tails are lighter.
    """
    wanted, farthest = noise.abs(), _farthest(kappa)
    angle = (wanted / _density(torch.zeros_like(kappa), kappa)).maximum(ndtri(0.5 + wanted) * kappa.rsqrt())
    angle = angle.minimum(farthest)
    for _ in range(NEWTON):
        missing = wanted - _integral(lambda angle: _density(angle, kappa), angle)
        angle = (angle + missing / _density(angle, kappa)).minimum(farthest)
    return angle.copysign(noise)


def _slope(angle: Tensor, kappa: Tensor) -> Tensor:
    """Return the derivative of a quantile by κ: -∂F/∂κ / p, by the implicit function theorem."""
    ratio = i1e(kappa) / i0e(kappa)
    by_kappa = _integral(lambda angle: (angle.cos() - ratio) * _density(angle, kappa), angle)
    return -by_kappa / _density(angle, kappa)


def _density(angle: Tensor, kappa: Tensor) -> Tensor:
    """Return exp(κ (cos x - 1)) / (2π e^-κ I₀(κ)) of vM(0, κ), with cos x - 1 = -2 sin²(x/2)."""
    return (-2 * kappa * (angle / 2).sin().square()).exp() / (2 * math.pi * i0e(kappa))


def _integral(function: Callable[[Tensor], Tensor], end: Tensor) -> Tensor:
    """Return ∫ function from 0 to `end`; the function maps (nodes, …) to (nodes, …)."""
    nodes, weights = (each.reshape(-1, *[1] * end.dim()) for each in _rule(end.device, end.dtype))
    return (weights * function(end * nodes)).sum(0) * end


@cache
def _rule(device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return nodes and weights of the Gauss-Legendre rule on [0, 1]; cached, because copying them makes a GPU wait."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return tuple(torch.tensor(each, device=device, dtype=dtype) for each in ((nodes + 1) / 2, weights / 2))  # type: ignore[return-value]


def _farthest(kappa: Tensor) -> Tensor:
    """Return the largest angle of a sample."""
    return (FARTHEST * kappa.rsqrt()).clamp(max=math.pi)


def _precise(tensor: Tensor) -> Tensor:
    """Return it in float64 where the device has that: cosines near 1 are multiplied by large κ."""
    return tensor if tensor.device.type == "mps" else tensor.double()
