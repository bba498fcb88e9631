"""Factor spaces: which factors a dataset has, and which image shows which values of them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.errors import UserError

Indices = NDArray[np.int64]
UNKNOWN = -1  # in the rows of a `FactorTable`: the value of a factor that is not labelled


@dataclass(frozen=True)
class Factor:
    """One factor of variation.

    Parameters
    ----------
    name
        Its name.
    size
        The number of its values.
    values
        What each value stands for, if known.

    Examples
    --------
    >>> from lddr.data.factors import Factor
    >>> Factor("shape", 3, ("square", "ellipse", "heart")).label(2)
    'heart'
    """

    name: str
    size: int
    values: tuple[str | float, ...] | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"factor {self.name!r} needs at least one value, not {self.size}")
        if self.values is not None and len(self.values) != self.size:
            raise ValueError(f"factor {self.name!r} has {self.size} values but {len(self.values)} labels")

    def label(self, value: int) -> str:
        """Return the label of a value: "heart", "0.5", or its number if nothing else is known."""
        if self.values is None:
            return str(value)
        meaning = self.values[value]
        return meaning if isinstance(meaning, str) else f"{meaning:.4g}"


class FactorSpace(ABC):
    """The images of a dataset, numbered from 0, and the ground-truth factors of each.

    All methods take and return whole arrays. Samples are image numbers; `factors_of` returns their factor values.

    Examples
    --------
    >>> import lddr, numpy as np
    >>> space = lddr.load_dataset("circles").space
    >>> space.names, space.sizes, space.size
    (('x', 'y'), (40, 40), 1600)
    >>> space.factors_of([0, 41])
    array([[0, 0],
           [1, 1]])
    >>> space.indices_of([[1, 1]])
    array([41])
    >>> same_x = space.sample_with(np.random.default_rng(0), 0, [7, 7, 7])
    >>> space.factors_of(same_x)[:, 0]
    array([7, 7, 7])
    """

    factors: tuple[Factor, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the factors, in order."""
        return tuple(factor.name for factor in self.factors)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each factor."""
        return tuple(factor.size for factor in self.factors)

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of images."""

    @property
    def is_complete(self) -> bool:
        """Whether every factor of every image is known."""
        return True

    @property
    def num_labelled(self) -> int:
        """The number of images with at least one known factor."""
        return self.size

    def labelled(self) -> Indices:
        """Return the images with at least one known factor."""
        return np.arange(self.size)

    @abstractmethod
    def factors_of(self, indices: ArrayLike) -> Indices:
        """Return the factor values of images, -1 where a value is unknown: (…) → (…, factors)."""

    @abstractmethod
    def indices_of(self, factors: ArrayLike, generator: np.random.Generator | None = None) -> Indices:
        """Return images with these factor values: (…, factors) → (…).

        Of several images with the same values, the generator samples one; without it, the first is returned.
        """

    @abstractmethod
    def sample_with(self, generator: np.random.Generator, factor: int, values: ArrayLike) -> Indices:
        """Return random images among those whose factor number `factor` has the given values: (…) → (…)."""

    def sample(self, generator: np.random.Generator, count: int | tuple[int, ...]) -> Indices:
        """Return images sampled uniformly, with replacement."""
        return generator.integers(self.size, size=count, dtype=np.int64)

    def content(self) -> bytes:
        """Return all factors of all images, for a checksum."""
        return repr(self.factors).encode() + self.factors_of(np.arange(self.size)).tobytes()

    def position(self, name: str) -> int:
        """Return the number of the factor called `name`."""
        if name not in self.names:
            raise UserError(f"no factor {name!r} here; the factors are: {', '.join(self.names) or 'none'}")
        return self.names.index(name)

    def __str__(self) -> str:
        return ", ".join(f"{factor.name} {factor.size}" for factor in self.factors) or "no factors"


@dataclass(frozen=True)
class FactorGrid(FactorSpace):
    """Every combination of the factor values; the last factor varies fastest.

    Parameters
    ----------
    factors
        The ground-truth factors.
    hidden
        Factors that change the image but are not ground truth (SmallNORB's instance). They vary faster still, count in
        the numbering, and are sampled where only the ground truth is given.

    Examples
    --------
    >>> from lddr.data.factors import Factor, FactorGrid
    >>> grid = FactorGrid((Factor("shape", 3), Factor("x", 32)))
    >>> grid.size, grid.factors_of(33).tolist()
    (96, [1, 1])
    """

    factors: tuple[Factor, ...]
    hidden: tuple[Factor, ...] = ()

    def __post_init__(self) -> None:
        if self.size > np.iinfo(np.int64).max:
            raise UserError(f"a factor space of {self.size} images is too large to number (the limit is 2^63 - 1)")

    @property
    def all_sizes(self) -> tuple[int, ...]:
        return tuple(factor.size for factor in (*self.factors, *self.hidden))

    @property
    def size(self) -> int:
        return prod(self.all_sizes)

    def values_of(self, indices: ArrayLike) -> Indices:
        """Return the values of all factors, the hidden ones last: (…) → (…, factors + hidden)."""
        return np.stack(np.unravel_index(whole_numbers(indices, self.size, "image"), self.all_sizes), axis=-1)

    def number_of(self, values: ArrayLike) -> Indices:
        """Return the image with these values of all factors, the hidden ones last: (…, factors + hidden) → (…)."""
        columns = _checked_columns(values, (*self.factors, *self.hidden))
        return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(columns, -1, 0)), self.all_sizes), np.int64)

    def factors_of(self, indices: ArrayLike) -> Indices:
        return self.values_of(indices)[..., : len(self.factors)]

    def indices_of(self, factors: ArrayLike, generator: np.random.Generator | None = None) -> Indices:
        columns = _checked_columns(factors, self.factors)
        hidden = np.zeros((*columns.shape[:-1], len(self.hidden)), np.int64)
        if generator is not None:
            for place, factor in enumerate(self.hidden):
                hidden[..., place] = generator.integers(factor.size, size=hidden.shape[:-1], dtype=np.int64)
        return self.number_of(np.concatenate([columns, hidden], axis=-1))

    def sample_with(self, generator: np.random.Generator, factor: int, values: ArrayLike) -> Indices:
        wanted = whole_numbers(values, self.factors[factor].size, self.factors[factor].name)
        drawn = self.values_of(self.sample(generator, wanted.shape))
        drawn[..., factor] = wanted
        return self.number_of(drawn)


class FactorTable(FactorSpace):
    """Images with a table of factor values: any of the combinations, in any order, or no factors at all.

    Images are sampled whether their factors are known or not; an image with an unknown value is never among those with
    given values.

    Parameters
    ----------
    factors
        The ground-truth factors.
    rows
        The values of each image, -1 where unknown: (images, factors).

    Examples
    --------
    >>> from lddr.data.factors import Factor, FactorTable
    >>> table = FactorTable([Factor("shape", 2)], [[0], [1], [-1]])
    >>> table.indices_of([[1]]), table.num_labelled
    (array([1]), 2)
    """

    def __init__(self, factors: Sequence[Factor], rows: ArrayLike) -> None:
        self.factors = tuple(factors)
        self.rows = _checked_columns(rows, self.factors, lowest=UNKNOWN)  # (images, factors)
        self.known: NDArray[np.bool_] = self.rows != UNKNOWN  # (images, factors)

    @property
    def size(self) -> int:
        return len(self.rows)

    @property
    def is_complete(self) -> bool:
        return bool(self.known.all())

    @property
    def num_labelled(self) -> int:
        return len(self.labelled())

    def labelled(self) -> Indices:
        return np.flatnonzero(self.known.any(axis=1))

    def fully_labelled(self) -> Indices:
        """Return the images with all factors known."""
        return np.flatnonzero(self.known.all(axis=1))

    def subset(self, images: Indices) -> "FactorTable":
        """Return the factors of some of the images, renumbered in the given order."""
        return FactorTable(self.factors, self.rows[images])

    def __str__(self) -> str:
        if self.is_complete:
            return super().__str__()
        counts = zip(self.factors, self.known.sum(axis=0).tolist(), strict=True)
        return ", ".join(f"{factor.name} {factor.size} ({count} of {self.size} known)" for factor, count in counts)

    def factors_of(self, indices: ArrayLike) -> Indices:
        return self.rows[whole_numbers(indices, self.size, "image")]

    def indices_of(self, factors: ArrayLike, generator: np.random.Generator | None = None) -> Indices:
        wanted = _checked_columns(factors, self.factors)
        flat = wanted.reshape(-1, len(self.factors))
        _, cells = np.unique(np.concatenate([self.rows, flat]), axis=0, return_inverse=True)
        picked = _pick(generator, cells[: self.size], cells[self.size :])
        if np.any(picked < 0):
            missing = zip(self.factors, flat[picked < 0][0], strict=True)
            shown = ", ".join(f"{factor.name}={factor.label(value)}" for factor, value in missing)
            raise UserError(f"no image shows {shown}: this dataset does not hold every combination of its factors")
        return picked.reshape(wanted.shape[:-1])

    def sample_with(self, generator: np.random.Generator, factor: int, values: ArrayLike) -> Indices:
        wanted = whole_numbers(values, self.factors[factor].size, self.factors[factor].name)
        picked = _pick(generator, self.rows[:, factor], wanted)
        if np.any(picked < 0):
            value = wanted[picked < 0][0]
            raise UserError(f"no image has {self.factors[factor].name}={self.factors[factor].label(value)}")
        return picked


def _pick(generator: np.random.Generator | None, keys: Indices, wanted: Indices) -> Indices:
    """Return for each wanted key the position of an equal one in `keys` (the first without a generator), or -1."""
    order = np.argsort(keys, kind="stable")
    first, last = (np.searchsorted(keys[order], wanted, side=side) for side in ("left", "right"))
    found = first < last
    chosen = first if generator is None else generator.integers(first, np.maximum(last, first + 1))
    return np.where(found, order[np.where(found, chosen, 0)], -1)


def _checked_columns(values: ArrayLike, factors: tuple[Factor, ...], lowest: int = 0) -> Indices:
    array = np.asarray(values)
    if array.ndim < 1 or array.shape[-1] != len(factors):
        raise UserError(f"expected {len(factors)} factor values per image, got an array of shape {array.shape}")
    for column, factor in enumerate(factors):
        whole_numbers(array[..., column], factor.size, factor.name, lowest)
    return array.astype(np.int64)


def whole_numbers(numbers: ArrayLike, limit: int, name: str, lowest: int = 0) -> Indices:
    """Return these numbers; refuse any that is not an integer in lowest … limit - 1."""
    array = np.asarray(numbers)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise UserError(f"{name} numbers must be integers, not {array.dtype}")
    if array.size and (array.min() < lowest or array.max() >= limit):
        wrong = array.min() if array.min() < lowest else array.max()
        raise UserError(f"{name} number {wrong} is not in 0 … {limit - 1}")
    return array.astype(np.int64)
