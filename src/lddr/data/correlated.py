"""Correlated factors: sample some combinations of factor values more often than others (Träuble et al. 2021)."""

from copy import copy
from math import isfinite, prod

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.dataset import Dataset
from lddr.data.factors import UNKNOWN, FactorGrid, FactorSpace, FactorTable, Indices, whole_numbers
from lddr.errors import UserError
from lddr.statistics import spearman

LARGEST = 10_000_000  # combinations of the values of correlated factors
HOW = 'write pairs of factors and the width of each, such as "x:y=0.2", or "x:*=0.2" for x and all other factors'


class Correlated(FactorSpace):
    """The same images, sampled with correlated factors: p(c₁, c₂) ∝ exp(-(c₁ - c₂)² / 2σ²).

    The values of a factor are its numbers divided by the largest, so that they are in [0, 1]; with the unscaled numbers
    this is the published exp(-(c₁ - αc₂)² / 2σ²) where α is the ratio of the largest. Several pairs multiply. All other
    factors stay uniform and independent. Of images with a table of factors, only fully labelled ones are sampled.

    Parameters
    ----------
    space
        The factors of a dataset.
    rule
        Pairs of factors, each with its σ: "x:y=0.2", "shape:x=0.1,shape:y=0.1", or "x:*=0.2" for x and every other
        factor (a shared confounder, Roth et al. 2023).

    Examples
    --------
    >>> import lddr, numpy as np
    >>> from lddr.data.correlated import Correlated
    >>> space = lddr.load_dataset("circles").space
    >>> images = Correlated(space, "x:y=0.1").sample(np.random.default_rng(0), 10_000)
    >>> round(float(np.corrcoef(space.factors_of(images).T)[0, 1]), 1)
    0.9
    """

    def __init__(self, space: FactorSpace, rule: str) -> None:
        if not isinstance(space, FactorGrid | FactorTable):
            raise UserError(f"the factors of this dataset cannot be correlated; leave {rule!r} out")
        self._space, self.factors = space, space.factors
        self.pairs = _parsed(rule, space)
        self._axes = sorted({factor for pair in self.pairs for factor in pair})
        sizes = [space.sizes[axis] for axis in self._axes]
        if isinstance(space, FactorTable):
            self._images = space.fully_labelled()
            values = space.rows[self._images]
        else:
            if prod(sizes) > LARGEST:
                most = f"more than the {LARGEST:,} that can be correlated; correlate fewer factors"
                raise UserError(f"these factors have {prod(sizes):,} combinations of values, {most}")
            values = np.zeros((prod(sizes), len(space.sizes)), np.int64)
            values[:, self._axes] = np.stack(np.unravel_index(np.arange(prod(sizes)), sizes), axis=1)
        exponent = np.zeros(len(values))
        for (first, second), width in self.pairs.items():
            scaled = (values[:, factor] / (space.sizes[factor] - 1) for factor in (first, second))
            exponent -= (np.subtract(*scaled) / width) ** 2 / 2
        self._values, self._weights = values, np.exp(exponent)  # the factors of what is sampled, and how often
        if not self._weights.sum() > 0:
            cure = "label more images, or give a larger width"
            raise UserError(f"no image has values that {rule!r} allows; {cure}")

    @property
    def size(self) -> int:
        return self._space.size

    def factors_of(self, indices: ArrayLike) -> Indices:
        return self._space.factors_of(indices)

    def indices_of(self, factors: ArrayLike, generator: np.random.Generator | None = None) -> Indices:
        return self._space.indices_of(factors, generator)

    def sample(self, generator: np.random.Generator, count: int | tuple[int, ...]) -> Indices:
        return self._sample(generator, count, np.arange(len(self._weights)))

    def sample_with(self, generator: np.random.Generator, factor: int, values: ArrayLike) -> Indices:
        wanted = whole_numbers(values, self.factors[factor].size, self.factors[factor].name)
        if isinstance(self._space, FactorGrid) and factor not in self._axes:
            drawn = self._space.values_of(self.sample(generator, wanted.shape))
            drawn[..., factor] = wanted
            return self._space.number_of(drawn)
        column = self._values[:, factor]
        images = np.empty(wanted.shape, np.int64)
        for value in np.unique(wanted):
            rows = np.flatnonzero(column == value)
            if not self._weights[rows].sum() > 0:
                raise UserError(f"no image has {self.factors[factor].name}={self.factors[factor].label(value)}")
            images[wanted == value] = self._sample(generator, int((wanted == value).sum()), rows)
        return images

    def _sample(self, generator: np.random.Generator, count: int | tuple[int, ...], rows: Indices) -> Indices:
        """Sample images among these rows of `_values`."""
        cumulative = np.cumsum(self._weights[rows])
        picked = rows[np.searchsorted(cumulative, generator.random(count) * cumulative[-1], side="right")]
        if isinstance(self._space, FactorTable):
            return self._images[picked]
        values = self._space.values_of(self._space.sample(generator, count))
        values[..., self._axes] = self._values[picked][..., self._axes]
        return self._space.number_of(values)


def correlate(dataset: Dataset, rule: str) -> Dataset:
    """Return the same dataset, sampled with correlated factors: `lddr.evaluate` scores it on that distribution.

    Parameters
    ----------
    dataset
        Any dataset with factors; it is not changed.
    rule
        The pairs of factors and their widths, as for `Correlated`.

    Returns
    -------
    Dataset
        A copy that shares the images.

    Examples
    --------
    >>> import lddr, numpy as np
    >>> from lddr.data.correlated import correlate
    >>> circles = lddr.load_dataset("circles")
    >>> images = correlate(circles, "x:y=0.05").space.sample(np.random.default_rng(0), 1000)
    >>> x, y = circles.space.factors_of(images).T
    >>> bool(np.abs(x - y).mean() < 3)
    True
    """
    correlated = copy(dataset)
    correlated.space = Correlated(dataset.space, rule)
    return correlated


def rank_correlation(space: FactorSpace, images: ArrayLike, first: str, second: str) -> float:
    """Return Spearman's rank correlation of two factors over a sample of images.

    Parameters
    ----------
    space
        The factors of a dataset.
    images
        Image numbers, such as those that training has sampled.
    first, second
        The names of two factors. Images where either is unknown are ignored.

    Examples
    --------
    >>> import lddr, numpy as np
    >>> from lddr.data.correlated import Correlated, rank_correlation
    >>> space = lddr.load_dataset("circles").space
    >>> images = Correlated(space, "x:y=0.1").sample(np.random.default_rng(0), 10_000)
    >>> round(rank_correlation(space, images, "x", "y"), 1)
    0.9
    """
    values = space.factors_of(images)[..., [space.position(first), space.position(second)]].reshape(-1, 2)
    values = values[(values != UNKNOWN).all(axis=1)]
    for name, column in zip((first, second), values.T, strict=True):
        if len(np.unique(column)) < 2:
            raise UserError(f"the factor {name!r} does not vary in these images, so it has no rank correlation")
    return float(spearman(*values.T))


def _parsed(rule: str, space: FactorSpace) -> dict[tuple[int, int], float]:
    """Return the width σ of every pair of factors, the smaller number first."""
    pairs: dict[tuple[int, int], float] = {}
    for entry in rule.split(","):
        names, equals, number = entry.rpartition("=")
        first, colon, second = (word.strip() for word in names.partition(":"))
        if not (equals and colon and first and second):
            raise UserError(f"correlate cannot read {entry.strip()!r}; {HOW}")
        try:
            width = float(number)
        except ValueError:
            width = 0.0
        if not (isfinite(width) and width > 0):
            raise UserError(f"the width of a correlation must be a number above 0, not {number.strip()!r}; {HOW}")
        one = _varying(first, space)
        others = [factor for factor, size in enumerate(space.sizes) if size > 1 and factor != one]
        if second != "*":
            others = [_varying(second, space)]
        for other in others:
            if one == other:
                raise UserError(f"{first!r} cannot be correlated with itself; {HOW}")
            pair = min(one, other), max(one, other)
            if pair in pairs:
                raise UserError(f"{rule!r} has {' and '.join(space.names[each] for each in pair)} twice; {HOW}")
            pairs[pair] = width
    if not pairs:
        raise UserError(f"{rule!r} needs two factors that vary; choose another dataset, or leave correlate out")
    return pairs


def _varying(name: str, space: FactorSpace) -> int:
    if not space.factors:
        raise UserError(f"there are no factors to correlate, such as {name!r}; give labels, or leave correlate out")
    factor = space.position(name)
    if space.sizes[factor] < 2:
        raise UserError(f"the factor {name!r} has one value and cannot be correlated; choose another factor")
    return factor
