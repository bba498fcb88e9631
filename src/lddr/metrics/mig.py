"""MIG and MIG-sup: gaps of mutual information, between latents for each factor, and between factors for each latent."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.information import Floats, histogram_facts, histogram_information, shares_of
from lddr.metrics.metric import Count, NotNegative, Result, metric
from lddr.metrics.unsupervised import active_latents


@dataclass(frozen=True)
class MigResult(Result):
    """The mean gap, the gap of every factor, and the mutual information (latents, factors) in nats behind it."""

    per_factor: tuple[float, ...]
    mutual_information: Floats
    entropies: tuple[float, ...]


@metric("mig", "MIG", parts={"samples": 10_000})
def mig(codes: ArrayLike, factors: ArrayLike, num_bins: Count = 20) -> MigResult:
    """Gap of the two latents with the largest mutual information, (I₁ - I₂) / H(factor), mean over factors.

    Chen et al. (2018). Only factors that vary count; a single latent has I₂ = 0.

    Parameters
    ----------
    codes, factors : array
        (samples, latents), and whole numbers (samples, factors).
    num_bins : int
        Bins of the histogram of each latent.

    Returns
    -------
    MigResult
        The score, `per_factor`, `mutual_information` (latents, factors) and `entropies`.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import mig
    >>> factors = np.random.default_rng(0).integers(4, size=(2_000, 2))
    >>> round(mig(factors * 0.5, factors).score, 2)
    1.0
    """
    values, _, information, entropies = histogram_information(codes, factors, num_bins)
    first, second = two_largest(information)
    gaps = shares_of(first - second, entropies)
    score = float(gaps[entropies > 0].mean()) if np.any(entropies > 0) else 0.0
    return MigResult(
        score, tuple(gaps.tolist()), information, tuple(entropies.tolist()), settings=histogram_facts(values)
    )


def two_largest(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the largest and the second largest entry of every column, which is 0 if a column has only one."""
    padded = np.concatenate([matrix, np.zeros((1, matrix.shape[1]))]) if len(matrix) < 2 else matrix
    ordered = np.sort(padded, axis=0)
    return ordered[-1], ordered[-2]


@dataclass(frozen=True)
class MigSupResult(Result):
    """The mean gap, the gap of every latent, which of them count, and the mutual information (latents, factors)."""

    per_latent: tuple[float, ...]
    active: tuple[bool, ...]
    mutual_information: Floats
    entropies: tuple[float, ...]


@metric("mig_sup", "MIG-sup", parts={"samples": 10_000})
def mig_sup(
    codes: ArrayLike, factors: ArrayLike, num_bins: Count = 20, active_variance: NotNegative = 0.01
) -> MigSupResult:
    """Gap of the two largest I / H(factor) of a latent, mean over the active latents; a single factor has no second.

    Li et al. (2020). As in the authors' code a latent is active if its variance is above 0.01; the score is 0 if none
    is. The mutual information comes from histograms of the codes, where the authors sample from the posterior.

    Parameters
    ----------
    codes, factors : array
        (samples, latents), and whole numbers (samples, factors).
    num_bins : int
        Bins of the histogram of each latent.
    active_variance : float
        The variance above which a latent is active.

    Returns
    -------
    MigSupResult
        The score, `per_latent`, `active`, `mutual_information` (latents, factors) and `entropies`.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import mig_sup
    >>> factors = np.random.default_rng(0).integers(4, size=(2_000, 2))
    >>> round(mig_sup(factors * 0.5, factors).score, 2)
    1.0
    """
    values, _, information, entropies = histogram_information(codes, factors, num_bins)
    first, second = two_largest(shares_of(information, entropies).T)
    gaps, active = first - second, active_latents(values, active_variance)
    return MigSupResult(
        float(gaps[active].mean()) if active.any() else 0.0,
        tuple(gaps.tolist()),
        tuple(active.tolist()),
        information,
        tuple(entropies.tolist()),
        settings=histogram_facts(values),
    )
