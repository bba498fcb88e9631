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
    """Images that can be looked up by number, with the factors behind them in `space`."""

    name: str
    title: str  # as people write it, in figures and tables
    origin: str  # where the images come from: "drawn", "official files", "your own"
    needs_files: ClassVar[bool] = False  # whether there is nothing to see without files that come from elsewhere
    space: FactorSpace
    image_shape: tuple[int, int, int]  # height, width, channels
    path: str | None = None  # of own images that were read from a folder or a file: where that is, absolute
    is_fixed: ClassVar[bool] = True  # whether training draws nothing but image numbers: no colours, no other positions
    preparation: "Preparation | None" = None  # how pictures of a user's own became these images
    reading: str | None = None  # the same in a sentence

    @abstractmethod
    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        """The images with these numbers, (count,) → (count, height, width, channels).

        The generator decides what is neither factor nor hidden factor (a random colour, noise); datasets without
        such chance ignore it, and without a generator the others use a fixed one.
        """

    @classmethod
    def why_missing(cls) -> str | None:
        """How to get the files of this dataset; None when they are here, or none are needed."""
        return None

    def content(self) -> str | None:
        """A checksum of all images and factors, where they could change unnoticed otherwise."""
        return None

    def draw(self, generator: np.random.Generator, count: int) -> Images:
        """Images drawn at random, as training sees them."""
        return self.images(self.space.sample(generator, count), generator)

    def batch(self, seed: int, step: int, size: int) -> NDArray[np.float32]:
        """Training batch number `step`, as floats in [0, 1]: a function of (seed, step) and of nothing else."""
        return as_floats(self.draw(stream(seed, "batch", step), size))

    def torch(self) -> "TorchDataset":
        """A map-style torch `Dataset` of (image, factors): floats in [0, 1], (channels, height, width), and int64."""
        from lddr.data.torch_dataset import TorchDataset

        return TorchDataset(self)

    def __getitem__(self, index: Any) -> tuple[Images, Indices]:
        """Images and factors by number, slice or array of numbers; what is random in an image depends on its number."""
        numbers = self._numbers(index)
        if self.is_fixed or not numbers.size:
            images = self.images(numbers.ravel())
        else:
            images = np.concatenate([self.images([each], stream(0, "item", each)) for each in numbers.ravel().tolist()])
        return images.reshape(*numbers.shape, *self.image_shape), self.space.factors_of(numbers)

    def _numbers(self, index: Any) -> Indices:
        if isinstance(index, slice):
            return np.arange(*index.indices(len(self)), dtype=np.int64)
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


datasets: Registry[type[Dataset]] = Registry("dataset", homes=("lddr.data.drawn", "lddr.data.official"))
for _variant in ("", "color_", "noisy_"):
    datasets.retire(f"{_variant}sprites", f"{_variant}dsprites")


def stream(seed: int, purpose: str, *position: int) -> np.random.Generator:
    """The random generator for one purpose at one position (a step, say): independent of all others, stateless."""
    key = (zlib.crc32(purpose.encode()), *position)
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def as_floats(images: Images) -> NDArray[np.float32]:
    """0 … 255 → [0, 1] in float32."""
    floats = images.astype(np.float32)
    floats *= np.float32(1 / 255)
    return floats


def content_of(space: FactorSpace, checksum: int) -> str:
    """A checksum of images, extended by the factors of all of them."""
    return f"{zlib.crc32(space.content(), checksum):08x}"


def identity(dataset: Dataset) -> dict[str, Any]:
    """What tells one dataset from another: its factors and shape, and a checksum of a few of its images.

    Of own images, which may change, there is a checksum of all that a score depends on too ("content").
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
