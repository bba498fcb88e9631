"""Numbers with the range that chance leaves them, and what they say about a claim: the rules, fixed before looking."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
RESAMPLES, CONFIDENCE = 10_000, 0.95
FEWEST = 5  # runs of each kind
SHOWN, OPEN, OPPOSITE, FEW = "shown", "not shown", "the opposite", "too few runs"


@dataclass(frozen=True)
class Estimate:
    """A number, its 95 % interval, and from how many runs at least."""

    value: float
    low: float
    high: float
    runs: int

    def verdict(self, limit: float = 0.0) -> str:
        """Whether it is above a limit: the whole interval must be."""
        if self.runs < FEWEST:
            return FEW
        return SHOWN if self.low > limit else OPPOSITE if self.high < limit else OPEN

    def told(self, digits: int = 3, unit: str = "") -> str:
        if np.isnan(self.value):
            return "–"
        number = f"{{:+.{digits}f}}"
        value, low, high = (number.format(x).replace("-", "−") for x in (self.value, self.low, self.high))
        return f"{value}{unit} ({low} to {high})"


def together(estimates: Iterable[Estimate], limit: float = 0.0) -> str:
    """The verdict on a claim about several datasets: theirs if it is the same."""
    verdicts = {one.verdict(limit) for one in estimates}
    return verdicts.pop() if len(verdicts) == 1 else OPEN


def resampled(estimate: Callable[..., Floats], *groups: ArrayLike) -> Estimate:
    """Of groups of independent runs; `estimate` takes (…, runs) of each and is worked out over resamples of all."""
    generator = np.random.default_rng(0)
    arrays = [np.asarray(group, np.float64) for group in groups]
    drawn = [array[generator.integers(len(array), size=(RESAMPLES, len(array)))] for array in arrays]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.nanquantile(estimate(*drawn), [tail, 1 - tail])
    return Estimate(float(estimate(*arrays)), float(low), float(high), min(map(len, arrays)))


def above(new: Floats, old: Floats) -> Floats:
    """Difference of medians."""
    return np.median(new, axis=-1) - np.median(old, axis=-1)


def gain(new: Floats, old: Floats) -> Floats:
    """Of the median, in percent."""
    return 100 * (np.median(new, axis=-1) / np.median(old, axis=-1) - 1)


def share(count: int, runs: int) -> Estimate:
    """A share of runs with Wilson's interval, in percent."""
    z, part = 1.959964, count / runs
    middle = (part + z**2 / (2 * runs)) / (1 + z**2 / runs)
    half = z / (1 + z**2 / runs) * np.sqrt(part * (1 - part) / runs + z**2 / (4 * runs**2))
    return Estimate(100 * part, max(0.0, 100 * (middle - half)), min(100.0, 100 * (middle + half)), runs)


def paired_ranks(preference: Floats, truth: Floats) -> Estimate:
    """Spearman's correlation over runs, larger preference for larger truth."""
    from lddr.selection.report import correlation

    found = correlation("", "", preference, truth)
    nothing = float("nan")
    values = [nothing if value is None else value for value in (found.spearman, found.low, found.high)]
    return Estimate(values[0], values[1], values[2], found.runs)


def ranks_within(groups: Sequence[Floats]) -> Estimate:
    """Spearman's correlation of (runs, preference and truth) of groups, ranked in each by itself and put together."""
    return replace(resampled(_within, *groups), runs=sum(map(len, groups)))


def _within(*groups: Floats) -> Floats:
    """Of (…, runs, 2); not a number where all preferences, or all truths, are equal."""
    from scipy.stats import rankdata

    centred = [rankdata(group, axis=-2) - (group.shape[-2] + 1) / 2 for group in groups]
    ranks = np.concatenate(centred, axis=-2)
    products = (ranks[..., :, None] * ranks[..., None, :]).sum(-3)  # (…, 2, 2)
    with np.errstate(invalid="ignore"):
        return products[..., 0, 1] / np.sqrt(products[..., 0, 0] * products[..., 1, 1])
