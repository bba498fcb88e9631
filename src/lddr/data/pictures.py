"""How a picture becomes an image for a network: upright, opaque, of one size, in eight bits, grey or in colour."""

import math
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from PIL import ExifTags, Image, ImageColor, ImageOps

from lddr.data import FITS, LARGEST, SMALLEST, as_resolution, within
from lddr.errors import UserError, hint

AUTO = "auto"
BLACK, WHITE = "#000000", "#ffffff"
USUAL_SIDES = (16, 32, 64)  # that pictures of several sizes are brought to: the last is the paper's
GREY_MODES = ("1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F")
Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Preparation:
    """What pictures are brought to, and how: their shape, what is done with other aspect ratios, and the colours.

    `fit` is None for the way of versions that had no such setting: stretched, on black, as stored whatever EXIF says,
    and the upper eight of sixteen bits.
    """

    shape: tuple[int, int, int]  # height, width, channels
    fit: str | None = "pad"
    background: str | None = None  # behind transparent pictures; None: black or white, whichever shows them better
    padding: str | None = None  # around pictures of another aspect ratio; None: the colour of their own edge

    @classmethod
    def of(cls, shape: tuple[int, int, int], fit: str | None, background: str) -> "Preparation":
        """From the settings `fit` and `background`."""
        if fit not in (None, *FITS):
            raise UserError(f"fit must be one of {', '.join(FITS)}, not {fit!r}; {hint(str(fit), FITS)}".rstrip("; "))
        if fit in (None, "legacy"):
            if background != AUTO:
                raise UserError("with the fit legacy transparent pictures are on black; leave background out")
            return cls(shape, None, BLACK, BLACK)
        colour = None if background == AUTO else as_hex(background)
        return cls(shape, fit, colour, colour)

    def on(self, background: str | None) -> "Preparation":
        """The same with this colour behind transparent pictures, unless there is one."""
        return replace(self, background=self.background or background)

    def seeing(self, pictures: Iterable[Image.Image]) -> "Preparation":
        """The same with a background that shows these pictures, unless there is one."""
        return self if self.background else self.on(background_for(map(visible_brightness, pictures)))

    def of_picture(self, picture: Image.Image) -> Bytes:
        """(height, width, channels)."""
        picture = _in_eight_bits(picture if self.fit is None else upright(picture), is_legacy=self.fit is None)
        if picture.has_transparency_data:
            background = self.seeing([picture]).background or BLACK
            picture = Image.alpha_composite(Image.new("RGBA", picture.size, background), picture.convert("RGBA"))
        flat = picture.convert("L" if self.shape[2] == 1 else "RGB")
        return np.asarray(self._fitted(flat)).reshape(self.shape)

    def of_images(self, images: Bytes) -> Bytes:
        """Those of an array: (count, any height, any width, 1, 3 or 4 channels) → (count, height, width, channels)."""
        if images.shape[1:] == self.shape:
            return images
        return np.stack([self.of_picture(as_picture(image)) for image in images])

    def _fitted(self, picture: Image.Image) -> Image.Image:
        """Scaled by Pillow's Lanczos filter; a picture of the right size is taken as it is."""
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


def as_hex(colour: str) -> str:
    """A colour by name, or in any way CSS writes it, as #rrggbb."""
    try:
        return "#{:02x}{:02x}{:02x}".format(*ImageColor.getrgb(colour)[:3])
    except (ValueError, TypeError, AttributeError) as error:
        raise UserError(f"background must be auto or a colour such as white or #ff8800, not {colour!r}") from error


def channels_of(are_grey: bool, background: str) -> int:
    """Grey pictures have one channel, unless they get a background in colour."""
    return 1 if are_grey and (background == AUTO or len({*bytes.fromhex(as_hex(background)[1:])}) == 1) else 3


def upright(picture: Image.Image) -> Image.Image:
    """Rotated as its EXIF says; one whose EXIF cannot be read stays as it is."""
    with suppress(Exception):  # what untrusted bytes make Pillow raise has no end; pixels that are broken fail again
        if picture.getexif().get(ExifTags.Base.Orientation, 1) != 1:
            return ImageOps.exif_transpose(picture)
    return picture


def upright_size(picture: Image.Image) -> tuple[int, int]:
    """Width and height after rotation; a PNG, which may keep its EXIF behind the pixels, is not decoded for that."""
    if picture.format == "PNG" and "exif" not in picture.info:
        return picture.size
    with suppress(Exception):
        if picture.getexif().get(ExifTags.Base.Orientation, 1) in (5, 6, 7, 8):
            return picture.size[::-1]
    return picture.size


def _in_eight_bits(picture: Image.Image, is_legacy: bool) -> Image.Image:
    if not picture.mode.startswith(("I", "F")):
        return picture
    values = np.asarray(picture)
    return Image.fromarray((values >> 8).astype(np.uint8) if is_legacy else stretched(values))


def stretched(values: NDArray) -> Bytes:
    """Numbers of more than eight bits from the smallest to the largest of a picture → 0 … 255.

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


def as_picture(image: Bytes) -> Image.Image:
    """(height, width, 1, 3 or 4 channels), grey, RGB or RGBA."""
    return Image.fromarray(np.ascontiguousarray(image.squeeze(axis=2) if image.shape[2] == 1 else image))


def _edge(picture: Image.Image, is_tall: bool) -> float | tuple[int, ...]:
    """The median colour of the two edges that touch the padding."""
    pixels = np.asarray(picture)
    edges = pixels[:, [0, -1]] if is_tall else pixels[[0, -1]]
    colour = np.median(edges.reshape(edges.shape[0] * edges.shape[1], -1), axis=0)
    return tuple(map(int, colour)) if len(colour) > 1 else int(colour[0])


def visible_brightness(picture: Image.Image) -> float | None:
    """The mean brightness, 0 … 255, of what is visible of a picture with transparent parts; None for others.

    NaN where nothing is visible.
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
    """Black or white, whichever pictures of this visible brightness differ from more; None if none is transparent."""
    found = [each for each in brightness if each is not None]
    visible = [each for each in found if not math.isnan(each)]
    if not found:
        return None
    return WHITE if visible and math.fsum(visible) / len(visible) < 255 / 2 else BLACK


def scaled(image: Bytes, side: int) -> Bytes:
    """By Pillow's Lanczos filter, stretched: (height, width[, channels]) → (side, side, channels)."""
    whole = image.reshape(*image.shape[:2], -1)
    return Preparation((side, side, whole.shape[2]), "stretch").of_images(whole[np.newaxis])[0]


def natural_size(sizes: Iterable[tuple[int, int]]) -> int | str:
    """The resolution that pictures of these widths and heights get unless one is given.

    If all have one size, it is theirs, or the nearest that images may have. Pictures of several sizes become squares of
    the usual side that is nearest to their median.
    """
    known = sorted(sizes, key=max)
    width, height = known[0]
    if len(set(known)) == 1:
        return within(as_resolution(height, width))
    median = max(known[len(known) // 2])
    return min(USUAL_SIDES, key=lambda side: abs(math.log(median / side)))


def _inside(size: tuple[int, int], target: tuple[int, int]) -> tuple[int, int]:
    """The largest size (width, height) of the same aspect ratio inside the target."""
    scale = min(target[0] / size[0], target[1] / size[1])
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def arrangement(shape: tuple[int, ...]) -> tuple[int, Callable[[NDArray], NDArray]] | None:
    """The number of channels, and what brings (n, h, w), (n, h, w, c), (n, c, h, w) to (n, h, w, c); else None."""
    if 0 in shape[1:]:
        return None
    if len(shape) == 3:
        return 1, lambda images: images[..., np.newaxis]
    if len(shape) == 4 and shape[3] in (1, 3, 4):
        return shape[3], lambda images: images
    if len(shape) == 4 and shape[1] in (1, 3, 4):
        return shape[1], lambda images: images.transpose(0, 2, 3, 1)
    return None


def size_of(shape: tuple[int, ...]) -> tuple[int, int]:
    """Width and height of the images of an array that `arrangement` knows."""
    is_channels_first = len(shape) == 4 and shape[3] not in (1, 3, 4)
    return (shape[3], shape[2]) if is_channels_first else (shape[2], shape[1])


def as_bytes(images: NDArray) -> Bytes:
    """0 … 255 as they are, numbers in [0, 1] scaled to it, sixteen bits stretched image by image."""
    if images.dtype == np.uint8:
        return images
    if images.dtype == np.uint16:
        return np.stack([stretched(image) for image in images]) if len(images) else images.astype(np.uint8)
    return np.rint(255 * as_floats_in_range(images)).astype(np.uint8)


def as_floats_in_range(images: NDArray) -> NDArray[np.float32]:
    """Numbers in [0, 1] in float32."""
    if images.dtype.kind in "biuf":
        floats = images.astype(np.float32)
        if np.all((floats >= 0) & (floats <= 1)):
            return floats
    raise UserError("images must be uint8 from 0 to 255 or floats from 0 to 1 (or uint16, which is stretched)")


def reading_of(count: int, sizes: Iterable[tuple[int, int]], preparation: Preparation) -> str:
    """What becomes of so many pictures of these sizes, in a sentence."""
    known = sorted(set(sizes), key=lambda size: (size[0] * size[1], size))
    height, width, channels = preparation.shape
    span = " to ".join(dict.fromkeys(f"{wide}x{high}" for wide, high in (known[0], known[-1])))
    words = f"{count:,} picture{'s' * (count > 1)} of {span} pixels {'are' if count > 1 else 'is'} read"
    words += f" at {width}x{height}" + ("" if width == height else f" (resolution {as_resolution(height, width)})")
    words += f" in {'grey' if channels == 1 else 'colour'}"
    if len(known) == 1 and not all(SMALLEST <= side <= LARGEST for side in known[0]):
        words += f", since images have sides of {SMALLEST} to {LARGEST} pixels"
    if preparation.fit is None:
        return f"{words}, as by versions without the setting fit"
    if any(_inside(size, (width, height)) != (width, height) for size in known):
        done = {"pad": "padded", "crop": "cropped", "stretch": "stretched"}
        others = " or ".join(fit for fit in done if fit != preparation.fit)
        which = "that are not square" if width == height else "of another aspect ratio"
        words += f"; those {which} are {done[preparation.fit]} (set fit to {others} instead)"
    if preparation.background not in (None, preparation.padding):
        colour = {BLACK: "black", WHITE: "white"}[str(preparation.background)]
        words += f"; transparent parts become {colour} (set background for another colour)"
    return words
