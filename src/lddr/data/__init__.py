"""Datasets: images by number, and the factors of variation behind them."""

from lddr.errors import UserError

FITS = ("pad", "crop", "stretch", "legacy")  # how pictures get another aspect ratio
SMALLEST, LARGEST = 8, 512  # pixels: the heights and widths that images may have


def height_and_width(resolution: int | str) -> tuple[int, int]:
    """64 or "64" → (64, 64), "48x96" → (48, 96)."""
    words = [word.strip() for word in str(resolution).lower().split("x")]
    if len(words) > 2 or not all(word.isdecimal() and int(word) for word in words):
        raise UserError(f"resolution must be a number of pixels, or HEIGHTxWIDTH such as 48x96, not {resolution!r}")
    return int(words[0]), int(words[-1])


def as_resolution(height: int, width: int) -> int | str:
    """A size as settings have it: a number for squares, else text such as "48x96"."""
    return height if height == width else f"{height}x{width}"


def allowed_size(resolution: int | str) -> tuple[int, int]:
    """Height and width, unless images may not have them."""
    size = height_and_width(resolution)
    if not all(SMALLEST <= side <= LARGEST for side in size):
        raise UserError(f"images have sides of {SMALLEST} to {LARGEST} pixels, not {size[0]}x{size[1]}")
    return size


def within(resolution: int | str, longest: int = LARGEST) -> int | str:
    """The size nearest to this one, in its aspect ratio, whose longer side has at most so many pixels."""
    height, width = height_and_width(resolution)
    scale = min(max(1.0, SMALLEST / min(height, width)), longest / max(height, width))
    return as_resolution(*(max(SMALLEST, round(scale * side)) for side in (height, width)))
