"""Drawn images by number, and the table of codes in which they are looked up."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lddr.data.factors import FactorSpace, Indices
from lddr.metrics.information import Floats, Whole

Draws = dict[str, Indices]  # part → image numbers, of any shape

DIRECT = 20_000_000  # up to this many images a table by image number is smaller than searching is slow


class EncodedImages:
    """The codes of some images of a factor space, by image number."""

    def __init__(self, space: FactorSpace, images: Indices, codes: NDArray[np.floating]) -> None:
        self.space, self._images, self._codes = space, images, codes
        self._rows: NDArray[np.int32] | None = None
        if space.size <= DIRECT:
            self._rows = np.full(space.size, -1, np.int32)
            self._rows[images] = np.arange(len(images), dtype=np.int32)

    def codes_of(self, indices: Indices) -> Floats:
        """(…) → (…, latents)."""
        rows = np.searchsorted(self._images, indices) if self._rows is None else self._rows[indices]
        return self._codes[rows].astype(np.float64)

    def samples(self, draws: Draws) -> "dict[str, Sample]":
        """The drawn parts of a metric."""
        return {part: Sample(numbers, self) for part, numbers in draws.items()}


@dataclass(frozen=True)
class Sample:
    """Drawn images by number: their codes and factors are looked up when asked for, so that a part costs a part."""

    indices: Indices  # (…)
    table: EncodedImages

    def __getitem__(self, part: Any) -> "Sample":
        return Sample(self.indices[part], self.table)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def codes(self) -> Floats:
        """(…, latents)."""
        return self.table.codes_of(self.indices)

    @property
    def factors(self) -> Whole:
        """(…, factors)."""
        return self.table.space.factors_of(self.indices)
