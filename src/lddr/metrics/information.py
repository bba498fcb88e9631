"""Mutual information between codes and factors, from histograms."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.errors import UserError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def checked(codes: ArrayLike, factors: ArrayLike) -> tuple[Floats, Whole]:
    """Codes (samples, latents) and factors (samples, factors) of the same samples, all finite."""
    values, truth = np.asarray(codes, np.float64), np.asarray(factors)
    if values.ndim != 2 or truth.ndim != 2 or len(values) != len(truth) or not len(values):
        raise UserError(
            f"expected codes (samples, latents) and factors (samples, factors), got {values.shape}, {truth.shape}"
        )
    if not np.isfinite(values).all():
        raise UserError("the codes hold values that are not finite; mend them before they are scored")
    if not np.issubdtype(truth.dtype, np.integer):
        raise UserError(f"factors must be whole numbers, not {truth.dtype}")
    return values, truth.astype(np.int64)


def discretised(codes: Floats, num_bins: int) -> Whole:
    """The number of the bin of every code, 1 … num_bins, in equal bins between a latent's extremes."""
    columns = [np.digitize(column, np.histogram(column, num_bins)[1][:-1]) for column in codes.T]
    return np.stack(columns, axis=1).astype(np.int64)


def entropy(values: Whole) -> float:
    """Entropy in nats of the empirical distribution of whole numbers."""
    shares = np.unique(values, return_counts=True)[1] / len(values)
    return float(-(shares * np.log(shares)).sum())


def mutual_information(left: Whole, right: Whole) -> float:
    """Mutual information in nats of two columns of whole numbers: H(left) + H(right) - H(both)."""
    _, left_codes = np.unique(left, return_inverse=True)
    _, right_codes = np.unique(right, return_inverse=True)
    both = left_codes.astype(np.int64) * (right_codes.max() + 1) + right_codes
    return max(0.0, entropy(left) + entropy(right) - entropy(both))


def mutual_information_matrix(bins: Whole, factors: Whole) -> Floats:
    """(latents, factors)."""
    return np.array([[mutual_information(latent, factor) for factor in factors.T] for latent in bins.T])
