"""Your own images: a folder of pictures, with or without factors.csv, or one .npz file."""

import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image

from lddr.data.array_files import NpzArray
from lddr.data.columns import columns_of_npz, factor_table
from lddr.data.conversion import MappedImages, Rows, Shape, converted
from lddr.data.dataset import Dataset, Images
from lddr.data.factors_csv import columns_of_csv
from lddr.data.pictures import arrangement, flattened, scaled
from lddr.errors import UserError
from lddr.foreign import foreign

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")  # whatever a file is called; others run other programs
MOST_PIXELS = 64_000_000  # a few kilobytes can claim to be a picture of many gigabytes
GREY_MODES = ("1", "L", "LA", "I", "I;16")
T = TypeVar("T")
CHUNK = 512  # images decoded before they are written
VERSION = 1  # of what becomes of a picture: another one makes the cached arrays anew


class OwnImages(Dataset):
    """Images of a folder or an .npz file, numbered in the order of their paths or of the array."""

    origin = "your own"

    def __init__(self, path: Path, resolution: int = 64) -> None:
        if not 16 <= resolution <= 128:
            raise UserError(f"images are scaled to 16x16 up to 128x128, not {resolution}x{resolution}")
        if not os.path.exists(path):  # noqa: PTH110 (takes any name)
            raise UserError(
                f"{path} does not exist; give a folder of images, an .npz file, or a name of lddr data list"
            )
        self.name = self.title = path.resolve().stem
        if path.is_dir():
            files = _picture_files(path)
            self.rows = _from_files(self.name, files, resolution)
            names = [file.relative_to(path).as_posix() for file in files]
            columns = columns_of_csv(path / "factors.csv", names)
        else:
            self.rows = _from_npz(self.name, path, resolution)
            columns = columns_of_npz(path, len(self.rows))
        self.space = factor_table(columns, len(self.rows))
        self.image_shape = (resolution, resolution, self.rows.shape[3])

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self.rows.take(indices)

    def content(self) -> str:
        return f"{zlib.crc32(self.space.content(), self.rows.checksum()):08x}"


def _cached(name: str, sources: list[Path], shape: Shape, chunks: Callable[[], Iterable[Rows]]) -> MappedImages:
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)  # the name becomes a file's
    return converted(f"own-{plain}-{'x'.join(map(str, shape[1:]))}", sources, VERSION, shape, chunks)


def _picture_files(folder: Path) -> list[Path]:
    """The pictures in a folder and below, sorted by path, so that an image has the same number on every machine."""
    files = [file for file in folder.rglob("*") if file.suffix.lower() in SUFFIXES and not file.name.startswith(".")]
    if not files:
        raise UserError(f"no images in {folder}; put PNG, JPEG or WebP files there")
    return sorted(files, key=lambda file: file.relative_to(folder).as_posix())


def _from_files(name: str, files: list[Path], resolution: int) -> MappedImages:
    with ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:  # Pillow works outside the interpreter's lock
        channels = 1 if all(pool.map(_is_grey, files)) else 3

        def chunks() -> Iterator[Rows]:
            for first in range(0, len(files), CHUNK):
                part = files[first : first + CHUNK]
                yield np.stack(list(pool.map(lambda file: _decoded(file, resolution, channels), part)))

        return _cached(name, files, (len(files), resolution, resolution, channels), chunks)


def _is_grey(file: Path) -> bool:
    return _opened(file, lambda picture: picture.mode in GREY_MODES)


def _decoded(file: Path, resolution: int, channels: int) -> Rows:
    """(resolution, resolution, channels)."""
    return _opened(file, lambda picture: scaled(np.asarray(flattened(picture, channels)), resolution))


def _opened(file: Path, use: Callable[[Image.Image], T]) -> T:
    cure = "mend it or take it out of the folder"
    with foreign(file, "a picture", cure), Image.open(file, formats=FORMATS) as picture:
        if picture.width * picture.height > MOST_PIXELS:
            raise UserError(f"{file} has {picture.width}x{picture.height} pixels; make it smaller")
        return use(picture)


def _from_npz(name: str, path: Path, resolution: int) -> MappedImages:
    if path.suffix != ".npz":
        raise UserError(f"{path} is neither a folder of images nor an .npz file")
    stored = NpzArray(path, "images")
    found = arrangement(stored.shape) if 0 not in stored.shape else None
    if found is None:
        raise UserError(f"'images' in {path} has the shape {stored.shape}; save it as (images, height, width, 1 or 3)")
    channels, arranged = found

    def chunks() -> Iterator[Rows]:
        for chunk in stored.chunks():
            with foreign(path, "pictures in 'images'"):
                pictures = [scaled(image, resolution) for image in arranged(_as_bytes(path, chunk))]
            yield np.stack(pictures)

    return _cached(name, [path], (stored.shape[0], resolution, resolution, channels), chunks)


def _as_bytes(path: Path, images: NDArray) -> NDArray[np.uint8]:
    """0 … 255 as they are, truth values and floats in [0, 1] scaled to it."""
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind in "fb" and np.all((images >= 0) & (images <= 1)):
        return np.rint(255 * images.astype(np.float32)).astype(np.uint8)
    raise UserError(f"'images' in {path} must be uint8 from 0 to 255 or floats from 0 to 1")
