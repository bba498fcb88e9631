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
    """One factor of variation: its name, how many values it takes and, where known, what each value stands for."""

    name: str
    size: int
    values: tuple[str | float, ...] | None = None

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ValueError(f"factor {self.name!r} needs at least one value, not {self.size}")
        if self.values is not None and len(self.values) != self.size:
            raise ValueError(f"factor {self.name!r} has {self.size} values but {len(self.values)} labels")

    def label(self, value: int) -> str:
        """What value number `value` is called: "heart", "0.5", or its number when nothing better is known."""
        if self.values is None:
            return str(value)
        meaning = self.values[value]
        return meaning if isinstance(meaning, str) else f"{meaning:.4g}"


class FactorSpace(ABC):
    """The images of a dataset, numbered from 0, and the ground-truth factors of each.

    Everything takes and gives whole arrays. Draws are image numbers: ask `factors_of` for the values behind them.
    """

    factors: tuple[Factor, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the factors, in their order."""
        return tuple(factor.name for factor in self.factors)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many values each factor has."""
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
        """The images with at least one known factor."""
        return np.arange(self.size)

    @abstractmethod
    def factors_of(self, indices: ArrayLike) -> Indices:
        """The ground-truth factor values of images, -1 where a value is unknown: (…) → (…, factors)."""

    @abstractmethod
    def indices_of(self, factors: ArrayLike, generator: np.random.Generator | None = None) -> Indices:
        """The images that show these factor values: (…, factors) → (…).

        Where several images show the same values the generator picks one of them; without it, the first.
        """

    @abstractmethod
    def sample_with(self, generator: np.random.Generator, factor: int, values: ArrayLike) -> Indices:
        """Images drawn at random among those whose factor number `factor` has the given values: (…) → (…)."""

    def sample(self, generator: np.random.Generator, count: int | tuple[int, ...]) -> Indices:
        """Images drawn uniformly, with replacement."""
        return generator.integers(self.size, size=count, dtype=np.int64)

    def content(self) -> bytes:
        """All factors of all images, for a checksum."""
        return repr(self.factors).encode() + self.factors_of(np.arange(self.size)).tobytes()

    def position(self, name: str) -> int:
        """The number of the factor called `name`."""
        if name not in self.names:
            raise UserError(f"no factor {name!r} here; the factors are: {', '.join(self.names) or 'none'}")
        return self.names.index(name)

    def __str__(self) -> str:
        return ", ".join(f"{factor.name} {factor.size}" for factor in self.factors) or "no factors"


@dataclass(frozen=True)
class FactorGrid(FactorSpace):
    """Every combination of the factor values, the last factor turning fastest.

    `hidden` factors change the image but are no ground truth (SmallNORB's instance): they turn faster still, take
    part in the numbering, and are drawn at random where only the ground truth is given.
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
        """The values of all factors, the hidden ones last: (…) → (…, factors + hidden)."""
        try:
            columns = np.unravel_index(np.asarray(indices), self.all_sizes)
        except (TypeError, ValueError):  # say what is wrong with the numbers, or bear with an empty list
            columns = np.unravel_index(whole_numbers(indices, self.size, "image"), self.all_sizes)
        return np.stack(columns, axis=-1)

    def number_of(self, values: ArrayLike) -> Indices:
        """The image number of the values of all factors, the hidden ones last: (…, factors + hidden) → (…)."""
        columns = _checked_columns(values, (*self.factors, *self.hidden))
        return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(columns, -1, 0)), self.all_sizes), np.int64)

    def factors_of(self, indices: ArrayLike) -> Indices:
        return self.values_of(indices)[..., : len(self.factors)]

    def indices_of(self, factors: ArrayLike, generator: np.random.Generator | None = None) -> Indices:
        columns = _checked_columns(factors, self.factors)
        shape = columns.shape[:-1]
        hidden = np.zeros((*shape, len(self.hidden)), np.int64) if generator is None else self._hidden(generator, shape)
        return self.number_of(np.concatenate([columns, hidden], axis=-1))

    def sample_with(self, generator: np.random.Generator, factor: int, values: ArrayLike) -> Indices:
        wanted = whole_numbers(values, self.factors[factor].size, self.factors[factor].name)
        drawn = self.values_of(self.sample(generator, wanted.shape))
        drawn[..., factor] = wanted
        return self.number_of(drawn)

    def _hidden(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Indices:
        columns = [generator.integers(factor.size, size=shape, dtype=np.int64) for factor in self.hidden]
        return np.stack(columns, axis=-1) if columns else np.zeros((*shape, 0), np.int64)


class FactorTable(FactorSpace):
    """Images with a table of factor values, a row each: any of the combinations, in any order, or no factors at all.

    A value of -1 is unknown. Images are sampled whether their factors are known or not; an image with an unknown value
    is never among those that show given values.
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
        """The images with all factors known."""
        return np.flatnonzero(self.known.all(axis=1))

    def subset(self, images: Indices) -> "FactorTable":
        """The same factors of some of the images, numbered anew in the given order."""
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
    """For each wanted key, the position of one of its equals in `keys` (the first without a generator), or -1."""
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
    """These numbers as they are, unless one of them is no integer or not in lowest … limit - 1."""
    array = np.asarray(numbers)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise UserError(f"{name} numbers must be integers, not {array.dtype}")
    if array.size and (array.min() < lowest or array.max() >= limit):
        wrong = array.min() if array.min() < lowest else array.max()
        raise UserError(f"{name} number {wrong} is not in 0 … {limit - 1}")
    return array.astype(np.int64)
