"""Arrays of images, in memory or mapped from a file."""

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from lddr.arrays import as_array
from lddr.data import allowed_size, as_resolution, within
from lddr.data.array_files import MappedImages, converted
from lddr.data.dataset import Dataset, Images, as_floats, content_of
from lddr.data.factors import FactorSpace, FactorTable
from lddr.data.pictures import (
    AUTO,
    Preparation,
    arrangement,
    as_bytes,
    as_floats_in_range,
    as_picture,
    channels_of,
    reading_of,
)
from lddr.errors import UserError

CHUNK = 16 << 20  # bytes of an array that are looked at together
VERSION = 1  # of what becomes of a memory map: another one makes the cached arrays anew


def arranged(images: ArrayLike) -> NDArray:
    """Images with the channels last, wherever they were, → (count, height, width, 1, 3 or 4 channels); no copy."""
    given = as_array(images)
    found = arrangement(given.shape)
    if found is None:
        raise UserError(f"expected images of shape (count, height, width, 1, 3 or 4), got {given.shape}")
    return found[1](given)


def as_images(images: ArrayLike, shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """Images of this shape as floats in [0, 1], with the channels last if there, or first."""
    given = as_array(images)
    array = arranged(given)
    if array.shape[1:] != shape:
        raise UserError(f"expected images of shape (count, {', '.join(map(str, shape))}), got {given.shape}")
    return as_floats(as_bytes(array)) if array.dtype in (np.uint8, np.uint16) else as_floats_in_range(array)


class ArrayDataset(Dataset):
    """An array of images, with or without a factor space, called after its content.

    They keep their size unless a resolution is given, or have the nearest one that images may have; `fit` and
    `background` are those of `load_dataset`. A memory map stays in its file: one that has to be converted is written
    into the cache. Of other arrays it holds a copy in bytes, and takes no other memory on the way.
    """

    origin = "your own"

    def __init__(
        self,
        images: ArrayLike,
        space: FactorSpace | None = None,
        resolution: int | str | None = None,
        fit: str | None = "pad",
        background: str = AUTO,
    ) -> None:
        array = arranged(images)
        count, height, width, channels = array.shape
        if not count:
            raise UserError("there are no images to learn from")
        size = allowed_size(resolution or within(as_resolution(height, width)))
        wanted = Preparation.of((*size, channels_of(channels == 1, background)), fit, background)
        preparation = wanted.seeing(pictures_of(array))
        rows = _in_file(array, preparation) if _mapping(array) is not None else _copied(array, preparation)
        self._keep(rows, preparation, [(width, height)], space)

    @classmethod
    def of_rows(
        cls,
        rows: NDArray | MappedImages,
        preparation: Preparation,
        sizes: Iterable[tuple[int, int]],
        space: FactorSpace | None = None,
    ) -> "ArrayDataset":
        """Images that are prepared already, not copied; `sizes` are those they had before."""
        dataset = cls.__new__(cls)
        dataset._keep(rows, preparation, sizes, space)
        return dataset

    def _keep(
        self,
        rows: NDArray | MappedImages,
        preparation: Preparation,
        sizes: Iterable[tuple[int, int]],
        space: FactorSpace | None,
    ) -> None:
        count = len(rows)
        if space is not None and space.size != count:
            raise UserError(f"there are {count} images, but factors of {space.size}; give one row for each image")
        self.space = space or FactorTable((), np.zeros((count, 0), np.int64))
        self.preparation, self.image_shape, self._rows = preparation, preparation.shape, rows
        self.reading = reading_of(count, sizes, preparation)
        digest = hashlib.sha256()
        for part in rows.parts() if isinstance(rows, MappedImages) else [rows]:
            digest.update(part.data)
        if self.space.factors:
            digest.update(self.space.content())
        self.name = self.title = f"array-{digest.hexdigest()[:8]}"

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        if isinstance(self._rows, MappedImages):
            return self._rows.take(indices)
        return self._rows[np.asarray(indices, np.int64)]

    def content(self) -> str:
        rows = self._rows
        checksum = rows.checksum() if isinstance(rows, MappedImages) else zlib.crc32(rows.data)
        return content_of(self.space, checksum)


def _copied(array: NDArray, preparation: Preparation) -> NDArray[np.uint8]:
    rows = np.empty((len(array), *preparation.shape), np.uint8)
    for first, part in _parts(array):
        rows[first : first + len(part)] = preparation.of_images(as_bytes(part))
    return rows


def _in_file(array: NDArray, preparation: Preparation) -> MappedImages:
    """The images of a memory map where they lie, if they lie there as they should be; else converted."""
    mapping, shape = _mapping(array), (len(array), *preparation.shape)
    is_ready = array.shape == shape and array.dtype == np.uint8 and array.flags.c_contiguous
    if mapping is not None and mapping.filename and mapping.mode != "c" and is_ready:  # what "c" changes is in no file
        offset = mapping.offset + array.ctypes.data - mapping.ctypes.data
        return MappedImages(Path(mapping.filename), shape, offset)
    digest = hashlib.sha256(repr((array.shape, array.dtype.str, preparation)).encode())
    for _, part in _parts(array):
        digest.update(np.ascontiguousarray(part).data)

    def chunks() -> Iterator[Images]:
        yield from (preparation.of_images(as_bytes(part)) for _, part in _parts(array))

    return converted(f"array-{digest.hexdigest()[:16]}", (), VERSION, shape, chunks)


def _mapping(array: Any) -> np.memmap | None:
    """The memory map that an array is, or is a view of."""
    found = None
    while isinstance(array, np.ndarray):
        found = array if isinstance(array, np.memmap) else found
        array = array.base
    return found


def pictures_of(array: NDArray) -> Iterator[Image.Image]:
    """Those of an array (count, height, width, channels) that can be transparent: all or none."""
    if array.shape[3] == 4:
        yield from (as_picture(image) for _, part in _parts(array) for image in as_bytes(part))


def _parts(array: NDArray) -> Iterator[tuple[int, NDArray]]:
    """The images a few at a time, with the number of the first."""
    step = max(1, CHUNK // max(1, array[0].size * 8))
    for first in range(0, len(array), step):
        yield first, array[first : first + step]
