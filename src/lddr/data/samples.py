"""A few images of a training set in one PNG file: a shared model brings them for those who do not have its dataset."""

import zlib
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from lddr.data.dataset import Dataset, Images, stream
from lddr.data.factors import FactorTable, Indices
from lddr.files import content_of, damaged, reading_untrusted, written_whole

MOST_SAMPLES = 64
CURE = "replace that file, or delete it to use the model without sample images"
LARGEST = 64 << 20  # bytes of the file: 64 images of 512x512 pixels in colour take less


class Samples(Dataset):
    """Images that were shared with a model, without factors: to look at, not to train on or to score with.

    Parameters
    ----------
    images
        uint8, (count, height, width, channels).
    """

    origin = "your own"

    def __init__(self, images: Images) -> None:
        _, height, width, channels = images.shape
        self._images, self.image_shape = images, (height, width, channels)
        self.name = self.title = f"samples-{zlib.crc32(images.tobytes()):08x}"
        self.space = _EachOnce((), np.zeros((len(images), 0), np.int64))

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self._images[np.asarray(indices, np.int64)]


class _EachOnce(FactorTable):
    """Images that are sampled without replacement; those that are fewer than asked for are repeated in turn."""

    def sample(self, generator: np.random.Generator, count: int | tuple[int, ...]) -> Indices:
        return np.resize(generator.permutation(self.size), count)


def choose_samples(dataset: Dataset, count: int) -> Images:
    """Return different images of a dataset, always the same: `count` of them, or all of a smaller one."""
    chosen = stream(0, "samples").choice(len(dataset), min(count, len(dataset)), replace=False)
    return dataset.images(np.sort(chosen), stream(0, "samples"))


def write_samples(path: Path, images: Images) -> None:
    """Write images side by side, from left to right, without loss."""
    row = np.concatenate(list(images), axis=1)
    with written_whole(path) as draft:
        Image.fromarray(row[:, :, 0] if row.shape[2] == 1 else row).save(draft, "PNG", optimize=True)


def read_samples(path: Path, shape: tuple[int, int, int]) -> Images:
    """Return images of this shape: (count, height, width, channels); nothing is decoded before its size is checked."""
    height, width, channels = shape
    with reading_untrusted(path, "the sample images of a model", CURE):
        with Image.open(BytesIO(content_of(path, LARGEST)), formats=["PNG"]) as picture:
            count, rest = divmod(picture.width, width)
            if picture.height != height or rest or not 1 <= count <= MOST_SAMPLES:
                expected = f"1 to {MOST_SAMPLES} images of {height}x{width} side by side"
                raise damaged(path, expected, f"{picture.height}x{picture.width} pixels", CURE)
            if picture.mode != (mode := "L" if channels == 1 else "RGB"):
                raise damaged(path, f"a picture of mode {mode}", picture.mode, CURE)
            row = np.asarray(picture).reshape(height, count, width, channels)
    return np.ascontiguousarray(row.transpose(1, 0, 2, 3))
