"""Images that come one by one or in batches: those of a torch `Dataset`, a `DataLoader` or any other iterable.

Torch is never imported here: its objects are recognised by what they can do.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from lddr.arrays import as_array
from lddr.console import LONG, TaskBars, say
from lddr.data.array_files import MappedImages, Rows, spooled
from lddr.data.pictures import (
    GREY_MODES,
    Bytes,
    Preparation,
    arrangement,
    as_bytes,
    as_picture,
    channels_of,
)
from lddr.errors import UserError

IN_MEMORY = 2 << 30  # bytes of the images of a map-style dataset that are kept in memory; more go into a file
MOST = 4 << 30  # bytes that are read from an iterable, which has no index to read them by
SEEN = 64  # items that decide on size, channels and background
CHUNK = 512  # items
LABEL = "label"


class Items:
    """The items of a map-style dataset: an image, (image, label, …) or a dict with "image".

    Images are PIL pictures, or arrays or tensors of shape (height, width[, channels]) or (channels, height, width) in
    bytes or in floats from 0 to 1. They are read once, in order.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        if not len(dataset):
            raise UserError("there are no images to learn from")
        few = np.unique(np.linspace(0, len(dataset) - 1, SEEN).astype(int)).tolist()
        self._few = [self._image(number) for number in few]
        self.sizes = [(image.shape[1], image.shape[0]) for image in self._few]
        self.all_sizes = set(self.sizes)
        self.has_labels = bool(_parts(dataset[0])[1])

    def __len__(self) -> int:
        return len(self._dataset)

    def _image(self, number: int) -> Bytes:
        try:
            return _pixels(_parts(self._dataset[number])[0])
        except UserError as error:
            raise UserError(f"item {number} of the dataset: {error}") from error

    def preparation(self, size: tuple[int, int], fit: str | None, background: str) -> Preparation:
        """How images become those of this height and width."""
        channels = channels_of(all(image.shape[2] == 1 for image in self._few), background)
        transparent = (as_picture(image) for image in self._few if image.shape[2] == 4)
        return Preparation.of((*size, channels), fit, background).seeing(transparent)

    def read(
        self, preparation: Preparation, with_labels: bool, quiet: bool = False
    ) -> tuple[NDArray | MappedImages, dict[str, list[Any]]]:
        """All images, and with labels a column of values for each of their factors."""
        shape = (len(self), *preparation.shape)
        columns: dict[str, list[Any]] = {}
        chunks = self._chunks(preparation, columns if with_labels else None, quiet)
        if np.prod(shape, dtype=np.int64) > IN_MEMORY:
            return spooled(shape, chunks), columns
        rows, first = np.empty(shape, np.uint8), 0
        for chunk in chunks:
            rows[first : first + len(chunk)] = chunk
            first += len(chunk)
        return rows, columns

    def _chunks(self, preparation: Preparation, columns: dict[str, list[Any]] | None, quiet: bool) -> Iterator[Rows]:
        with TaskBars(quiet) as bars, bars.task(f"reading {len(self):,} images (once)", len(self)) as advance:
            for first in range(0, len(self), CHUNK):
                numbers = range(first, min(first + CHUNK, len(self)))
                yield np.stack([self._prepared(number, preparation, columns) for number in numbers])
                advance(len(numbers))

    def _prepared(self, number: int, preparation: Preparation, columns: dict[str, list[Any]] | None) -> Bytes:
        try:
            image, labels = _parts(self._dataset[number])
            pixels = _pixels(image)
            if columns is not None:
                _append(columns, number, labels)
            if preparation.shape[2] == 1 and pixels.shape[2] != 1:
                raise UserError("it is in colour and others are grey; convert all of them in the dataset")
            self.all_sizes.add((pixels.shape[1], pixels.shape[0]))
            return preparation.of_images(pixels[np.newaxis])[0]
        except UserError as error:
            raise UserError(f"item {number} of the dataset: {error}") from error


class ReadOnce:
    """What an iterable gave, as a map-style dataset."""

    def __init__(self, iterable: Iterable[Any], quiet: bool = False) -> None:
        self._bytes, self._labels = bytearray(), list[Any]()
        self._shape: tuple[int, int, int] | None = None
        begun = due = perf_counter()
        for item in _items(iterable):
            self._keep(*_parts(item))
            if (now := perf_counter()) > due + LONG and not quiet:
                due = now
                say(f"reading images: {len(self):,} after {now - begun:.0f} s")

    def _keep(self, image: Any, labels: Any) -> None:
        pixels = _pixels(image)
        self._shape = self._shape or pixels.shape
        if pixels.shape != self._shape:
            sizes = " and ".join("x".join(map(str, shape)) for shape in (self._shape, pixels.shape))
            raise UserError(f"images of an iterable must have one shape, not {sizes}; resize them, or give a Dataset")
        if len(self._bytes) + pixels.nbytes > MOST:
            cure = "give a map-style Dataset, a memory map, or the path of a folder or an .npy file instead"
            raise UserError(f"an iterable may have {MOST / 1e9:.1f} GB of images in bytes, this one has more; {cure}")
        self._bytes += np.ascontiguousarray(pixels).data
        self._labels.append(labels)

    def __len__(self) -> int:
        return len(self._labels)

    def __getitem__(self, number: int) -> Any:
        size = len(self._bytes) // len(self)
        pixels = np.frombuffer(self._bytes, np.uint8, size, number * size).reshape(self._shape)
        labels = self._labels[number]
        return {"image": pixels} | labels if isinstance(labels, dict) else (pixels, *labels)


def as_items(given: Any, quiet: bool = False) -> Items | None:
    """The items of a torch dataset or loader, or of another iterable that is read once; None for anything else."""
    if isinstance(given, str | bytes | Mapping | list | tuple) or _is_array(given):
        return None
    if _is_map_style(given):
        return Items(given)
    if _is_map_style(getattr(given, "dataset", None)):
        if not quiet:
            say(
                "only the dataset of this DataLoader is used: lddr draws its own batches, so that runs resume exactly, "
                "and ignores the loader's batch_size, shuffle, sampler and collate_fn (give a Subset for some images)"
            )
        return Items(given.dataset)
    if not hasattr(given, "__iter__"):
        return None
    if not quiet:
        say("these images are read once and kept in memory; to resume a run, give the same images in the same order")
    return Items(ReadOnce(given, quiet))


def _is_array(given: Any) -> bool:
    return any(hasattr(given, name) for name in ("__array__", "__array_interface__", "__dlpack__"))


def _is_map_style(given: Any) -> bool:
    """Whether there are items by number, as far as one can tell: torch's iterable datasets inherit `__getitem__`."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.utils.data.IterableDataset):
        return False
    return hasattr(given, "__len__") and hasattr(given, "__getitem__")


def _parts(item: Any) -> tuple[Any, Any]:
    """The image of an item, and its labels: a dict, a tuple, or nothing."""
    if isinstance(item, Mapping):
        if "image" not in item:
            raise UserError(f"a dict needs the key 'image', this one has {', '.join(map(repr, item)) or 'none'}")
        return item["image"], {name: value for name, value in item.items() if name != "image"}
    if isinstance(item, tuple | list) and item:
        return item[0], tuple(item[1:])
    return item, ()


def _pixels(image: Any) -> Bytes:
    """(height, width, 1, 3 or 4 channels) of a PIL picture, an array or a tensor."""
    if isinstance(image, Image.Image):
        if image.mode not in GREY_MODES or image.has_transparency_data:
            image = image.convert("RGBA" if image.has_transparency_data else "RGB")
        elif image.mode == "1":
            image = image.convert("L")
    array = as_array(image)[np.newaxis]
    found = arrangement(array.shape)
    if found is None:
        raise UserError(
            f"expected an image (height, width[, channels]) or (channels, height, width), got {array.shape[1:]}"
        )
    return as_bytes(found[1](array))[0]


def _items(iterable: Iterable[Any]) -> Iterator[Any]:
    """One item after the other; whether they come in batches is decided by the first."""
    is_batch: bool | None = None
    for item in iterable:
        image, labels = _parts(item)
        if isinstance(image, Image.Image):
            yield item
            continue
        images = as_array(image)
        if is_batch is None:
            is_batch = images.ndim == 4 or (images.ndim == 3 and arrangement((1, *images.shape)) is None)
        if not is_batch:
            yield item
        elif isinstance(labels, Mapping):
            yield from (
                {"image": one} | {name: value[i] for name, value in labels.items()} for i, one in enumerate(images)
            )
        else:
            yield from ((one, *(value[i] for value in labels)) for i, one in enumerate(images))


def _append(columns: dict[str, list[Any]], number: int, labels: Any) -> None:
    """Add the labels of one item to the columns of all items before it."""
    if isinstance(labels, Mapping):
        named = {str(name): value for name, values in labels.items() for name, value in _split(str(name), values)}
    else:
        values = [value for each in labels for _, value in _split(LABEL, each)]
        named = {LABEL if len(values) == 1 else f"factor {place}": value for place, value in enumerate(values)}
    if number == 0:
        columns |= {name: [] for name in named}
    if not named or named.keys() != columns.keys():
        raise UserError(
            f"its labels are {', '.join(named) or 'missing'}; give every item the same labels, or no factors"
        )
    for name, value in named.items():
        columns[name].append(value)


def _split(name: str, values: Any) -> list[tuple[str, Any]]:
    """One label, or those of a vector: numbers or words."""
    array = as_array(values)
    if array.ndim == 0:
        return [(name, array.item())]
    if array.ndim > 1:
        raise UserError(f"{name} has the shape {array.shape}; labels are numbers, words or vectors of them")
    return [(f"{name} {place}", value) for place, value in enumerate(array.tolist())]
