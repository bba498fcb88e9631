"""Mutual information gap: how far the most informative latent of a factor is ahead of the second (Chen et al. 2018)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.information import Floats, checked, discretised, entropy, mutual_information_matrix
from lddr.metrics.metric import Metric, Result, Sample, metrics


@dataclass(frozen=True)
class MigResult(Result):
    """The mean gap, the gap of every factor, and the mutual information (latents, factors) in nats behind it."""

    per_factor: tuple[float, ...]
    mutual_information: Floats
    entropies: tuple[float, ...]


def mig(codes: ArrayLike, factors: ArrayLike, num_bins: int = 20) -> MigResult:
    """(I₁ - I₂) / H(factor), mean over the factors that vary; a single latent has I₂ = 0."""
    values, truth = checked(codes, factors)
    information = mutual_information_matrix(discretised(values, num_bins), truth)
    first, second = two_largest(information)
    entropies = np.array([entropy(column) for column in truth.T])
    gaps = np.divide(first - second, entropies, out=np.zeros_like(first), where=entropies > 0)
    score = float(gaps[entropies > 0].mean()) if np.any(entropies > 0) else 0.0
    settings = {"num_bins": num_bins, "samples": len(values)}
    return MigResult(score, tuple(gaps.tolist()), information, tuple(entropies.tolist()), settings=settings)


def two_largest(matrix: Floats) -> tuple[Floats, Floats]:
    """The largest and the second largest entry of every column; 0 where a column has one entry only."""
    padded = np.concatenate([matrix, np.zeros((1, matrix.shape[1]))]) if len(matrix) < 2 else matrix
    ordered = np.sort(padded, axis=0)
    return ordered[-1], ordered[-2]


@metrics.register("mig")
@dataclass(frozen=True)
class Mig(Metric):
    """The mutual information gap of one sample."""

    title = "MIG"
    samples: int = 10_000
    num_bins: int = 20

    @property
    def parts(self) -> dict[str, int]:
        return {"sample": self.samples}

    def score(self, samples: Mapping[str, Sample]) -> MigResult:
        sample = samples["sample"]
        return mig(sample.codes, sample.factors, self.num_bins)
