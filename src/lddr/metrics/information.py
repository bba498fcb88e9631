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


def checked_parts(
    codes_train: ArrayLike, factors_train: ArrayLike, codes_test: ArrayLike, factors_test: ArrayLike
) -> tuple[Floats, Whole, Floats, Whole]:
    """A sample to train on and one to test on, with the same latents and factors."""
    train, truth = checked(codes_train, factors_train)
    test, asked = checked(codes_test, factors_test)
    if train.shape[1] != test.shape[1] or truth.shape[1] != asked.shape[1]:
        raise UserError(
            f"train and test must have the same latents and factors, but train has {train.shape[1]} latents and "
            f"{truth.shape[1]} factors, test has {test.shape[1]} latents and {asked.shape[1]} factors"
        )
    return train, truth, test, asked


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
