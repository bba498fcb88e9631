"""The formulas of the objectives: pure functions of tensors, in nats, differentiable unless they say otherwise.

A mask `active` is a bool tensor (latents, categories) with at least one active category per latent; None is all active.

Examples
--------
A β-VAE's loss from the outputs of your own networks:

>>> import torch
>>> from lddr import losses
>>> images, logits = torch.ones(5, 1, 8, 8), torch.zeros(5, 1, 8, 8)  # of a decoder
>>> mean, log_variance = torch.ones(5, 10), torch.zeros(5, 10)  # of an encoder
>>> kl = losses.gaussian_kl(mean, log_variance).sum(1).mean()
>>> loss = losses.bernoulli_reconstruction(logits, images) + 4 * kl
>>> round(loss.item(), 2)  # 64 log 2 + 4 · 5
64.36
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor


def bernoulli_reconstruction(logits: Tensor, images: Tensor) -> Tensor:  # (batch, channels, height, width) twice → ()
    """Return the negative Bernoulli log-likelihood, summed over pixels, mean over the batch: log(1 + eˡ) - l·x.

    Examples
    --------
    >>> round(bernoulli_reconstruction(torch.zeros(5, 1, 2, 2), torch.ones(5, 1, 2, 2)).item(), 3)  # 4 log 2
    2.773
    """
    # spelt out, because torch's own loss first copies channels-last logits to the other memory format
    precision = torch.promote_types(logits.dtype, torch.float32)
    logits, images = logits.to(precision), images.to(precision)
    softplus = torch.nn.functional.softplus(logits, threshold=40)  # beyond 40 log(1 + eˡ) is l, in float64 too
    return torch.addcmul(softplus, logits, images, value=-1).sum() / len(logits)


def bernoulli_entropy(images: Tensor) -> Tensor:  # (images, …) → (images,)
    """Return the cost of a perfect copy, which is not 0 for grey pixels: -Σ x log x + (1 - x) log(1 - x)."""
    return (torch.special.entr(images) + torch.special.entr(1 - images)).flatten(1).sum(1)


def mean_picture(images: Tensor) -> float:  # (images, …)
    """Return the cost of these images' mean as the reconstruction of each, in nats per image."""
    return float(bernoulli_entropy(images.mean(0, keepdim=True, dtype=torch.float64)))


def gaussian_kl(mean: Tensor, log_variance: Tensor) -> Tensor:  # (batch, latents)
    """Return KL(N(μ, σ²) ‖ N(0, 1)) per latent: ½(μ² + σ² - 1 - log σ²).

    Examples
    --------
    >>> gaussian_kl(torch.tensor([[0.0, 1.0]]), torch.tensor([[0.0, 0.0]])).tolist()
    [[0.0, 0.5]]
    """
    return 0.5 * (mean.square() + torch.expm1(log_variance) - log_variance)


def categorical_kl(log_probabilities: Tensor, active: Tensor | None) -> Tensor:  # (batch, latents)
    """Return KL(p ‖ uniform over the m active categories) per latent: Σ p log p + log m, with 0 log 0 = 0.

    Examples
    --------
    >>> categorical_kl(torch.tensor([[[0.0, -math.inf]]]), active=None).tolist()  # one category of two: log 2
    [[0.6931471824645996]]
    """
    finite = log_probabilities.masked_fill(log_probabilities.isneginf(), 0)
    negative_entropy = (log_probabilities.exp() * finite).sum(-1)
    if active is None:
        return negative_entropy + math.log(log_probabilities.shape[-1])
    return negative_entropy + active.sum(-1).to(finite.dtype).log()


def masked_log_softmax(logits: Tensor, active: Tensor | None) -> Tensor:  # (…, latents, categories)
    """Return the log softmax over the active categories; the others are exactly -∞, without gradient."""
    if active is None:
        return logits.log_softmax(-1)
    # masked again afterwards: what flows back from the constant -∞ must not reach the active logits
    return logits.masked_fill(~active, -math.inf).log_softmax(-1).masked_fill(~active, -math.inf)


def gumbel_softmax(logits: Tensor, gumbel: Tensor, scale: float | Tensor, active: Tensor | None = None) -> Tensor:
    """Return softmax(log α + scale · g) with masked categories exactly 0: the paper's Eq. 2.

    Parameters
    ----------
    logits, gumbel
        log α and noise, (batch, latents, categories).
    scale
        Multiplies the noise alone, and 0 gives the noiseless softmax; the temperature is 1.
    active
        Mask of the categories in use.

    Examples
    --------
    >>> logits = torch.zeros(5, 10, 64)
    >>> gumbel_softmax(logits, gumbel_noise(logits.shape), scale=0.5).shape
    torch.Size([5, 10, 64])
    """
    noisy = logits + scale * gumbel
    return (noisy if active is None else noisy.masked_fill(~active, -math.inf)).softmax(-1)


def gumbel_noise(
    shape: tuple[int, ...],
    generator: torch.Generator | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """Return finite Gumbel(0, 1) noise of a shape, -log(-log u), on the device of the generator if there is one."""
    device = device if generator is None else generator.device
    uniform = torch.rand(shape, generator=generator, device=device, dtype=dtype)
    spacing = torch.finfo(uniform.dtype).eps / 2  # of the numbers that torch.rand draws
    uniform = uniform.clamp(spacing / 2, 1 - spacing)  # 0 would be infinite; half a step keeps the tail honest
    return -torch.log(-torch.log(uniform))


def straight_through(soft: Tensor) -> Tensor:  # (…, categories)
    """Return the one-hot argmax, with the gradient of `soft` itself.

    Examples
    --------
    >>> straight_through(torch.tensor([0.1, 0.7, 0.2])).tolist()
    [0.0, 1.0, 0.0]
    """
    hard = torch.zeros_like(soft).scatter(-1, soft.detach().argmax(-1, keepdim=True), 1.0)
    return passed_through(hard, soft)


def passed_through(rounded: Tensor, code: Tensor) -> Tensor:  # of one shape
    """Return `rounded` with the gradient of `code`, of which it is a rounding."""
    return rounded.detach() + (code - code.detach())  # exactly rounded + 0 forwards


def nearest(code: Tensor, values: Tensor) -> Tensor:  # (batch, latents), (latents, values) → (batch, latents, values)
    """Return which value of a latent is nearest to the code, one-hot and without gradient; of two, the first."""
    distances = (code.detach().unsqueeze(-1) - values.detach()).abs()
    return torch.zeros_like(distances).scatter(-1, distances.argmin(-1, keepdim=True), 1.0)


def category_counts(categories: Tensor, num_categories: int) -> Tensor:  # (images, latents) → (latents, categories)
    """Return how many images each category of each latent has.

    Examples
    --------
    >>> category_counts(torch.tensor([[0, 2], [0, 1]]), num_categories=3).tolist()
    [[2, 0, 0], [0, 1, 1]]
    """
    return torch.nn.functional.one_hot(categories, num_categories).sum(0)


def perplexity(counts: Tensor) -> Tensor:  # (…, categories) → (…)
    """Return the exponential of the entropy: how many equally frequent categories would be as hard to predict.

    Examples
    --------
    >>> perplexity(torch.tensor([[5, 5, 0], [9, 0, 0]])).tolist()
    [2.0, 1.0]
    """
    return torch.special.entr(counts.double() / counts.sum(-1, keepdim=True)).sum(-1).exp()


def positions(low: float, high: float, count: int) -> Tensor:  # (count,)
    """Return the positions of the categories, equidistant from `low` to `high`: low + (high - low) (j - 1)/(m - 1)."""
    return torch.linspace(low, high, count)


@lru_cache
def positions_variance(low: float, high: float, count: int) -> float:
    """Return the variance of a uniform draw among the positions."""
    with torch.device("cpu"):  # models that are loaded are first built on the meta device, which has no values
        return float(positions(low, high, count).double().var(correction=0))


def gaussian_cross_log_density(z: Tensor, mean: Tensor, log_variance: Tensor) -> Tensor:  # (batch, batch, latents)
    """Return all pairs' log q(z_bi | x_c) = -½(log 2π + log σ²_ci + (z_bi - μ_ci)²/σ²_ci)."""
    squared_distance = (z[:, None] - mean).square() * torch.exp(-log_variance)
    return -0.5 * (squared_distance + log_variance + math.log(2 * math.pi))


def categorical_cross_log_probability(
    sample: Tensor, log_probabilities: Tensor, active: Tensor | None
) -> Tensor:  # (batch, batch, latents)
    """Return all pairs' log q(z_bi | x_c) = Σ_k z_bik log p_i(k | x_c), for one-hot or relaxed samples.

    Samples have nothing in masked categories, as those of `gumbel_softmax`: these are left out of the sum.
    """
    if active is not None:
        log_probabilities = log_probabilities.masked_fill(~active, 0)  # 0 · -∞ would be NaN
    return torch.einsum("bik,cik->bci", sample, log_probabilities)


def total_correlation(cross: Tensor) -> Tensor:  # (batch, batch, latents) → ()
    """Return the total correlation KL(q(z) ‖ Π q(z_i)) of the batch's aggregate posterior, estimated at its samples.

    From cross = log q(z_bi | x_c): mean_b [log 1/B Σ_c Π_i q(z_bi | x_c) - Σ_i log 1/B Σ_c q(z_bi | x_c)]. Without bias
    for the B images at hand. β-TCVAE's minibatch-weighted estimator divides by N·B for N images in the dataset: it is
    this plus the constant (n - 1) log N for n latents, which has no gradient.

    Examples
    --------
    >>> mean, log_variance = torch.randn(64, 10), torch.zeros(64, 10)
    >>> cross = gaussian_cross_log_density(mean, mean, log_variance)  # of samples without noise
    >>> total_correlation(cross).shape
    torch.Size([])
    """
    joint = cross.sum(-1).logsumexp(1)  # (batch,)
    marginals = cross.logsumexp(1).sum(-1)  # (batch,)
    return (joint - marginals).mean() + (cross.shape[-1] - 1) * math.log(cross.shape[1])


def covariance(codes: Tensor) -> Tensor:  # (batch, latents) → (latents, latents)
    """Return the covariance over the batch, divided by the batch size as in disentanglement_lib (not by one less).

    Examples
    --------
    >>> covariance(torch.tensor([[1.0, -1.0], [-1.0, 1.0]])).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    centred = codes - codes.mean(0)
    return centred.T @ centred / len(codes)


def squared_correlations(left: Tensor, right: Tensor) -> Tensor:  # (batch, m), (batch, n) → (m, n)
    """Return the squared Pearson correlation over the batch of every column of one with every column of the other.

    Columns that do not vary have a correlation of 0: 1e-8 is added to the product of the variances.

    Examples
    --------
    >>> codes = torch.tensor([[0.0], [1.0], [2.0]])
    >>> squared_correlations(codes, -2 * codes).tolist()
    [[1.0]]
    """
    one, other = left - left.mean(0), right - right.mean(0)
    joint = (one[:, :, None] * other[:, None, :]).mean(0)
    return joint.square() / (one.square().mean(0)[:, None] * other.square().mean(0) + 1e-8)


def dip_penalty(covariance: Tensor, off_diagonal_weight: float, diagonal_weight: float) -> Tensor:  # ()
    """Return DIP-VAE's distance of a covariance from the identity: λ_od Σ_{i≠j} C_ij² + λ_d Σ_i (C_ii - 1)².

    Examples
    --------
    >>> dip_penalty(torch.tensor([[1.0, 0.5], [0.5, 3.0]]), off_diagonal_weight=10, diagonal_weight=1).item()
    9.0
    """
    diagonal = covariance.diagonal()
    off_diagonal = covariance - diagonal.diag_embed()
    return off_diagonal_weight * off_diagonal.square().sum() + diagonal_weight * (diagonal - 1).square().sum()


def deviation(codes: Tensor) -> Tensor:  # (batch, latents) → (latents,)
    """Return the standard deviation over the batch + 1e-6; codes that are all the same get no gradient from it."""
    return codes.var(0, correction=0).clamp(min=1e-14).sqrt() + 1e-6


def multi_information(
    z: Tensor, deviation: Tensor, latents: int | None = None
) -> Tensor:  # (batch, width), (width,) → ()
    """Return Tripod's kernel-based latent multi-information: mean_b [log q(z_b) - Σ_k log q_k(z_bk)].

    The densities are means of Gaussian kernels at the batch's codes. Those of the marginals are as wide as the latents'
    deviation, those of the joint s times that, s = (4 / (n + 2))^(1 / (n + 4)) B^(-1 / (n + 4)) (Silverman), for n
    numbers. A latent of several numbers has one marginal density, of all its numbers.

    Examples
    --------
    >>> z = torch.randn(64, 10)
    >>> multi_information(z, deviation(z)).shape
    torch.Size([])
    """
    batch, width = z.shape
    latents = width if latents is None else latents
    silverman = (4 / (width + 2) / batch) ** (1 / (width + 4))
    squared = ((z[:, None] - z) / deviation).square()  # (batch, batch, width)
    joint = (squared.sum(-1) / (-2 * silverman**2)).logsumexp(1)  # (batch,), and so are the marginals
    alone = squared if latents == width else squared.unflatten(-1, (latents, -1)).sum(-1)
    marginals = (alone / -2).logsumexp(1).sum(-1)
    return (joint - marginals).mean() + (latents - 1) * math.log(batch) - width * math.log(silverman)


DISTANCE = 0.1  # ε: how far from the codes the decoder's curvature is measured, in deviations of the latents


def directions(
    shape: tuple[int, int], generator: torch.Generator | None, device: torch.device | None = None, numbers: int = 1
) -> Tensor:  # (2, 2, batch, width)
    """Return two Rademacher and two standard normal directions for every sample.

    Where a latent has several numbers, the two Rademacher directions differ in one sign for each latent: the difference
    of their second derivatives then has no part that a latent has alone.
    """
    batch, width = shape
    signs = torch.randint(2, (2, batch, width // numbers), generator=generator, device=device) * 2.0 - 1
    if numbers > 1:
        inside = torch.randint(2, shape, generator=generator, device=device) * 2.0 - 1
        signs = signs.repeat_interleave(numbers, dim=2) * inside
    return torch.stack([signs, torch.randn((2, *shape), generator=generator, device=device)])


def neighbours(z: Tensor, deviation: Tensor, directions: Tensor) -> Tensor:  # (8 x batch, latents)
    """Return where the decoder's curvature is measured: z ± h for all directions v; h = ε · deviation · v.

    Examples
    --------
    The Hessian penalty of a decoder:

    >>> z, decoder = torch.randn(64, 10), torch.nn.Tanh()
    >>> around = neighbours(z, deviation(z), directions(z.shape, generator=None))
    >>> round(hessian_ratio(decoder(around)).item(), 3)  # 0: no output mixes two latents
    0.0
    """
    steps = DISTANCE * deviation * directions  # (2, 2, batch, latents)
    return torch.stack([z + steps, z - steps], 2).flatten(0, 3)


def hessian_ratio(outputs: Tensor) -> Tensor:  # (8 x batch, …) → ()
    """Return Tripod's normalised Hessian penalty of a function, from its outputs at the `neighbours` of z.

    Second differences P = [f(z + h) - 2 f(z) + f(z - h)] / ε² are vᵀHv, with H the Hessian in units of the deviations.
    Their variance over Rademacher v is 2 Σ_{i≠j} H_ij², over normal v 2 Σ_ij H_ij². This is the ratio of both, each
    estimated from two directions as (P₁ - P₂)² / 2, where f(z) drops out, and averaged over outputs and codes.
    """
    # averaged over codes first, not as published: a decoder of ReLUs is flat around many a code, where 0 / 0 explodes
    first, second = outputs.unflatten(0, (2, 2, 2, -1)).sum(2).unbind(1)  # (2, batch, …): f(z + h) + f(z - h)
    mixed, whole = ((first - second) / DISTANCE**2).square().flatten(1).mean(1) / 2
    return mixed / (whole + 1e-10)


def permutations(
    shape: tuple[int, int], generator: torch.Generator | None, device: torch.device | None = None
) -> Tensor:  # (batch, latents)
    """Return a permutation of the batch for every latent."""
    return torch.rand(shape, generator=generator, device=device).argsort(0)


def permute_latents(z: Tensor, order: Tensor) -> Tensor:  # (batch, latents, …), (batch, latents) → as z, detached
    """Return z with every latent permuted over the batch individually: samples of Π q(z_i), detached.

    Examples
    --------
    >>> z = torch.tensor([[1.0, 10.0], [2.0, 20.0]])
    >>> permute_latents(z, order=torch.tensor([[0, 1], [1, 0]])).tolist()
    [[1.0, 20.0], [2.0, 10.0]]
    """
    whole = order.reshape(order.shape + (1,) * (z.dim() - 2)).expand_as(z)  # all numbers of a latent stay together
    return z.detach().gather(0, whole)


def density_ratio(discriminator_logits: Tensor) -> Tensor:  # (batch, 2) → ()
    """Return the total correlation by the density-ratio trick, mean(D₀ - D₁), with class 0 for samples of q(z).

    Examples
    --------
    >>> density_ratio(torch.tensor([[2.0, 0.0], [1.0, -1.0]])).item()
    2.0
    """
    return (discriminator_logits[:, 0] - discriminator_logits[:, 1]).mean()


def discriminator_loss(logits_joint: Tensor, logits_permuted: Tensor) -> Tensor:  # (batch, 2) twice → ()
    """Return ½ (cross-entropy of joint samples with class 0 + of permuted ones with class 1) of detached samples.

    Examples
    --------
    >>> round(discriminator_loss(torch.zeros(5, 2), torch.zeros(5, 2)).item(), 4)  # a coin toss: log 2
    0.6931
    """
    return -0.5 * (logits_joint.log_softmax(1)[:, 0].mean() + logits_permuted.log_softmax(1)[:, 1].mean())
