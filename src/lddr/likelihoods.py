"""Likelihoods p(x | z): how the outputs of a decoder become pixels, and what a reconstruction costs in nats."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import binary_cross_entropy_with_logits

from lddr import losses
from lddr.parts import likelihoods
from lddr.settings import Setting

DARKEST = 1e-3  # smallest mean of a pixel that an output bias is initialised to: its logit is finite


class Likelihood(nn.Module, ABC):
    """p(x | z) of pixels in [0, 1] that are independent given z; a decoder gives one number for each of them.

    Calling it with outputs and images returns -log p(x | z), in nats per image. A likelihood of your own needs
    `pixels`, `mean` and `outputs_of`.

    Examples
    --------
    >>> import lddr, torch
    >>> likelihood = lddr.likelihoods.Bernoulli()
    >>> logits, images = torch.zeros(5, 1, 8, 8), torch.ones(5, 1, 8, 8)
    >>> likelihood.per_image(logits, images).shape, likelihood.mean(logits)[0, 0, 0, 0].item()
    (torch.Size([5]), 0.5)
    """

    title = ""  # "Bernoulli", say
    name: str  # in the registry

    @abstractmethod
    def pixels(self, outputs: Tensor, images: Tensor) -> Tensor:
        """Return -log p of every pixel, in nats, of the shape of the images."""

    @abstractmethod
    def mean(self, outputs: Tensor) -> Tensor:
        """Return the expected pixels, in [0, 1], of the shape of the outputs."""

    @abstractmethod
    def outputs_of(self, pixels: Tensor) -> Tensor:
        """Return the outputs whose mean is closest to these pixels: the inverse of `mean`, for the output bias."""

    def per_image(self, outputs: Tensor, images: Tensor) -> Tensor:
        """Return -log p(x | z) of every image: (batch,)."""
        return self.pixels(outputs, images).flatten(1).sum(1)

    def forward(self, outputs: Tensor, images: Tensor) -> Tensor:
        """Return -log p(x | z) in nats per image, mean over the batch: ()."""
        return self.per_image(outputs, images).mean()

    @torch.no_grad()
    def of_copies(self, images: Tensor) -> Tensor:
        """Return the cost of perfect copies of images: (batch,)."""
        return self.per_image(self.outputs_of(images), images)

    @torch.no_grad()
    def of_mean(self, images: Tensor) -> float:
        """Return the cost of the mean of these images as the reconstruction of each, in nats per image."""
        outputs = self.outputs_of(images.mean(0, keepdim=True)).expand_as(images)
        return float(self.per_image(outputs, images).mean())

    def contrast(self, images: Tensor) -> float:
        """Return by how many nats the mean image costs more than a perfect copy: all that latents can gain."""
        copies = torch.cat([self.of_copies(part.double()) for part in images.split(64)])  # in little memory
        return self.of_mean(images) - float(copies.mean())


@likelihoods.register("bernoulli")
class Bernoulli(Likelihood):
    """log p = x l - log(1 + eˡ) for logits l: binary cross-entropy.

    Examples
    --------
    >>> import lddr, torch
    >>> logits, images = torch.zeros(5, 1, 8, 8), torch.ones(5, 1, 8, 8)
    >>> round(lddr.likelihoods.Bernoulli()(logits, images).item(), 3)  # 64 log 2
    44.361
    """

    title = "Bernoulli"

    def forward(self, outputs: Tensor, images: Tensor) -> Tensor:
        if outputs.device.type != "cpu" or outputs.dtype not in (torch.float32, torch.float64):
            return losses.bernoulli_reconstruction(outputs, images)
        return _OneVisit.apply(outputs, images)  # half the time on the CPU, with its gradient

    def pixels(self, outputs: Tensor, images: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(outputs, images, reduction="none")

    def mean(self, outputs: Tensor) -> Tensor:
        return outputs.sigmoid()

    def outputs_of(self, pixels: Tensor) -> Tensor:
        return pixels.logit(eps=DARKEST)

    def of_copies(self, images: Tensor) -> Tensor:
        """Return the entropy of the pixels, which is not 0 for grey ones."""
        return losses.bernoulli_entropy(images)

    def of_mean(self, images: Tensor) -> float:
        return losses.mean_picture(images)


@likelihoods.register("continuous_bernoulli")
class ContinuousBernoulli(Likelihood):
    """The Bernoulli likelihood divided by its integral over [0, 1] (Loaiza-Ganem & Cunningham 2019).

    log p = x l - log(1 + eˡ) + log C(l), where C(l) = l / tanh(l / 2) and C(0) = 2.

    Examples
    --------
    >>> import lddr, torch
    >>> logits, images = torch.zeros(5, 1, 8, 8), torch.ones(5, 1, 8, 8)
    >>> lddr.likelihoods.ContinuousBernoulli()(logits, images).item()  # uniform: a density of 1
    0.0
    """

    title = "continuous Bernoulli"

    def pixels(self, outputs: Tensor, images: Tensor) -> Tensor:
        return binary_cross_entropy_with_logits(outputs, images, reduction="none") - log_normaliser(outputs)

    def mean(self, outputs: Tensor) -> Tensor:
        """Return 1 / (1 - e⁻ˡ) - 1 / l, which is ½ + l / 12 near 0."""
        near = outputs.abs() < NEAR
        safe = torch.where(near, 1.0, outputs)
        return torch.where(near, 0.5 + outputs / 12, -1 / torch.expm1(-safe) - 1 / safe)

    def outputs_of(self, pixels: Tensor) -> Tensor:
        """Return logits, found by bisection: the mean rises with the logit."""
        wanted = pixels.clamp(DARKEST, 1 - DARKEST)
        low, high = torch.full_like(wanted, -1 / DARKEST), torch.full_like(wanted, 1 / DARKEST)
        for _ in range(40):
            middle = (low + high) / 2
            is_low = self.mean(middle) < wanted
            low, high = torch.where(is_low, middle, low), torch.where(is_low, high, middle)
        return (low + high) / 2


NEAR = 0.02  # logits this close to 0 take a Taylor series: the quotients would cancel


def log_normaliser(logits: Tensor) -> Tensor:
    """Return log C(l) = log(l / tanh(l / 2)) of the continuous Bernoulli; log 2 + l² / 12 near 0."""
    near = logits.abs() < NEAR
    safe = torch.where(near, 1.0, logits)
    return torch.where(near, 0.6931471805599453 + logits.square() / 12, torch.log(safe / torch.tanh(safe / 2)))


class _OneVisit(torch.autograd.Function):
    """log(1 + eˡ) - l·x = max(l, 0) - l·x - log max(p, 1 - p) with p = 1/(1 + e⁻ˡ), and p - x is its gradient.

    The mean over the batch and its gradient in one visit to the pixels; on the CPU they are a few passes each.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, images: Tensor) -> Tensor:
        probabilities = logits.sigmoid()
        ctx.save_for_backward(probabilities - images)
        likelier = probabilities.sub_(0.5).abs_().add_(0.5)
        pixels = logits.relu().addcmul_(logits, images, value=-1).sub_(likelier.log_())
        return pixels.sum() / len(logits)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (slopes,) = ctx.saved_tensors
        return slopes * (gradient / len(slopes)), None


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
    """-log p = ½ ((x - μ) / σ)² + log σ + ½ log 2π.

    Examples
    --------
    >>> import lddr, torch
    >>> likelihood = lddr.likelihoods.GaussianLikelihood(scale=1, learn_scale=False)
    >>> round(likelihood(torch.zeros(5, 1, 1, 1), torch.zeros(5, 1, 1, 1)).item(), 3)  # ½ log 2π
    0.919
    """

    title = "Gaussian"

    def pixels(self, outputs: Tensor, images: Tensor) -> Tensor:
        scale = self.scale
        return 0.5 * ((images - outputs) / scale).square() + scale.log() + 0.5 * math.log(2 * math.pi)


@likelihoods.register("laplace")
class LaplaceLikelihood(LocationScale):
    """-log p = |x - μ| / b + log 2b.

    Examples
    --------
    >>> import lddr, torch
    >>> likelihood = lddr.likelihoods.LaplaceLikelihood(scale=0.5, learn_scale=False)
    >>> likelihood(torch.zeros(5, 1, 1, 1), torch.ones(5, 1, 1, 1)).item()
    2.0
    """

    title = "Laplace"

    def pixels(self, outputs: Tensor, images: Tensor) -> Tensor:
        scale = self.scale
        return (images - outputs).abs() / scale + (2 * scale).log()
