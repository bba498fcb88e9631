"""Images that are already in memory."""

import hashlib

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.arrays import as_array
from lddr.data.dataset import Dataset, Images, as_floats
from lddr.data.factors import FactorSpace, FactorTable
from lddr.data.pictures import arrangement
from lddr.errors import UserError


def as_images(images: ArrayLike, shape: tuple[int, int, int] | None = None) -> NDArray[np.float32]:
    """Images as floats in [0, 1], with the channels last if there, or first, → (count, height, width, channels)."""
    given = as_array(images)
    found = arrangement(given.shape)
    array = found[1](given) if found else given
    if found is None or (shape is not None and array.shape[1:] != shape):
        expected = "height, width, 1 or 3" if shape is None else ", ".join(map(str, shape))
        raise UserError(f"expected images of shape (count, {expected}), got {given.shape}")
    if array.dtype == np.uint8:
        return as_floats(array)
    floats = array.astype(np.float32)
    if not np.all((floats >= 0) & (floats <= 1)):
        raise UserError("images must be uint8 from 0 to 255 or floats from 0 to 1")
    return floats


class ArrayDataset(Dataset):
    """An array of images, with or without a factor space; its name tells its content."""

    origin = "your own"

    def __init__(self, images: ArrayLike, space: FactorSpace | None = None) -> None:
        floats = as_images(images)
        self._images = np.rint(floats * 255).astype(np.uint8)
        if not len(floats):
            raise UserError("there are no images to learn from")
        self.space = space or FactorTable((), np.zeros((len(floats), 0), np.int64))
        self.image_shape = self._images.shape[1:]
        labels = self.space.content() if self.space.factors else b""
        self.name = self.title = f"array-{hashlib.sha256(self._images.tobytes() + labels).hexdigest()[:8]}"

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self._images[np.asarray(indices, np.int64)]
