"""Pairs of images that share all but a few factors: weak supervision without labels (Locatello et al. 2020)."""

from pathlib import Path

import numpy as np

from lddr.data.columns import pairs_of_csv
from lddr.data.dataset import Dataset
from lddr.data.factors import FactorGrid, FactorTable, Indices
from lddr.errors import UserError

TRIED = 10_000  # candidates among which a table must have a pair


class Pairs:
    """Random pairs of images of a dataset.

    Parameters
    ----------
    dataset
        Any dataset with at least two factors that vary, or any at all for pairs from a file.
    pairs
        How many factors differ in a pair, such as "1"; "random" for a random number of them, at least one and not all;
        or the path of a CSV file with two columns, which hold the file names or the numbers (from 0) of two images.

    Examples
    --------
    >>> import lddr, numpy as np
    >>> from lddr.data.pairs import Pairs
    >>> circles = lddr.load_dataset("circles")
    >>> first, second = Pairs(circles, "1").sample(np.random.default_rng(0), 6).reshape(2, 3)
    >>> (circles.space.factors_of(first) != circles.space.factors_of(second)).sum(axis=1)
    array([1, 1, 1])
    """

    def __init__(self, dataset: Dataset, pairs: str) -> None:
        self.space, self._file = dataset.space, None
        if pairs.lower().endswith(".csv"):
            self._file = pairs_of_csv(Path(pairs).expanduser(), dataset.file_names, len(dataset))
            return
        if pairs != "random" and not pairs.isdecimal():
            raise UserError(f"pairs must be a number of factors, random or a .csv file, not {pairs!r}")
        space, self._varying = self.space, np.flatnonzero(np.array(self.space.sizes, np.int64) > 1)
        if len(self._varying) < 2:
            cure = "give pairs in a .csv file, or choose another objective"
            raise UserError(f"pairs need two factors that vary, and {dataset.name} has {len(self._varying)}; {cure}")
        most = len(self._varying) - 1
        if pairs != "random" and not 1 <= int(pairs) <= most:
            raise UserError(f"pairs of {dataset.name} may differ in 1 to {most} factors, not in {pairs}")
        self._counts = (1, most) if pairs == "random" else (int(pairs), int(pairs))
        if isinstance(space, FactorTable):
            self._images = space.fully_labelled()
            self._groups: dict[tuple[int, ...], tuple[Indices, Indices, Indices]] = {}
            if not len(self._images) or not len(self._candidates(np.random.default_rng(0), TRIED)):
                differing = "some but not all" if pairs == "random" else f"exactly {pairs}"
                cure = "give pairs in a .csv file instead"
                raise UserError(
                    f"no two images of {dataset.name} were found that differ in {differing} factors; {cure}"
                )
        elif not isinstance(space, FactorGrid):
            raise UserError(f"{dataset.name} has no pairs; give them in a .csv file")

    def sample(self, generator: np.random.Generator, count: int) -> Indices:
        """Return image numbers, (count,): image i and image i + count / 2 are a pair."""
        half = count // 2
        if self._file is not None:
            return self._file[generator.integers(len(self._file), size=half)].T.ravel()
        if isinstance(self.space, FactorGrid):
            return self._of_grid(self.space, generator, half)
        pairs = self._candidates(generator, half)
        while len(pairs) < half:
            pairs = np.concatenate([pairs, self._candidates(generator, half)])
        return pairs[:half].T.ravel()

    def _of_grid(self, space: FactorGrid, generator: np.random.Generator, half: int) -> Indices:
        """Change some factors of random images to other values; hidden factors stay as they are."""
        first = space.sample(generator, half)
        values, sizes = space.values_of(first), np.array(space.sizes)
        differs = self._differing(generator, half)
        other = (values[:, : len(sizes)] + generator.integers(1, np.maximum(sizes, 2), (half, len(sizes)))) % sizes
        values[:, : len(sizes)] = np.where(differs, other, values[:, : len(sizes)])
        return np.concatenate([first, space.number_of(values)])

    def _differing(self, generator: np.random.Generator, half: int) -> np.ndarray:
        """Return which factors differ in each pair: (pairs, factors)."""
        low, high = self._counts
        counts = generator.integers(low, high + 1, size=(half, 1))
        ranks = generator.random((half, len(self._varying))).argsort(axis=1).argsort(axis=1)
        differs = np.zeros((half, len(self.space.sizes)), bool)
        differs[:, self._varying] = ranks < counts
        return differs

    def _candidates(self, generator: np.random.Generator, count: int) -> Indices:
        """Return up to `count` pairs, (pairs, 2), from a table, which need not have every combination of factors.

        The partner of a random image is drawn from those with the same values of all factors that should be shared;
        candidates that do not differ in every other factor are dropped.
        """
        rows = self.space.factors_of(self._images)
        places, differs = generator.integers(len(rows), size=count), self._differing(generator, count)
        random, partners = generator.random(count), np.empty(count, np.int64)
        for which in np.unique(differs, axis=0):
            here = (differs == which).all(axis=1)
            order, start, size = self._grouped(rows, tuple(np.flatnonzero(~which).tolist()))
            begin, length = start[places[here]], size[places[here]]
            partners[here] = order[begin + (random[here] * length).astype(np.int64)]
        valid = ((rows[places] != rows[partners]) == differs).all(axis=1)
        return self._images[np.stack([places, partners], axis=1)[valid]]

    def _grouped(self, rows: Indices, shared: tuple[int, ...]) -> tuple[Indices, Indices, Indices]:
        """Return rows in groups of equal shared factors, and for every row where its group starts and its size."""
        if shared not in self._groups:
            _, group, sizes = np.unique(rows[:, shared], axis=0, return_inverse=True, return_counts=True)
            group = group.ravel()
            self._groups[shared] = np.argsort(group, kind="stable"), (np.cumsum(sizes) - sizes)[group], sizes[group]
        return self._groups[shared]
