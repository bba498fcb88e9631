"""Your own images: a folder of pictures, with or without factors.csv, or one .npz or .npy file."""

import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from PIL import Image

from lddr.data import allowed_size, height_and_width
from lddr.data.array_files import MappedImages, NumpyArray, Rows, converted
from lddr.data.columns import Columns, columns_of_csv, columns_of_npz, factor_table
from lddr.data.dataset import Dataset, Images, content_of
from lddr.data.pictures import (
    AUTO,
    BLACK,
    GREY_MODES,
    USUAL_SIDES,
    WHITE,
    Bytes,
    Preparation,
    arrangement,
    as_bytes,
    as_picture,
    background_for,
    channels_of,
    natural_size,
    reading_of,
    size_of,
    upright_size,
    visible_brightness,
)
from lddr.errors import UserError
from lddr.files import reading_untrusted

LEGACY_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
SUFFIXES = (*LEGACY_SUFFIXES, ".bmp", ".gif", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")  # whatever a file is called; others run other programs
MOST_PIXELS = 64_000_000  # a few kilobytes can claim to be a picture of many gigabytes
T = TypeVar("T")
CHUNK = 512  # images decoded before they are written
LEGACY_VERSION, VERSION = 1, 2  # of what becomes of a picture: another one makes the cached arrays anew
CHOICES = (None, BLACK, WHITE)  # of a background, by number


class OwnImages(Dataset):
    """Images of a folder or of an .npz or .npy file, numbered in the order of their paths or of the array.

    Without a resolution they get the one that `natural_size` gives. `preparation` holds what `fit` and `background` do
    to them.
    """

    origin = "your own"

    def __init__(
        self, path: Path, resolution: int | str | None = None, fit: str | None = "pad", background: str = AUTO
    ) -> None:
        asked = resolution and allowed_size(resolution)
        is_legacy = fit in (None, "legacy")
        found = source_of(path, is_legacy)
        self.name = self.title = path.resolve().stem
        size = asked or height_and_width(USUAL_SIDES[-1] if is_legacy else natural_size(found.sizes))
        wanted = Preparation.of((*size, channels_of(found.is_grey, background)), fit, background)
        self.preparation = wanted if wanted.background else wanted.on(found.background(self.name))
        self.rows = found.converted(self.name, self.preparation)
        self.reading = reading_of(len(self.rows), found.sizes, self.preparation)
        self.space = factor_table(found.columns(), len(self.rows))
        self.image_shape = self.preparation.shape

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self.rows.take(indices)

    def content(self) -> str:
        return content_of(self.space, self.rows.checksum())


def source_of(path: Path, is_legacy: bool = False) -> "PictureFolder | ArrayFile":
    """What is at a path, with nothing but headers read."""
    if not os.path.exists(path):  # noqa: PTH110 (takes any name)
        raise UserError(
            f"{path} does not exist; give a folder of images, an .npz or .npy file, or a name of lddr data list"
        )
    if path.is_dir():
        return PictureFolder(path, is_legacy)
    if path.suffix not in (".npz", ".npy"):
        raise UserError(f"{path} is neither a folder of images nor an .npz or .npy file")
    return ArrayFile(path)


def prepared(paths: Iterable[str | Path], preparation: Preparation) -> Bytes:
    """Picture files, or those of folders, in this order: → (count, height, width, channels)."""
    given = [Path(path) for path in paths]
    files = [file for path in given for file in (_picture_files(path) if path.is_dir() else [path])]
    with _workers() as pool:
        if preparation.background is None:
            found = pool.map(partial(_opened, use=visible_brightness), files)
            preparation = preparation.on(background_for(found))
        return np.stack(list(pool.map(partial(_opened, use=preparation.of_picture), files)))


class Source(ABC):
    """Pictures in files, before anything but their headers is read."""

    files: list[Path]
    sizes: list[tuple[int, int]]  # width and height of every picture, or of all
    count: int
    is_grey: bool
    may_be_transparent: bool

    @abstractmethod
    def brightness(self) -> Iterator[float | None]:
        """The visible brightness of every picture with transparent parts, as `visible_brightness` says."""

    @abstractmethod
    def chunks(self, preparation: Preparation) -> Iterator[Rows]:
        """All pictures, a few at a time."""

    @abstractmethod
    def columns(self) -> Columns:
        """Their factors."""

    def background(self, name: str) -> str | None:
        """The colour that shows all of them best, None if none is transparent; found out once."""
        if not self.may_be_transparent:
            return None

        def choice() -> Iterator[Rows]:
            yield np.array([[CHOICES.index(background_for(self.brightness()))]], np.uint8)

        kept = converted(f"own-{_plain(name)}-background", self.files, VERSION, (1, 1), choice)
        return CHOICES[int(kept.take([0])[0, 0]) % len(CHOICES)]

    def converted(self, name: str, preparation: Preparation) -> MappedImages:
        """All pictures, prepared once and kept in the cache."""
        how = (VERSION, preparation.fit, preparation.background, preparation.padding)
        version = LEGACY_VERSION if preparation.fit is None else how
        shape = (self.count, *preparation.shape)
        label = f"own-{_plain(name)}-{'x'.join(map(str, preparation.shape))}"
        return converted(label, self.files, version, shape, lambda: self.chunks(preparation))


class PictureFolder(Source):
    """The pictures in a folder and below."""

    def __init__(self, folder: Path, is_legacy: bool = False) -> None:
        self.folder, self.files = folder, _picture_files(folder, is_legacy)
        self.count = len(self.files)
        headers = _headers(tuple(self.files), tuple(map(_stamp, self.files)))
        self.sizes = [header.size for header in headers]
        self.is_grey = all(header.is_grey for header in headers)
        pairs = zip(self.files, headers, strict=True)
        self._transparent = [file for file, header in pairs if header.may_be_transparent]
        self.may_be_transparent = bool(self._transparent)

    def brightness(self) -> Iterator[float | None]:
        with _workers() as pool:
            yield from pool.map(partial(_opened, use=visible_brightness), self._transparent)

    def chunks(self, preparation: Preparation) -> Iterator[Rows]:
        with _workers() as pool:
            for first in range(0, self.count, CHUNK):
                part = self.files[first : first + CHUNK]
                yield np.stack(list(pool.map(partial(_opened, use=preparation.of_picture), part)))

    def columns(self) -> Columns:
        names = [file.relative_to(self.folder).as_posix() for file in self.files]
        return columns_of_csv(self.folder / "factors.csv", names)


class ArrayFile(Source):
    """The array `images` of an .npz file, or the one of an .npy file."""

    def __init__(self, path: Path) -> None:
        self.files = [path]
        self._stored = NumpyArray(path, None if path.suffix == ".npy" else "images")
        found = arrangement(self._stored.shape)
        if found is None or not self._stored.shape[0]:
            form = "(images, height, width, 1, 3 or 4 channels)"
            raise UserError(f"{self._stored.key!r} in {path} has the shape {self._stored.shape}; save it as {form}")
        channels, self._arranged = found
        self.count, self.is_grey, self.may_be_transparent = self._stored.shape[0], channels == 1, channels == 4
        self.sizes = [size_of(self._stored.shape)]

    def brightness(self) -> Iterator[float | None]:
        for images in self._images():
            yield from (visible_brightness(as_picture(image)) for image in images)

    def chunks(self, preparation: Preparation) -> Iterator[Rows]:
        yield from map(preparation.of_images, self._images())

    def _images(self) -> Iterator[Bytes]:
        for chunk in self._stored.chunks():
            with reading_untrusted(self.files[0], f"pictures in {self._stored.key!r}"):
                images = self._arranged(as_bytes(chunk))
            yield images

    def columns(self) -> Columns:
        return columns_of_npz(self.files[0], self.count) if self.files[0].suffix == ".npz" else {}


class Header(NamedTuple):
    """What is known of a picture before it is decoded."""

    size: tuple[int, int]
    is_grey: bool
    may_be_transparent: bool


@lru_cache(maxsize=2)
def _headers(files: tuple[Path, ...], stamps: tuple[tuple[int, int], ...]) -> list[Header]:
    """Of files that have not changed since they were asked for, for their size say, kept."""
    with _workers() as pool:
        return list(pool.map(_header, files))


def _stamp(file: Path) -> tuple[int, int]:
    facts = file.lstat()
    return facts.st_mtime_ns, facts.st_size


def _header(file: Path) -> Header:
    return _opened(
        file, lambda picture: Header(upright_size(picture), picture.mode in GREY_MODES, picture.has_transparency_data)
    )


def _opened(file: Path, use: Callable[[Image.Image], T]) -> T:
    with reading_untrusted(file, "a picture", "fix it or leave it out"):
        if file.suffix.lower() == ".npy":
            return use(_picture_of_npy(file))
        with Image.open(file, formats=FORMATS) as picture:
            _check_size(file, *picture.size)
            return use(picture)


def _picture_of_npy(file: Path) -> Image.Image:
    stored = NumpyArray(file)
    found = arrangement((1, *stored.shape))
    if found is None:
        raise UserError(f"{file} has the shape {stored.shape}; save it as (height, width, 1, 3 or 4 channels)")
    _check_size(file, *size_of((1, *stored.shape)))
    values = np.concatenate([chunk.copy() for chunk in stored.chunks()])
    return as_picture(found[1](as_bytes(values[np.newaxis]))[0])


def _check_size(file: Path, width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise UserError(f"{file} has {width}x{height} pixels; make it smaller")


def _picture_files(folder: Path, is_legacy: bool = False) -> list[Path]:
    """The pictures in a folder and below, sorted by path, so that an image has the same number on every machine."""
    files = pictures_among(folder.rglob("*"), is_legacy)
    if not files:
        raise UserError(f"no images in {folder}; put PNG, JPEG, WebP, BMP, TIFF, GIF or .npy files there")
    return sorted(files, key=lambda file: file.relative_to(folder).as_posix())


def pictures_among(files: Iterable[Path], is_legacy: bool = False) -> list[Path]:
    """The files that are pictures by their names; .npy files only if there are no others, as they could be anything."""
    there = [file for file in files if not file.name.startswith(".")]
    kinds = (LEGACY_SUFFIXES,) if is_legacy else (SUFFIXES, (".npy",))
    found = ([file for file in there if file.suffix.lower() in suffixes] for suffixes in kinds)
    return next(filter(None, found), [])


@contextmanager
def _workers() -> Iterator[ThreadPoolExecutor]:
    """Threads, as Pillow works outside the interpreter's lock; its warnings about odd files are not shown."""
    with warnings.catch_warnings(), ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        warnings.simplefilter("ignore")
        yield pool


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)  # it becomes a file's
