"""XYSquares: three squares, one per colour channel, each at a place of its own (Michlo et al. 2022, `disent`)."""

from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.dataset import Dataset, Images, datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.errors import UserError

PLACES = 8  # along each axis
SIDE, SQUARE = 64, 8  # pixels


@datasets.register("xysquares")
class XYSquares(Dataset):
    """A red, a green and a blue square that never overlap their other places: pixels do not show which are near.

    Squares move on by their own side, so that two places of a square are equally far apart in pixels, whether they
    are neighbours or not. No reconstruction loss rewards an ordered code here. The variants with a smaller spacing
    let neighbouring places overlap.
    """

    name = "xysquares"
    title = "XYSquares"
    origin = "drawn"
    space = FactorGrid(
        tuple(Factor(f"{colour} {axis}", PLACES) for colour in ("red", "green", "blue") for axis in "xy")
    )
    image_shape = (SIDE, SIDE, 3)
    spacing: ClassVar[int] = 8  # pixels of 64 between neighbouring places

    def __init__(self, resolution: int = SIDE) -> None:
        if resolution % SQUARE or not 16 <= resolution <= 512 or self.spacing * resolution % SIDE:
            raise UserError(f"{self.name} cannot be drawn at {resolution}x{resolution}; use 64, or another power of 2")
        scale = resolution / SIDE
        first = (SIDE - SQUARE - (PLACES - 1) * self.spacing) // 2  # centred
        starts = scale * (first + self.spacing * np.arange(PLACES))
        offsets = np.arange(resolution) - starts[:, np.newaxis]
        self._lines = np.where((offsets >= 0) & (offsets < scale * SQUARE), 255, 0).astype(np.uint8)  # (places, pixels)
        self.image_shape = (resolution, resolution, 3)

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        places = self.space.factors_of(indices).reshape(-1, 3, 2)
        columns, rows = self._lines[places[..., 0]], self._lines[places[..., 1]]  # (count, channels, pixels)
        return (rows[..., np.newaxis] & columns[..., np.newaxis, :]).transpose(0, 2, 3, 1)


@datasets.register("xysquares_4")
class XYSquares4(XYSquares):
    """XYSquares whose neighbouring places overlap by half a square."""

    name, title, spacing = "xysquares_4", "XYSquares (spacing 4)", 4


@datasets.register("xysquares_1")
class XYSquares1(XYSquares):
    """XYSquares whose neighbouring places are one pixel apart, so that pixels show which are near."""

    name, title, spacing = "xysquares_1", "XYSquares (spacing 1)", 1
