"""Mutual information gap: how far the most informative latent of a factor is ahead of the second (Chen et al. 2018)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.information import Floats, checked, discretised, entropy, mutual_information_matrix


@dataclass(frozen=True)
class Mig:
    """The mean gap, the gap of every factor, and the mutual information (latents, factors) in nats behind it."""

    score: float
    per_factor: tuple[float, ...]
    mutual_information: Floats
    entropies: tuple[float, ...]
    num_bins: int
    samples: int


def mig(codes: ArrayLike, factors: ArrayLike, num_bins: int = 20) -> Mig:
    """(I₁ - I₂) / H(factor), mean over the factors that vary; a single latent has I₂ = 0."""
    values, truth = checked(codes, factors)
    information = mutual_information_matrix(discretised(values, num_bins), truth)
    first, second = _two_largest(information)
    entropies = np.array([entropy(column) for column in truth.T])
    gaps = np.divide(first - second, entropies, out=np.zeros_like(first), where=entropies > 0)
    score = float(gaps[entropies > 0].mean()) if np.any(entropies > 0) else 0.0
    return Mig(score, tuple(gaps.tolist()), information, tuple(entropies.tolist()), num_bins, len(values))


def _two_largest(information: Floats) -> tuple[Floats, Floats]:
    padded = np.concatenate([information, np.zeros((1, information.shape[1]))]) if len(information) < 2 else information
    ordered = np.sort(padded, axis=0)
    return ordered[-1], ordered[-2]
