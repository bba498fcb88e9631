"""Mutual information between codes and factors, from histograms."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.arrays import as_array
from lddr.errors import UserError

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
DENSE = 4  # possible pairs of values per sample
LARGEST = 1e50  # codes are squared, and some solvers hang on overflow


def as_codes(codes: ArrayLike) -> Floats:
    """Return codes in double precision; refuse anything that is not a numeric table."""
    try:
        return np.asarray(as_array(codes), np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"the codes must be a table of numbers, (samples, latents): {error}") from error


def checked(codes: ArrayLike, factors: ArrayLike) -> tuple[Floats, Whole]:
    """Return codes (samples, latents) and factors (samples, factors) of the same samples, all finite."""
    values, truth = as_codes(codes), as_array(factors)
    check_orientation(values.shape, len(truth) if truth.ndim else 0)
    if values.ndim != 2 or truth.ndim != 2 or len(values) != len(truth) or not values.size:
        raise UserError(
            f"expected codes (samples, latents) and factors (samples, factors), got {values.shape}, {truth.shape}"
        )
    if not np.isfinite(values).all():
        raise UserError("the codes contain NaN or infinite values; fix them before they are scored")
    if np.abs(values).max() > LARGEST:
        raise UserError(f"codes beyond {LARGEST:g} are too large to be scored; scale them down")
    if truth.dtype.kind not in "biuf" or (truth.dtype.kind == "f" and not (truth == np.rint(truth)).all()):
        raise UserError(
            f"factors must be whole numbers, and these {truth.dtype} are not; give the numbers of their values"
        )
    return values, truth.astype(np.int64)


def check_orientation(shape: tuple[int, ...], samples: int) -> None:
    """Refuse codes (latents, samples) of as many samples as there are rows of factors."""
    if len(shape) == 2 and shape[0] != samples == shape[1]:
        raise UserError(f"codes of shape {shape} have a row per latent, and there are {samples} samples; give codes.T")


def in_column(values: ArrayLike) -> NDArray:
    """Return the values (samples,) of one factor as a table (samples, 1)."""
    return as_array(values).reshape(-1, 1)


def checked_parts(
    codes_train: ArrayLike, factors_train: ArrayLike, codes_test: ArrayLike, factors_test: ArrayLike
) -> tuple[Floats, Whole, Floats, Whole]:
    """Return a training and a test sample, with the same latents and factors."""
    train, truth = checked(codes_train, factors_train)
    test, asked = checked(codes_test, factors_test)
    if train.shape[1] != test.shape[1] or truth.shape[1] != asked.shape[1]:
        raise UserError(
            f"train and test must have the same latents and factors, but train has {train.shape[1]} latents and "
            f"{truth.shape[1]} factors, test has {test.shape[1]} latents and {asked.shape[1]} factors"
        )
    return train, truth, test, asked


def discretised(codes: Floats, num_bins: int) -> Whole:
    """Return the bin of every code, 1 … num_bins, in equal bins between a latent's extremes."""
    columns = [np.digitize(column, _edges(column, num_bins)[:-1]) for column in map(_in_own_precision, codes.T)]
    return np.stack(columns, axis=1).astype(np.int64)


def histogram_facts(codes: Floats) -> dict[str, Any]:
    """Return the details of a score that is based on histograms."""
    singles = all(_in_own_precision(column).dtype == np.float32 for column in codes.T)
    return {"samples": len(codes), "bin_edges": "float32" if singles else "float64"}


def _in_own_precision(column: Floats) -> NDArray[np.floating]:
    """Cast to 32 bits if that is lossless: the bin edges are then in 32 bits, too, which decides for codes on an edge.

    Networks output such codes, and the published scores were computed this way.
    """
    with np.errstate(over="ignore"):
        single = column.astype(np.float32)
    return single if np.array_equal(single, column) else column


def _edges(column: NDArray[np.floating], num_bins: int) -> NDArray[np.floating]:
    """Return the edges of `np.histogram`, which refuses codes that are almost equal."""
    low, high = column.min(), column.max()
    margin = column.dtype.type(0.5 * (low == high))
    return np.linspace(low - margin, high + margin, num_bins + 1, dtype=column.dtype)


def histogram_information(codes: ArrayLike, factors: ArrayLike, num_bins: int) -> tuple[Floats, Whole, Floats, Floats]:
    """Return codes, factors, their mutual information (latents, factors), and the entropies of the factors."""
    values, truth = checked(codes, factors)
    information = mutual_information_matrix(discretised(values, num_bins), truth)
    return values, truth, information, entropies_of(truth)


def shares_of(information: Floats, entropies: Floats) -> Floats:
    """Return information / entropies, which may be those of columns or rows; 0 where an entropy is 0."""
    return np.divide(information, entropies, out=np.zeros_like(information), where=entropies > 0)


def entropies_of(columns: Whole) -> Floats:
    """Return the entropy of every column in nats."""
    return np.array([entropy(column) for column in columns.T])


def entropy(values: Whole) -> float:
    """Return the entropy in nats of the empirical distribution of integers."""
    return _entropy(np.unique(values, return_counts=True)[1])


def mutual_information(left: Whole, right: Whole) -> float:
    """Return the mutual information in nats of two columns of integers: H(left) + H(right) - H(both)."""
    return _information(_numbered(left), _numbered(right))


def mutual_information_matrix(bins: Whole, factors: Whole) -> Floats:
    """Return the mutual information of each latent with each factor: (latents, factors)."""
    known = [_numbered(factor) for factor in factors.T]
    return np.array([[_information(latent, factor) for factor in known] for latent in map(_numbered, bins.T)])


def _entropy(counts: Whole) -> float:
    """Return the entropy in nats of value counts, which are never 0."""
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _numbered(column: Whole) -> tuple[Whole, int, float]:
    """Return a column with its values numbered from 0, their number, and their entropy."""
    values, numbers, counts = np.unique(column, return_inverse=True, return_counts=True)
    return numbers.astype(np.int64), len(values), _entropy(counts)


def _information(left: tuple[Whole, int, float], right: tuple[Whole, int, float]) -> float:
    both = left[0] * right[1] + right[0]
    is_dense = left[1] * right[1] <= DENSE * len(both)  # then counting is many times faster than sorting
    counts = np.bincount(both) if is_dense else np.unique(both, return_counts=True)[1]
    return max(0.0, left[2] + right[2] - _entropy(counts[counts > 0]))
