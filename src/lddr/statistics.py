"""Rank correlation and bootstrap intervals, for every table and claim."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
TAILS = 0.025, 0.975  # the ends of a 95 % interval


def spearman(left: ArrayLike, right: ArrayLike) -> Floats:
    """Return Spearman's rank correlation along the last axis, (…, samples) → (…); NaN where either side is constant.

    Unlike `scipy.stats.spearmanr` it takes many pairs of samples at once, which bootstraps need.
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
    values = statistic(*drawn)
    low, high = np.nanquantile(values, TAILS) if not np.isnan(values).all() else (np.nan, np.nan)
    return float(low), float(high)


def resampled_rows(count: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Return rows sampled with replacement, in random order, except that copies of a row stay together.

    The copies are then in the same fold if training rows are divided into folds.
    """
    times = np.bincount(generator.integers(count, size=count), minlength=count)
    order = generator.permutation(count)
    return np.repeat(order, times[order])


def centred_interval(
    value: float, resamples: Floats, confidence: float, is_share: bool
) -> tuple[tuple[float, float], float]:
    """Return the middle part of the resamples, shifted so that their median is the value, and the size of that shift.

    A resample has 63 % of the distinct rows, which biases it: information is overestimated, classifiers learn less.
    Shares, which are in [0, 1], are clipped to that range.
    """
    low, middle, high = np.quantile(resamples, [(1 - confidence) / 2, 0.5, (1 + confidence) / 2])
    shift = middle - value
    least = 0.0 if min(resamples.min(), value) >= 0 else -np.inf
    most = 1.0 if is_share and max(resamples.max(), value) <= 1 else np.inf
    return (float(max(low - shift, least)), float(min(high - shift, most))), float(shift)
