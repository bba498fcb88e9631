"""Image sizes that the networks accept, and the levels of stride 2 that they use for each. Free of torch."""

from math import log2
from typing import NamedTuple

from lddr.errors import UserError

ImageShape = tuple[int, int, int]  # height, width, channels
SMALLEST_SIDE, LARGEST_SIDE = 8, 512  # of an image
SMALLEST_MAP = 4  # about the longer side of the smallest feature map


class Levels(NamedTuple):
    """How often a network halves or doubles the feature maps, and the size of the smallest one."""

    halvings: int
    height: int
    width: int

    @property
    def padded(self) -> tuple[int, int]:
        """Height and width of the image, rounded up to a multiple of 2**halvings."""
        return self.height << self.halvings, self.width << self.halvings


def levels_of(image_shape: ImageShape) -> Levels:
    """Levels that bring the longer side nearest to 4: 16 pixels have 2 levels, 64 have 4, and 96 have 5 (96 → 3)."""
    check_image_shape(image_shape)
    height, width, _ = image_shape
    halvings = round(log2(max(height, width) / SMALLEST_MAP))
    return Levels(halvings, -(-height >> halvings), -(-width >> halvings))


def check_image_shape(image_shape: ImageShape) -> None:
    """Raise an error unless the networks accept images of this shape."""
    height, width, channels = image_shape
    if not all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in (height, width)):
        raise UserError(
            f"no network for images of {height}x{width} pixels; "
            f"resize them so that each side has {SMALLEST_SIDE} to {LARGEST_SIDE} pixels"
        )
    if channels < 1:
        raise UserError(f"no network for images of {channels} channels; give images of at least 1 channel")
