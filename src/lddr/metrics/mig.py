"""Mutual information gap: how far the most informative latent of a factor is ahead of the second (Chen et al. 2018)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.information import Floats, checked, discretised, entropy, histogram_facts, mutual_information_matrix
from lddr.metrics.metric import Result, metric
from lddr.metrics.signature import Count


@dataclass(frozen=True)
class MigResult(Result):
    """The mean gap, the gap of every factor, and the mutual information (latents, factors) in nats behind it."""

    per_factor: tuple[float, ...]
    mutual_information: Floats
    entropies: tuple[float, ...]


@metric("mig", "MIG", parts={"samples": 10_000})
def mig(codes: ArrayLike, factors: ArrayLike, num_bins: Count = 20) -> MigResult:
    """Gap of the two latents that tell most of a factor, (I₁ - I₂) / H(factor), mean over factors.

    The factors that vary count; a single latent has I₂ = 0.
    """
    values, truth = checked(codes, factors)
    information = mutual_information_matrix(discretised(values, num_bins), truth)
    first, second = two_largest(information)
    entropies = np.array([entropy(column) for column in truth.T])
    gaps = np.divide(first - second, entropies, out=np.zeros_like(first), where=entropies > 0)
    score = float(gaps[entropies > 0].mean()) if np.any(entropies > 0) else 0.0
    return MigResult(
        score, tuple(gaps.tolist()), information, tuple(entropies.tolist()), settings=histogram_facts(values)
    )


def two_largest(matrix: Floats) -> tuple[Floats, Floats]:
    """The largest and the second largest entry of every column; 0 where a column has one entry only."""
    padded = np.concatenate([matrix, np.zeros((1, matrix.shape[1]))]) if len(matrix) < 2 else matrix
    ordered = np.sort(padded, axis=0)
    return ordered[-1], ordered[-2]
