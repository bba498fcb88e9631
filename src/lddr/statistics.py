"""Rank correlation and bootstrap intervals, for every table and claim."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
TAILS = 0.025, 0.975  # the ends of a 95 % interval


def spearman(left: ArrayLike, right: ArrayLike) -> Floats:
    """Return Spearman's rank correlation along the last axis, (…, samples) → (…); NaN where either side is constant.

    Other than `scipy.stats.spearmanr` it takes many pairs of samples at once, as a bootstrap has them.
    """
    from scipy.stats import rankdata

    ranks = [rankdata(values, axis=-1) for values in (left, right)]
    one, other = (rank - rank.mean(axis=-1, keepdims=True) for rank in ranks)
    size = np.sqrt((one**2).sum(axis=-1) * (other**2).sum(axis=-1))
    with np.errstate(invalid="ignore"):
        return np.clip((one * other).sum(axis=-1) / size, -1, 1)


def bootstrap_interval(
    statistic: Callable[..., Floats],
    *groups: ArrayLike,
    resamples: int = 1000,
    generator: np.random.Generator | None = None,
) -> tuple[float, float]:
    """Return the 95 % percentile interval of a statistic of some groups of values, each resampled with replacement.

    `statistic` takes (resamples, size of the group, …) of every group and returns (resamples,). Resamples for which it
    is NaN do not count. `scipy.stats.bootstrap` would return NaN for those, and draws the same numbers otherwise.
    """
    generator = np.random.default_rng(0) if generator is None else generator
    arrays = [np.asarray(group) for group in groups]
    drawn = [array[generator.integers(len(array), size=(resamples, len(array)))] for array in arrays]
    low, high = np.nanquantile(statistic(*drawn), TAILS)
    return float(low), float(high)
