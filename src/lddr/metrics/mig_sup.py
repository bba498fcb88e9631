"""MIG-sup: how far the factor a latent tells most about is ahead of the second (Li et al. 2020)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.information import Floats, checked, discretised, entropy, histogram_facts, mutual_information_matrix
from lddr.metrics.metric import Result, metric
from lddr.metrics.mig import two_largest
from lddr.metrics.signature import Count, NotNegative
from lddr.metrics.unsupervised import active_latents


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

    As in the authors' code a latent is active if its variance is above 0.01; without any the score is 0. The mutual
    information is that of `mig`, from histograms of the codes, where the authors sample from the posterior.
    """
    values, truth = checked(codes, factors)
    information = mutual_information_matrix(discretised(values, num_bins), truth)
    entropies = np.array([entropy(column) for column in truth.T])
    shares = np.divide(information, entropies, out=np.zeros_like(information), where=entropies > 0)
    first, second = two_largest(shares.T)
    gaps, active = first - second, active_latents(values, active_variance)
    return MigSupResult(
        float(gaps[active].mean()) if active.any() else 0.0,
        tuple(gaps.tolist()),
        tuple(active.tolist()),
        information,
        tuple(entropies.tolist()),
        settings=histogram_facts(values),
    )
