"""Images that are already in memory."""

import hashlib
import zlib
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from lddr.arrays import as_array
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
    """An array of images, with or without a factor space; its name tells its content.

    They keep their size unless a resolution is given; `fit` and `background` are those of `load_dataset`. It holds a
    copy of them, one byte for a number, and takes no other memory on the way.
    """

    origin = "your own"

    def __init__(
        self,
        images: ArrayLike,
        space: FactorSpace | None = None,
        resolution: int | None = None,
        fit: str | None = "pad",
        background: str = AUTO,
    ) -> None:
        array = arranged(images)
        count, height, width, _ = array.shape
        if not count:
            raise UserError("there are no images to learn from")
        if space is not None and space.size != count:
            raise UserError(f"there are {count} images, but factors of {space.size}; give one row for each image")
        self.space = space or FactorTable((), np.zeros((count, 0), np.int64))
        self.preparation = self._preparation(array, (resolution or height, resolution or width), fit, background)
        self.image_shape = self.preparation.shape
        self.reading = reading_of(count, [(width, height)], self.preparation)
        self._images = np.empty((count, *self.image_shape), np.uint8)
        for first, part in _parts(array):
            self._images[first : first + len(part)] = self.preparation.of_images(as_bytes(part))
        digest = hashlib.sha256(self._images.data)
        if self.space.factors:
            digest.update(self.space.content())
        self.name = self.title = f"array-{digest.hexdigest()[:8]}"

    @staticmethod
    def _preparation(array: NDArray, size: tuple[int, int], fit: str | None, background: str) -> Preparation:
        shape = (*size, channels_of(array.shape[3] == 1, background))
        return Preparation.of(shape, fit, background).seeing(pictures_of(array))

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self._images[np.asarray(indices, np.int64)]

    def content(self) -> str:
        return content_of(self.space, zlib.crc32(self._images.data))


def pictures_of(array: NDArray) -> Iterator[Image.Image]:
    """Those of an array (count, height, width, channels) that can be transparent: all or none."""
    if array.shape[3] == 4:
        yield from (as_picture(image) for _, part in _parts(array) for image in as_bytes(part))


def _parts(array: NDArray) -> Iterator[tuple[int, NDArray]]:
    """The images a few at a time, with the number of the first."""
    step = max(1, CHUNK // max(1, array[0].size * 8))
    for first in range(0, len(array), step):
        yield first, array[first : first + step]
