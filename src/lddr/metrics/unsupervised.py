"""Scores without labels: how dependent the latents are, and how many are in use (Locatello et al. 2019)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.metrics.information import Floats, as_floats, checked, discretised, histogram_facts, mutual_information_matrix
from lddr.metrics.metric import Count, NotNegative, Positive, Result, metric


@dataclass(frozen=True)
class UnsupervisedResult(Result):
    """The total correlation in nats (the score), and what else the codes alone tell.

    Fewer `directions` than `active_units` means that active latents are collinear: their total correlation is
    infinite, and the score is what is left of it when no eigenvalue counts as less than the smallest one allowed.
    """

    mutual_information_score: float  # nats, mean over all pairs of latents
    wasserstein_correlation: float
    wasserstein_correlation_normalised: float  # by the sum of the variances
    active_units: int
    directions: int
    variances: tuple[float, ...]
    pairwise_information: Floats  # (latents, latents), nats


@metric("unsupervised", "Total correlation", parts={"samples": 10_000})
def unsupervised(
    codes: ArrayLike, num_bins: Count = 20, active_variance: NotNegative = 0.01, smallest_eigenvalue: Positive = 1e-12
) -> UnsupervisedResult:
    """Of a Gaussian with the covariance of the active latents, ½ (Σ log variance - log det); no factors are needed.

    A latent is active if its variance is above 0.01 (Burda et al. 2016). The other scores take all latents, as
    published; so does the total correlation with `active_variance=0`, as far as they vary.
    """
    given = np.atleast_1d(as_floats(codes))
    values, _ = checked(given, np.zeros((len(given), 1), np.int64))
    active = active_latents(values, active_variance)
    eigenvalues = correlation_eigenvalues(values[:, active])
    information = mutual_information_matrix(*[discretised(values, num_bins)] * 2)
    distance, total = wasserstein_correlation(values), float(np.trace(covariance(values)))
    return UnsupervisedResult(
        total_correlation(eigenvalues, smallest_eigenvalue),
        mean_off_diagonal(information),
        distance,
        distance / total if total > 0 else 0.0,
        int(active.sum()),
        int((eigenvalues > smallest_eigenvalue).sum()),
        tuple(values.var(axis=0).tolist()),
        information,
        settings=histogram_facts(values),
    )


def active_latents(codes: Floats, variance: float) -> NDArray[np.bool_]:
    """Which latents have more than this variance."""
    return centred(codes).var(axis=0) > variance


def centred(codes: Floats) -> Floats:
    """The codes without their mean; the first sample is taken off before, so that what is constant is exactly 0."""
    moved = codes - codes[0]
    return moved - moved.mean(axis=0)


def covariance(codes: Floats) -> Floats:
    """(latents, latents), unbiased; 0 for a single sample."""
    return centred(codes).T @ centred(codes) / max(len(codes) - 1, 1)


def correlation_eigenvalues(codes: Floats) -> Floats:
    """Eigenvalues of the correlations of latents that all vary; their product is det covariance / Π variances."""
    scaled = centred(codes) / codes.std(axis=0)
    return np.asarray(np.linalg.eigvalsh(scaled.T @ scaled / len(codes)), np.float64)


def total_correlation(eigenvalues: Floats, smallest: float) -> float:
    """-½ Σ log eigenvalue of the correlations, none counted as less than the smallest one allowed."""
    return max(0.0, float(-0.5 * np.log(np.maximum(eigenvalues, smallest)).sum()))


def wasserstein_correlation(codes: Floats) -> float:
    """Squared 2-Wasserstein distance of a Gaussian from its marginals: 2 tr Σ - 2 tr (D^½ Σ D^½)^½, D = diag Σ."""
    matrix = covariance(codes)
    deviation = np.sqrt(np.diag(matrix))
    eigenvalues = np.linalg.eigvalsh(deviation[:, None] * matrix * deviation)
    return max(0.0, float(2 * np.trace(matrix) - 2 * np.sqrt(np.maximum(eigenvalues, 0)).sum()))


def mean_off_diagonal(matrix: Floats) -> float:
    """Mean over the pairs of different latents; 0 if there is one latent only."""
    pairs = len(matrix) * (len(matrix) - 1)
    return float((matrix.sum() - np.trace(matrix)) / pairs) if pairs else 0.0
