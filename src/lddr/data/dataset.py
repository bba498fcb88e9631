"""The one protocol of all datasets: images for an array of numbers, and batches that depend on (seed, step) alone."""

import hashlib
import zlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.data.factors import FactorSpace, Indices
from lddr.registry import Registry

if TYPE_CHECKING:
    from lddr.data.pictures import Preparation
    from lddr.data.torch_dataset import TorchDataset

Images = NDArray[np.uint8]  # (images, height, width, channels), 0 … 255


class Dataset(ABC):
    """Images by number, and the factors of variation behind them in `space`.

    Subclasses define `space`, `image_shape` and `images`. `dataset[numbers]` returns images (uint8, channels last) and
    factor values; `dataset.torch()` is the same dataset for a `DataLoader`.

    Examples
    --------
    >>> import lddr
    >>> circles = lddr.load_dataset("circles")
    >>> images, factors = circles[[0, 5, 9]]
    >>> images.shape, factors.shape
    ((3, 64, 64, 1), (3, 2))
    >>> circles.batch(seed=0, step=7, size=16).dtype
    dtype('float32')
    """

    name: str
    title: str  # as people write it, in figures and tables
    origin: str  # where the images come from: "drawn", "official files", "your own"
    needs_files: ClassVar[bool] = False  # whether there are no images without files that come from elsewhere
    space: FactorSpace
    image_shape: tuple[int, int, int]  # height, width, channels
    path: str | None = None  # of own images that were read from a folder or a file: where that is, absolute
    is_fixed: ClassVar[bool] = True  # whether training draws only image numbers: no colours, no other positions
    file_names: tuple[str, ...] = ()  # of own images that were read from files of their own, by number
    preparation: "Preparation | None" = None  # how pictures of a user's own became these images
    reading: str | None = None  # the same in a sentence

    @abstractmethod
    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        """Return the images with these numbers.

        Parameters
        ----------
        indices
            Image numbers, of shape (count,).
        generator
            Decides everything random that is no factor (a colour, noise). Datasets without anything random ignore it;
            the others use a fixed one by default.

        Returns
        -------
        numpy.ndarray
            uint8 of shape (count, height, width, channels).
        """

    @classmethod
    def why_missing(cls) -> str | None:
        """Say how to get the files of this dataset; None if they are here, or none are needed."""
        return None

    def content(self) -> str | None:
        """Return a checksum of all images and factors, where they could change unnoticed otherwise."""
        return None

    def draw(self, generator: np.random.Generator, count: int) -> Images:
        """Return images drawn at random, as in training."""
        return self.images(self.space.sample(generator, count), generator)

    def batch(self, seed: int, step: int, size: int) -> NDArray[np.float32]:
        """Return training batch number `step`, as floats in [0, 1]: a function of (seed, step) and of nothing else."""
        return as_floats(self.draw(stream(seed, "batch", step), size))

    def torch(self) -> "TorchDataset":
        """Return a map-style torch `Dataset` of (image, factors).

        Images are floats in [0, 1] of shape (channels, height, width), factors int64.
        """
        from lddr.data.torch_dataset import TorchDataset

        return TorchDataset(self)

    def __getitem__(self, index: Any) -> tuple[Images, Indices]:
        """Return images and factors by number, slice or array; everything random depends on an image's number."""
        if isinstance(index, slice):
            numbers = np.arange(*index.indices(len(self)), dtype=np.int64)
        else:
            numbers = self._numbers(index)
        if self.is_fixed or not numbers.size:
            images = self.images(numbers.ravel())
        else:
            images = np.concatenate([self.images([each], stream(0, "item", each)) for each in numbers.ravel().tolist()])
        return images.reshape(*numbers.shape, *self.image_shape), self.space.factors_of(numbers)

    def _numbers(self, index: Any) -> Indices:
        numbers = np.asarray(index)
        if numbers.dtype == bool and numbers.shape == (len(self),):
            return np.flatnonzero(numbers)
        if numbers.size and not np.issubdtype(numbers.dtype, np.integer):
            raise TypeError(f"images have whole numbers, not {index!r}")
        numbers = np.where(numbers < 0, numbers + len(self), numbers).astype(np.int64)
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(self):
            raise IndexError(f"there are {len(self)} images, and none of number {index!r}")
        return numbers

    def __len__(self) -> int:
        return self.space.size

    def __repr__(self) -> str:
        return f"<{self.name}: {self.space.size} images {'x'.join(map(str, self.image_shape))}, {self.space}>"


datasets: Registry[type[Dataset]] = Registry(
    "dataset",
    homes=("lddr.data.drawn", "lddr.data.official"),
    or_else="; or give the path of a folder, .npz or .npy file of your own images",
)
for _variant in ("", "color_", "noisy_"):
    datasets.retire(f"{_variant}sprites", f"{_variant}dsprites")


def stream(seed: int, purpose: str, *position: int) -> np.random.Generator:
    """Return the random generator for one purpose at one position (a step, say), independent of all others."""
    key = (zlib.crc32(purpose.encode()), *position)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def as_floats(images: Images) -> NDArray[np.float32]:
    """Scale 0 … 255 to [0, 1] in float32."""
    floats = images.astype(np.float32)
    floats *= np.float32(1 / 255)
    return floats


def content_digest(space: FactorSpace, checksum: int) -> str:
    """Extend a checksum of images by the factors of all of them."""
    return f"{zlib.crc32(space.content(), checksum):08x}"


def identity(dataset: Dataset) -> dict[str, Any]:
    """Return what identifies a dataset: its factors and shape, and a checksum of a few of its images.

    Your own images, which may change, have a checksum of everything that a score depends on, too ("content").
    """
    shown = dataset.images(dataset.space.sample(stream(0, "identity"), 16), stream(0, "identity"))
    return {
        "name": dataset.name,
        "origin": dataset.origin,
        "images": len(dataset),
        "shape": list(dataset.image_shape),
        "factors": dict(zip(dataset.space.names, dataset.space.sizes, strict=True)),
        "checksum": hashlib.sha256(shown.tobytes()).hexdigest()[:16],
    } | ({"content": content} if (content := dataset.content()) else {})
