"""Images from Python: arrays in memory or mapped from a file, torch datasets and loaders, and other iterables.

Torch is never imported here: its objects are recognised by their methods.
"""

import hashlib
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from lddr.arrays import as_array
from lddr.console import LONG, TaskBars, say
from lddr.data import allowed_size, as_resolution, within
from lddr.data.array_files import MappedImages, Rows, converted, spooled
from lddr.data.dataset import Dataset, Images, as_floats, content_digest
from lddr.data.factors import FactorSpace, FactorTable
from lddr.data.pictures import (
    AUTO,
    GREY_MODES,
    Bytes,
    Preparation,
    as_bytes,
    as_floats_in_range,
    as_pil,
    channels_of,
    shape_of_images,
    with_channels_last,
)
from lddr.errors import UserError

PART_BYTES = 16 << 20  # of an array that are converted together
VERSION = 1  # of the conversion of a memory map: another one makes the cached arrays anew
MOST_IN_MEMORY = 2 << 30  # bytes of the images of a map-style dataset that are kept in memory; more go into a file
MOST_OF_ITERABLE = 4 << 30  # bytes that are read from an iterable, which has no index to read them by
LOOKED_AT = 64  # items that decide on size, channels and background
ITEMS_AT_ONCE = 512
LABEL = "label"


def arranged(images: ArrayLike) -> NDArray:
    """Return images with the channels last, wherever they were, without a copy: (count, height, width, channels)."""
    given = as_array(images)
    if shape_of_images(given.shape) is None:
        raise UserError(f"expected images of shape (count, height, width, 1, 3 or 4), got {given.shape}")
    return with_channels_last(given)


def as_images(images: ArrayLike, shape: tuple[int, int, int]) -> NDArray[np.float32]:
    """Return images of this shape, channels first or last, as floats in [0, 1] with the channels last."""
    given = as_array(images)
    array = arranged(given)
    if array.shape[1:] != shape:
        raise UserError(f"expected images of shape (count, {', '.join(map(str, shape))}), got {given.shape}")
    return as_floats(as_bytes(array)) if array.dtype in (np.uint8, np.uint16) else as_floats_in_range(array)


class ArrayDataset(Dataset):
    """An array of images, with or without a factor space, named after its content.

    Images keep their size unless a resolution is given, or get the nearest one that images may have. A memory map stays
    in its file: one that has to be converted is written into the cache. Of other arrays the dataset holds a copy in
    bytes, and takes no other memory on the way.

    Parameters
    ----------
    images
        An array or tensor of shape (count, height, width), (count, height, width, channels) or (count, channels,
        height, width), in bytes or in floats from 0 to 1.
    space
        The factors of the images.
    resolution, fit, background
        Those of `lddr.load_dataset`.

    Examples
    --------
    >>> import numpy as np
    >>> ArrayDataset(np.zeros((100, 32, 32), np.uint8)).image_shape
    (32, 32, 1)
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
        rows: NDArray | MappedImages
        if (mapping := _mapping(array)) is not None:
            rows = _in_file(array, mapping, preparation)
        else:
            rows = np.empty((count, *preparation.shape), np.uint8)
            for first, part in _parts(array):
                rows[first : first + len(part)] = preparation.of_images(as_bytes(part))
        self._keep(rows, preparation, [(width, height)], space)

    @classmethod
    def of_items(cls, items: "Items", factors: Any, size: tuple[int, int], fit: str | None, background: str) -> Dataset:
        """Read all items; their own labels are the factors if `factors` is True."""
        from lddr.data.columns import factor_table_of

        preparation = items.preparation(size, fit, background)
        rows, columns = items.read(preparation, with_labels=factors is True)
        if factors is None and items.has_labels and not items.quiet:
            say("the labels of this dataset are not used; factors=True takes them")
        table = columns if factors is True else factors
        dataset = cls.__new__(cls)
        space = None if table is None else factor_table_of(table, len(items))
        dataset._keep(rows, preparation, items.all_sizes, space)
        return dataset

    def _keep(
        self,
        rows: NDArray | MappedImages,
        preparation: Preparation,
        sizes: Iterable[tuple[int, int]],
        space: FactorSpace | None,
    ) -> None:
        """Take prepared images, which had these sizes before."""
        count = len(rows)
        if space is not None and space.size != count:
            raise UserError(f"there are {count} images, but factors of {space.size}; give one row for each image")
        self.space = space or FactorTable((), np.zeros((count, 0), np.int64))
        self.preparation, self.image_shape, self._rows = preparation, preparation.shape, rows
        self.reading = preparation.describe(count, sizes)
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
        return content_digest(self.space, checksum)


def pictures_of(array: NDArray) -> Iterator[Image.Image]:
    """Yield the pictures of an array (count, height, width, channels) that can be transparent: all or none."""
    if array.shape[3] == 4:
        yield from (as_pil(image) for _, part in _parts(array) for image in as_bytes(part))


def _parts(array: NDArray) -> Iterator[tuple[int, NDArray]]:
    """Yield the images a few at a time, with the number of the first."""
    step = max(1, PART_BYTES // max(1, array[0].size * 8))
    for first in range(0, len(array), step):
        yield first, array[first : first + step]


def _mapping(array: Any) -> np.memmap | None:
    """Return the memory map that an array is, or is a view of."""
    found = None
    while isinstance(array, np.ndarray):
        found = array if isinstance(array, np.memmap) else found
        array = array.base
    return found


def _in_file(array: NDArray, mapping: np.memmap, preparation: Preparation) -> MappedImages:
    """Map the images of a memory map in place if they need no preparation; else convert them."""
    shape = (len(array), *preparation.shape)
    is_ready = array.shape == shape and array.dtype == np.uint8 and array.flags.c_contiguous
    if mapping.filename and mapping.mode != "c" and is_ready:  # changes in mode "c" are in no file
        offset = mapping.offset + array.ctypes.data - mapping.ctypes.data
        return MappedImages(Path(mapping.filename), shape, offset)
    digest = hashlib.sha256(repr((array.shape, array.dtype.str, preparation)).encode())
    for _, part in _parts(array):
        digest.update(np.ascontiguousarray(part).data)
    name = f"array-{digest.hexdigest()[:16]}"
    return converted(
        name, (), VERSION, shape, lambda: (preparation.of_images(as_bytes(part)) for _, part in _parts(array))
    )


class Items:
    """The items of a map-style dataset: an image, (image, label, …) or a dict with "image".

    Images are PIL pictures, or arrays or tensors of shape (height, width[, channels]) or (channels, height, width) in
    bytes or in floats from 0 to 1. They are read once, in order.
    """

    def __init__(self, dataset: Any, quiet: bool = False) -> None:
        self._dataset, self.quiet = dataset, quiet
        if not len(dataset):
            raise UserError("there are no images to learn from")
        few = np.unique(np.linspace(0, len(dataset) - 1, LOOKED_AT).astype(int)).tolist()
        self._few = [self._item(number)[0] for number in few]
        self.sizes = [(image.shape[1], image.shape[0]) for image in self._few]
        self.all_sizes = set(self.sizes)
        self.has_labels = bool(_split_item(dataset[0])[1])

    def __len__(self) -> int:
        return len(self._dataset)

    def _item(
        self, number: int, preparation: Preparation | None = None, columns: dict[str, list[Any]] | None = None
    ) -> tuple[Bytes, tuple[int, int]]:
        """Return an image, prepared if a preparation is given, and its size; its labels are appended to the columns."""
        try:
            image, labels = _split_item(self._dataset[number])
            pixels = _pixels(image)
            size = (pixels.shape[1], pixels.shape[0])
            if columns is not None:
                _append_labels(columns, number, labels)
            if preparation is None:
                return pixels, size
            if preparation.shape[2] == 1 and pixels.shape[2] != 1:
                raise UserError("it is in colour and others are grey; convert all of them in the dataset")
            return preparation.of_images(pixels[np.newaxis])[0], size
        except UserError as error:
            raise UserError(f"item {number} of the dataset: {error}") from error

    def preparation(self, size: tuple[int, int], fit: str | None, background: str) -> Preparation:
        """Return how images get this height and width."""
        channels = channels_of(all(image.shape[2] == 1 for image in self._few), background)
        transparent = (as_pil(image) for image in self._few if image.shape[2] == 4)
        return Preparation.of((*size, channels), fit, background).seeing(transparent)

    def read(self, preparation: Preparation, with_labels: bool) -> tuple[NDArray | MappedImages, dict[str, list[Any]]]:
        """Return all images, and with labels a column of values for each of their factors."""
        shape = (len(self), *preparation.shape)
        columns: dict[str, list[Any]] = {}
        chunks = self._chunks(preparation, columns if with_labels else None)
        if np.prod(shape, dtype=np.int64) > MOST_IN_MEMORY:
            return spooled(shape, chunks), columns
        rows, first = np.empty(shape, np.uint8), 0
        for chunk in chunks:
            rows[first : first + len(chunk)] = chunk
            first += len(chunk)
        return rows, columns

    def _chunks(self, preparation: Preparation, columns: dict[str, list[Any]] | None) -> Iterator[Rows]:
        with TaskBars(self.quiet) as bars, bars.task(f"reading {len(self):,} images (once)", len(self)) as advance:
            for first in range(0, len(self), ITEMS_AT_ONCE):
                numbers = range(first, min(first + ITEMS_AT_ONCE, len(self)))
                images, sizes = zip(*(self._item(number, preparation, columns) for number in numbers), strict=True)
                self.all_sizes.update(sizes)
                yield np.stack(images)
                advance(len(numbers))


def _read_once(iterable: Iterable[Any], quiet: bool) -> list[Any]:
    """Return the items of an iterable, their images as bytes of one shape."""
    items: list[Any] = []
    shape: tuple[int, ...] | None = None
    begun = due = perf_counter()
    for item in _single_items(iterable):
        image, labels = _split_item(item)
        pixels = np.array(_pixels(image))  # a copy: some iterables reuse the memory of an image for the next
        shape = shape or pixels.shape
        if pixels.shape != shape:
            sizes = " and ".join("x".join(map(str, each)) for each in (shape, pixels.shape))
            raise UserError(f"images of an iterable must have one shape, not {sizes}; resize them, or give a Dataset")
        if (len(items) + 1) * pixels.nbytes > MOST_OF_ITERABLE:
            most = f"{MOST_OF_ITERABLE / 1e9:.1f} GB"
            cure = "give a map-style Dataset, a memory map, or the path of a folder or an .npy file instead"
            raise UserError(f"an iterable may have {most} of images in bytes, this one has more; {cure}")
        items.append({"image": pixels} | labels if isinstance(labels, dict) else (pixels, *labels))
        if (now := perf_counter()) > due + LONG and not quiet:
            due = now
            say(f"reading images: {len(items):,} after {now - begun:.0f} s")
    return items


def as_items(given: Any, quiet: bool = False) -> Items | None:
    """Return the items of a torch dataset or loader, or of another iterable, which is read once; None for others."""
    is_array = any(hasattr(given, name) for name in ("__array__", "__array_interface__", "__dlpack__"))
    if is_array or isinstance(given, str | bytes | Mapping | list | tuple):
        return None
    if _is_map_style(given):
        return Items(given, quiet)
    if _is_map_style(getattr(given, "dataset", None)):
        if not quiet:
            say(
                "only the dataset of this DataLoader is used: lddr draws its own batches, so that runs resume exactly, "
                "and ignores the loader's batch_size, shuffle, sampler and collate_fn (give a Subset for some images)"
            )
        return Items(given.dataset, quiet)
    if not hasattr(given, "__iter__"):
        return None
    if not quiet:
        say("these images are read once and kept in memory; to resume a run, give the same images in the same order")
    return Items(_read_once(given, quiet), quiet)


def _is_map_style(given: Any) -> bool:
    """Return whether there are items by number; torch's iterable datasets only inherit `__getitem__`."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(given, torch.utils.data.IterableDataset):
        return False
    return hasattr(given, "__len__") and hasattr(given, "__getitem__")


def _split_item(item: Any) -> tuple[Any, Any]:
    """Return the image of an item, and its labels: a dict or a tuple."""
    if isinstance(item, Mapping):
        if "image" not in item:
            raise UserError(f"a dict needs the key 'image', this one has {', '.join(map(repr, item)) or 'none'}")
        return item["image"], {name: value for name, value in item.items() if name != "image"}
    if isinstance(item, tuple | list) and item:
        return item[0], tuple(item[1:])
    return item, ()


def _pixels(image: Any) -> Bytes:
    """Return a PIL picture, an array or a tensor as (height, width, 1, 3 or 4 channels)."""
    if isinstance(image, Image.Image):
        if image.mode not in GREY_MODES or image.has_transparency_data:
            image = image.convert("RGBA" if image.has_transparency_data else "RGB")
        elif image.mode == "1":
            image = image.convert("L")
    array = as_array(image)
    if shape_of_images((1, *array.shape)) is None:
        raise UserError(
            f"expected an image (height, width[, channels]) or (channels, height, width), got {array.shape}"
        )
    return as_bytes(with_channels_last(array[np.newaxis]))[0]


def _single_items(iterable: Iterable[Any]) -> Iterator[Any]:
    """Yield one item after the other; the first decides whether they come in batches."""
    is_batch: bool | None = None
    for item in iterable:
        image, labels = _split_item(item)
        if isinstance(image, Image.Image):
            yield item
            continue
        images = as_array(image)
        if is_batch is None:
            is_batch = images.ndim == 4 or (images.ndim == 3 and shape_of_images((1, *images.shape)) is None)
        for i, one in enumerate(images) if is_batch else ():
            if isinstance(labels, Mapping):
                yield {"image": one} | {name: value[i] for name, value in labels.items()}
            else:
                yield one, *(value[i] for value in labels)
        if not is_batch:
            yield item


def _append_labels(columns: dict[str, list[Any]], number: int, labels: Any) -> None:
    """Add the labels of one item to the columns of all items before it."""
    is_named = isinstance(labels, Mapping)
    named: dict[str, Any] = {}
    for key, values in labels.items() if is_named else [(LABEL, each) for each in labels]:
        array = as_array(values)
        if array.ndim > 1:
            raise UserError(f"{key} has the shape {array.shape}; labels are numbers, words or vectors of them")
        for place, value in enumerate(np.atleast_1d(array).tolist()):
            name = (str(key) if array.ndim == 0 else f"{key} {place}") if is_named else f"factor {len(named)}"
            named[name] = value
    if not is_named and len(named) == 1:
        named = {LABEL: named["factor 0"]}
    if number == 0:
        columns |= {name: [] for name in named}
    if not named or named.keys() != columns.keys():
        raise UserError(
            f"its labels are {', '.join(named) or 'missing'}; give every item the same labels, or no factors"
        )
    for name, value in named.items():
        columns[name].append(value)
