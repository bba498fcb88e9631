"""Your own pictures: a folder, or one .npz or .npy file, and how a picture becomes an image for a network.

Images are upright, opaque, of one size, in eight bits, grey or in colour.
"""

import math
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import compress, islice
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import ExifTags, Image, ImageColor, ImageOps

from lddr.data import FITS, LARGEST, SMALLEST, allowed_size, as_resolution, height_and_width, within
from lddr.data.array_files import NumpyArray, Rows, converted
from lddr.data.columns import Columns, columns_of_csv, columns_of_npz, factor_table
from lddr.data.dataset import Dataset, Images, content_digest
from lddr.errors import UserError, hint
from lddr.files import reading_untrusted

AUTO = "auto"
BLACK, WHITE = "#000000", "#ffffff"
BACKGROUNDS = (None, BLACK, WHITE)  # that are chosen automatically, by number in the cache
USUAL_SIDES = (16, 32, 64)  # pixels: sizes for pictures of several sizes; the last is the paper's
GREY_MODES = ("1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F")
LEGACY_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
SUFFIXES = (*LEGACY_SUFFIXES, ".bmp", ".gif", ".tif", ".tiff")
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF")  # whatever a file is called; Pillow's others run programs
CHANNELS = (1, 3, 4)
MOST_PIXELS = 64_000_000  # a few kilobytes can claim to be a picture of many gigabytes
DECODED_AT_ONCE = 512  # images
LEGACY_VERSION, VERSION = 1, 2  # of the preparation: another one makes the cached arrays anew
Bytes = NDArray[np.uint8]
T = TypeVar("T")


@dataclass(frozen=True)
class Preparation:
    """The shape that pictures get, how they get another aspect ratio, and the colours behind and around them.

    With `fit` None they are prepared as by versions that had no such setting: stretched, on black, as stored whatever
    EXIF says, and the upper eight of sixteen bits.
    """

    shape: tuple[int, int, int]  # height, width, channels
    fit: str | None = "pad"
    background: str | None = None  # behind transparent pictures; None: black or white, whichever shows them better
    padding: str | None = None  # around pictures of another aspect ratio; None: the colour of their own edge

    @classmethod
    def of(cls, shape: tuple[int, int, int], fit: str | None, background: str) -> "Preparation":
        """Return the preparation for the settings `fit` and `background`."""
        if fit not in (None, *FITS):
            raise UserError(f"fit must be one of {', '.join(FITS)}, not {fit!r}; {hint(str(fit), FITS)}".rstrip("; "))
        if fit in (None, "legacy"):
            if background != AUTO:
                raise UserError("with the fit legacy transparent pictures are on black; leave background out")
            return cls(shape, None, BLACK, BLACK)
        colour = None if background == AUTO else as_hex(background)
        return cls(shape, fit, colour, colour)

    def on(self, background: str | None) -> "Preparation":
        """Return the same with this colour behind transparent pictures, unless there is one."""
        return replace(self, background=self.background or background)

    def seeing(self, pictures: Iterable[Image.Image]) -> "Preparation":
        """Return the same with a background that shows these pictures, unless there is one."""
        return self if self.background else self.on(background_for(map(visible_brightness, pictures)))

    def of_picture(self, picture: Image.Image) -> Bytes:
        """Return one prepared picture: (height, width, channels)."""
        if self.fit is not None:
            with suppress(Exception):  # Pillow may raise anything on broken EXIF; broken pixels fail again below
                if picture.getexif().get(ExifTags.Base.Orientation, 1) != 1:
                    picture = ImageOps.exif_transpose(picture)
        if picture.mode.startswith(("I", "F")):
            values = np.asarray(picture)
            picture = Image.fromarray((values >> 8).astype(np.uint8) if self.fit is None else stretched(values))
        if picture.has_transparency_data:
            background = self.seeing([picture]).background or BLACK
            picture = Image.alpha_composite(Image.new("RGBA", picture.size, background), picture.convert("RGBA"))
        flat = picture.convert("L" if self.shape[2] == 1 else "RGB")
        return np.asarray(self._fitted(flat)).reshape(self.shape)

    def of_images(self, images: Bytes) -> Bytes:
        """Prepare an array: (count, any height, any width, 1, 3 or 4 channels) → (count, height, width, channels)."""
        if images.shape[1:] == self.shape:
            return images
        return np.stack([self.of_picture(as_pil(image)) for image in images])

    def _fitted(self, picture: Image.Image) -> Image.Image:
        """Scale with Pillow's Lanczos filter; a picture of the right size is returned as it is."""
        (height, width, _), (wide, high) = self.shape, picture.size
        if picture.size == (width, height):
            return picture
        if self.fit == "crop":
            scale = max(width / wide, height / high)
            size = max(1, round(width / scale)), max(1, round(height / scale))
            left, top = (wide - size[0]) // 2, (high - size[1]) // 2
            centre = picture.crop((left, top, left + size[0], top + size[1]))
            return centre.resize((width, height), Image.Resampling.LANCZOS)
        size = _inside(picture.size, (width, height))
        if self.fit != "pad" or size == (width, height):
            return picture.resize((width, height), Image.Resampling.LANCZOS)
        colour = ImageColor.getcolor(self.padding, picture.mode) if self.padding else _edge(picture, size[0] < width)
        canvas = Image.new(picture.mode, (width, height), colour)
        canvas.paste(picture.resize(size, Image.Resampling.LANCZOS), ((width - size[0]) // 2, (height - size[1]) // 2))
        return canvas

    def describe(self, count: int, sizes: Iterable[tuple[int, int]]) -> str:
        """Say in a sentence what becomes of so many pictures of these widths and heights."""
        known = sorted(set(sizes), key=lambda size: (size[0] * size[1], size))
        height, width, channels = self.shape
        span = " to ".join(dict.fromkeys(f"{wide}x{high}" for wide, high in (known[0], known[-1])))
        words = f"{count:,} picture{'s' * (count > 1)} of {span} pixels {'are' if count > 1 else 'is'} read"
        words += f" at {width}x{height}" + ("" if width == height else f" (resolution {as_resolution(height, width)})")
        words += f" in {'grey' if channels == 1 else 'colour'}"
        if len(known) == 1 and not all(SMALLEST <= side <= LARGEST for side in known[0]):
            words += f", since images have sides of {SMALLEST} to {LARGEST} pixels"
        if self.fit is None:
            return f"{words}, as by versions without the setting fit"
        if any(_inside(size, (width, height)) != (width, height) for size in known):
            done = {"pad": "padded", "crop": "cropped", "stretch": "stretched"}
            others = " or ".join(fit for fit in done if fit != self.fit)
            which = "that are not square" if width == height else "of another aspect ratio"
            words += f"; those {which} are {done[self.fit]} (set fit to {others} instead)"
        if self.background not in (None, self.padding):
            colour = {BLACK: "black", WHITE: "white"}[str(self.background)]
            words += f"; transparent parts become {colour} (set background for another colour)"
        return words


def _inside(size: tuple[int, int], target: tuple[int, int]) -> tuple[int, int]:
    """Return the largest size (width, height) of the same aspect ratio inside the target."""
    scale = min(target[0] / size[0], target[1] / size[1])
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _edge(picture: Image.Image, is_tall: bool) -> float | tuple[int, ...]:
    """Return the median colour of the two edges that touch the padding."""
    pixels = np.asarray(picture)
    edges = pixels[:, [0, -1]] if is_tall else pixels[[0, -1]]
    colour = np.median(edges.reshape(edges.shape[0] * edges.shape[1], -1), axis=0)
    return tuple(map(int, colour)) if len(colour) > 1 else int(colour[0])


def as_hex(colour: str) -> str:
    """Return a colour, by name or in any way CSS writes it, as #rrggbb."""
    try:
        return "#{:02x}{:02x}{:02x}".format(*ImageColor.getrgb(colour)[:3])
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(f"background must be auto or a colour such as white or #ff8800, not {colour!r}") from error


def channels_of(are_grey: bool, background: str) -> int:
    """Return 1 for grey pictures, unless they get a background in colour."""
    return 1 if are_grey and (background == AUTO or len({*bytes.fromhex(as_hex(background)[1:])}) == 1) else 3


def visible_brightness(picture: Image.Image) -> float | None:
    """Return the mean brightness, 0 … 255, of the visible part of a picture with transparent parts; None for others.

    It is NaN if nothing is visible.
    """
    if not picture.has_transparency_data:
        return None
    coloured = picture.convert("RGBA")
    alpha = np.asarray(coloured.getchannel("A"), np.float64)
    if alpha.min() == 255:
        return None
    grey = np.asarray(coloured.convert("RGB").convert("L"), np.float64)
    return float((grey * alpha).sum() / alpha.sum()) if alpha.any() else math.nan


def background_for(brightness: Iterable[float | None]) -> str | None:
    """Return black or white, whichever differs more from pictures of this brightness; None if none is transparent."""
    found = [each for each in brightness if each is not None]
    visible = [each for each in found if not math.isnan(each)]
    if not found:
        return None
    return WHITE if visible and math.fsum(visible) / len(visible) < 255 / 2 else BLACK


def scaled(image: Bytes, side: int) -> Bytes:
    """Scale with Pillow's Lanczos filter, stretched: (height, width[, channels]) → (side, side, channels)."""
    whole = image.reshape(*image.shape[:2], -1)
    return Preparation((side, side, whole.shape[2]), "stretch").of_images(whole[np.newaxis])[0]


def natural_size(sizes: Iterable[tuple[int, int]]) -> int | str:
    """Return the resolution that pictures of these widths and heights get unless one is given.

    If all have one size, it is theirs, or the nearest that images may have. Pictures of several sizes become squares of
    the usual side that is nearest to their median.
    """
    known = sorted(sizes, key=max)
    width, height = known[0]
    if len(set(known)) == 1:
        return within(as_resolution(height, width))
    median = max(known[len(known) // 2])
    return min(USUAL_SIDES, key=lambda side: abs(math.log(median / side)))


def shape_of_images(shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """Return (n, h, w, c) for the shape of images, (n, h, w), (n, h, w, c) or (n, c, h, w); None for other shapes."""
    count, *sides = shape or (0,)
    if len(sides) == 2:
        sides = [*sides, 1]
    elif len(sides) == 3 and sides[2] not in CHANNELS:
        sides = [*sides[1:], sides[0]]
    if len(sides) != 3 or sides[2] not in CHANNELS or 0 in sides:
        return None
    return count, sides[0], sides[1], sides[2]


def with_channels_last(images: NDArray) -> NDArray:
    """Return images of a shape that `shape_of_images` knows as (n, h, w, c), without a copy."""
    if images.ndim == 3:
        return images[..., np.newaxis]
    return images if images.shape[3] in CHANNELS else images.transpose(0, 2, 3, 1)


def as_pil(image: Bytes) -> Image.Image:
    """Return (height, width, 1, 3 or 4 channels) as a grey, RGB or RGBA picture."""
    return Image.fromarray(np.ascontiguousarray(image.squeeze(axis=2) if image.shape[2] == 1 else image))


def as_bytes(images: NDArray) -> Bytes:
    """Return 0 … 255 as they are, numbers in [0, 1] scaled to it, sixteen bits stretched image by image."""
    if images.dtype == np.uint8:
        return images
    if images.dtype == np.uint16:
        return np.stack([stretched(image) for image in images]) if len(images) else images.astype(np.uint8)
    return np.rint(255 * as_floats_in_range(images)).astype(np.uint8)


def stretched(values: NDArray) -> Bytes:
    """Scale numbers of more than eight bits, from the smallest to the largest of a picture, to 0 … 255.

    Floats in [0, 1] keep their meaning, and a picture of one value has none to stretch.
    """
    low, high = float(values.min()), float(values.max())
    if not math.isfinite(low + high):
        raise ValueError("values that are not finite")
    if values.dtype.kind == "f" and 0 <= low <= high <= 1:
        low, high = 0.0, 1.0
    if low == high:
        return np.full(values.shape, min(max(int(low) >> 8, 0), 255), np.uint8)
    return np.rint((values.astype(np.float64) - low) * (255 / (high - low))).astype(np.uint8)


def as_floats_in_range(images: NDArray) -> NDArray[np.float32]:
    """Return numbers in [0, 1] as float32; refuse others."""
    if images.dtype.kind in "biuf":
        floats = images.astype(np.float32)
        if np.all((floats >= 0) & (floats <= 1)):
            return floats
    raise UserError("images must be uint8 from 0 to 255 or floats from 0 to 1 (or uint16, which is stretched)")


class OwnImages(Dataset):
    """Images of a folder or of an .npz or .npy file, numbered in the order of their paths or of the array.

    Without a resolution they get the one that `natural_size` returns.
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
        cache = f"own-{re.sub(r'[^A-Za-z0-9_-]', '_', self.name)}"
        preparation = wanted if wanted.background else wanted.on(_background(found, cache))
        how = (VERSION, preparation.fit, preparation.background, preparation.padding)
        version, shape = LEGACY_VERSION if is_legacy else how, (found.count, *preparation.shape)
        name = f"{cache}-{'x'.join(map(str, preparation.shape))}"
        self.rows = converted(name, found.files, version, shape, lambda: found.chunks(preparation))
        self.preparation, self.image_shape = preparation, preparation.shape
        self.reading = preparation.describe(len(self.rows), found.sizes)
        self.space = factor_table(found.columns(), len(self.rows))
        self.file_names = found.names if isinstance(found, PictureFolder) else ()

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self.rows.take(indices)

    def content(self) -> str:
        return content_digest(self.space, self.rows.checksum())


def _background(source: "PictureFolder | ArrayFile", cache: str) -> str | None:
    """Return the colour that shows all pictures best, None if none is transparent; it is kept in the cache."""
    if not source.may_be_transparent:
        return None

    def choice() -> Iterator[Rows]:
        yield np.array([[BACKGROUNDS.index(background_for(source.brightness()))]], np.uint8)

    kept = converted(f"{cache}-background", source.files, VERSION, (1, 1), choice)
    return BACKGROUNDS[int(kept.take([0])[0, 0]) % len(BACKGROUNDS)]


def source_of(path: Path, is_legacy: bool = False) -> "PictureFolder | ArrayFile":
    """Return the pictures at a path, with nothing but headers read."""
    if not os.path.exists(path):  # noqa: PTH110 (takes any name)
        raise UserError(
            f"{os.path.abspath(path)} does not exist; "  # noqa: PTH100
            "give a folder of images, an .npz or .npy file, or a name of lddr data list"
        )
    if path.is_dir():
        return PictureFolder(path, is_legacy)
    if path.suffix not in (".npz", ".npy"):
        raise UserError(f"{path} is neither a folder of images nor an .npz or .npy file")
    return ArrayFile(path)


class PictureFolder:
    """The pictures in a folder and below: their headers, and everything else when it is asked for."""

    def __init__(self, folder: Path, is_legacy: bool = False) -> None:
        self.folder, self.files = folder, _picture_files(folder, is_legacy)
        self.count = len(self.files)
        self.names = tuple(file.relative_to(folder).as_posix() for file in self.files)
        stamps = [(file.lstat().st_mtime_ns, file.lstat().st_size) for file in self.files]
        self.sizes, are_grey, may_be_transparent = zip(*_headers(tuple(self.files), tuple(stamps)), strict=True)
        self.is_grey, self.may_be_transparent = all(are_grey), any(may_be_transparent)
        self._transparent = list(compress(self.files, may_be_transparent))

    def brightness(self) -> Iterator[float | None]:
        """Return the visible brightness of every picture with transparent parts."""
        return each_opened(self._transparent, visible_brightness)

    def chunks(self, preparation: Preparation) -> Iterator[Rows]:
        """Return all prepared pictures, a few at a time."""
        return stacked(each_opened(self.files, preparation.of_picture))

    def columns(self) -> Columns:
        return columns_of_csv(self.folder / "factors.csv", list(self.names))


class ArrayFile:
    """The array `images` of an .npz file, or the one of an .npy file; the same attributes as a `PictureFolder`."""

    def __init__(self, path: Path) -> None:
        self.files = [path]
        self._stored = NumpyArray(path, None if path.suffix == ".npy" else "images")
        count, height, width, channels = shape_of_images(self._stored.shape) or (0, 0, 0, 0)
        if not count:
            form = "(images, height, width, 1, 3 or 4 channels)"
            raise UserError(f"{self._stored.key!r} in {path} has the shape {self._stored.shape}; save it as {form}")
        self.count, self.is_grey, self.may_be_transparent = count, channels == 1, channels == 4
        self.sizes = ((width, height),)

    def brightness(self) -> Iterator[float | None]:
        for images in self._images():
            yield from (visible_brightness(as_pil(image)) for image in images)

    def chunks(self, preparation: Preparation) -> Iterator[Rows]:
        yield from map(preparation.of_images, self._images())

    def _images(self) -> Iterator[Bytes]:
        for chunk in self._stored.chunks():
            with reading_untrusted(self.files[0], f"pictures in {self._stored.key!r}"):
                images = with_channels_last(as_bytes(chunk))
            yield images

    def columns(self) -> Columns:
        return columns_of_npz(self.files[0], self.count) if self.files[0].suffix == ".npz" else {}


def prepared(paths: Iterable[str | Path], preparation: Preparation) -> Bytes:
    """Read picture files, or those of folders, in this order: → (count, height, width, channels)."""
    given = [Path(path) for path in paths]
    files = [file for path in given for file in (_picture_files(path) if path.is_dir() else [path])]
    if preparation.background is None:
        preparation = preparation.on(background_for(each_opened(files, visible_brightness)))
    return np.stack(list(each_opened(files, preparation.of_picture)))


@lru_cache(maxsize=2)
def _headers(files: tuple[Path, ...], stamps: tuple[tuple[int, int], ...]) -> list[tuple[tuple[int, int], bool, bool]]:
    """Return size, whether it is grey and whether it may be transparent, for each picture.

    The headers are read once as long as the files do not change: first for the size, then for the dataset.
    """
    return list(each_opened(files, _header))


def _header(picture: Image.Image) -> tuple[tuple[int, int], bool, bool]:
    size = picture.size
    if picture.format != "PNG" or "exif" in picture.info:  # PNGs may have EXIF behind the pixels: not decoded for that
        with suppress(Exception):
            if picture.getexif().get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8):
                size = picture.size[::-1]
    return size, picture.mode in GREY_MODES, picture.has_transparency_data


def each_opened(
    files: Sequence[Path],
    use: Callable[[Image.Image], T],
    what: str = "a picture",
    cure: str = "fix it or leave it out",
) -> Iterator[T]:
    """Yield `use(picture)` for each picture file, in order, from threads: Pillow works outside the interpreter's lock.

    Pillow's warnings about odd files are not shown.
    """
    with warnings.catch_warnings(), ThreadPoolExecutor(min(os.cpu_count() or 1, 8)) as pool:
        warnings.simplefilter("ignore")
        for first in range(0, len(files), DECODED_AT_ONCE):
            yield from pool.map(partial(_opened, use=use, what=what, cure=cure), files[first : first + DECODED_AT_ONCE])


def stacked(images: Iterator[Bytes]) -> Iterator[Rows]:
    """Stack images, a few at a time."""
    while part := list(islice(images, DECODED_AT_ONCE)):
        yield np.stack(part)


def _opened(file: Path, use: Callable[[Image.Image], T], what: str, cure: str) -> T:
    with reading_untrusted(file, what, cure):
        if file.suffix.lower() == ".npy":
            return use(_picture_of_npy(file))
        with Image.open(file, formats=FORMATS) as picture:
            _check_size(file, *picture.size)
            return use(picture)


def _picture_of_npy(file: Path) -> Image.Image:
    stored = NumpyArray(file)
    shape = shape_of_images((1, *stored.shape))
    if shape is None:
        raise UserError(f"{file} has the shape {stored.shape}; save it as (height, width, 1, 3 or 4 channels)")
    _check_size(file, shape[2], shape[1])
    return as_pil(with_channels_last(as_bytes(np.concatenate(list(stored.chunks()))[np.newaxis]))[0])


def _check_size(file: Path, width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        raise UserError(f"{file} has {width}x{height} pixels; make it smaller")


def _picture_files(folder: Path, is_legacy: bool = False) -> list[Path]:
    """Return the pictures in a folder and below, sorted by path, so that they have the same order on every machine."""
    files = pictures_among(folder.rglob("*"), is_legacy)
    if not files:
        raise UserError(f"no images in {folder}; put PNG, JPEG, WebP, BMP, TIFF, GIF or .npy files there")
    return sorted(files, key=lambda file: file.relative_to(folder).as_posix())


def pictures_among(files: Iterable[Path], is_legacy: bool = False) -> list[Path]:
    """Return the files that are pictures by their names; .npy files, which could be anything, only without others."""
    there = [file for file in files if not file.name.startswith(".")]
    choices = (LEGACY_SUFFIXES,) if is_legacy else (SUFFIXES, (".npy",))
    found = ([file for file in there if file.suffix.lower() in suffixes] for suffixes in choices)
    return next(filter(None, found), [])
