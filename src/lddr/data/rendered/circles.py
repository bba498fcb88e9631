"""Circles: one white disc on black, its position the only factor (paper, appendix "Dataset details")."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from lddr.data.dataset import Dataset, Images, datasets
from lddr.data.factors import Factor, Grid, Indices
from lddr.data.rendered.stamps import Stamps
from lddr.errors import UserError

LOW, HIGH, VALUES = 0.2, 0.8, 40  # the centre's range, and how many of its values make the finite factor space
NUM_CORNERS, SCALE = 30, 0.2  # Spriteworld's circle: a regular 30-gon of area SCALE²


def corners() -> NDArray[np.float64]:
    """The disc's corners around its centre, as fractions of the picture: (corners, 2)."""
    angles = 2 * np.pi * np.arange(NUM_CORNERS) / NUM_CORNERS
    area = NUM_CORNERS * np.sin(np.pi / NUM_CORNERS) * np.cos(np.pi / NUM_CORNERS)
    return SCALE * np.stack([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(area)


CORNERS = corners()


@datasets.register("circles")
class Circles(Dataset):
    """A disc of size 0.2 with its centre in [0.2, 0.8]²: continuous in training, 40x40 centres for the scores.

    Pillow cuts a polygon's corners down to whole pixels, so that a disc has only 30 distinct outlines along each axis
    besides its shift by whole pixels. All 900 are drawn once; every picture is a window of one of them.
    """

    name = "circles"
    summary = "one disc, anywhere (the paper's Circles)"
    origin = "drawn"
    space = Grid(tuple(Factor(axis, VALUES, tuple(np.linspace(LOW, HIGH, VALUES).tolist())) for axis in ("x", "y")))
    image_shape = (64, 64, 1)

    def __init__(self, resolution: int = 64) -> None:
        if not 16 <= resolution <= 128:
            raise UserError(f"circles are drawn at 16x16 to 128x128, not {resolution}x{resolution}")
        self.resolution = resolution
        self.image_shape = (resolution, resolution, 1)

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self.at(np.linspace(LOW, HIGH, VALUES)[self.space.factors_of(indices)])

    def draw(self, generator: np.random.Generator, count: int) -> Images:
        return self.at(generator.uniform(LOW, HIGH, (count, 2)))

    def at(self, centres: ArrayLike) -> Images:
        """The discs around these centres (x to the right, y upwards): (count, 2) → (count, height, width, 1)."""
        centres = np.asarray(centres, np.float64)
        if centres.size and (centres.min() < LOW or centres.max() > HIGH):
            raise UserError(f"the centre of a circle lies in [{LOW}, {HIGH}] along both axes")
        (columns, across), (rows, up) = (self._snap(axis, centres[:, axis]) for axis in (0, 1))
        return self._stamps.images(up * NUM_CORNERS + across, rows, self._reach - columns)

    def _snap(self, axis: int, centres: NDArray[np.float64]) -> tuple[Indices, Indices]:
        """Whole pixels moved and the number of the outline, from the sum of the corners' whole-pixel coordinates."""
        pixels = (self.resolution * (centres[:, np.newaxis] + CORNERS[:, axis])).astype(np.int64)
        return np.divmod(pixels.sum(axis=1) - self._outlines[axis][0].sum(), NUM_CORNERS)

    @cached_property
    def _outlines(self) -> list[Indices]:
        """Per axis the corners' pixels at the smallest centre, then with one corner after the other moved on."""
        outlines = []
        for axis in (0, 1):
            exact = self.resolution * (LOW + CORNERS[:, axis])
            order = np.argsort(np.floor(exact) - exact, kind="stable")  # the corner nearest to its next pixel first
            moved = np.zeros((NUM_CORNERS, NUM_CORNERS), np.int64)
            for count in range(NUM_CORNERS):
                moved[count, order[:count]] = 1
            outlines.append(np.floor(exact).astype(np.int64) + moved)
        return outlines

    @cached_property
    def _reach(self) -> int:
        return int(np.ceil(self.resolution * (HIGH - LOW)))

    @cached_property
    def _stamps(self) -> Stamps:
        """All outlines at the lower left end of their way, flipped so that y points up, room to move around them."""
        size = self.resolution + self._reach
        canvases = np.empty((NUM_CORNERS, NUM_CORNERS, size, size), np.uint8)
        for up, rows in enumerate(self._outlines[1]):
            for across, columns in enumerate(self._outlines[0]):
                canvas = Image.new("L", (size, size))
                corner_pixels = np.stack([columns, rows], axis=1) + self._reach
                ImageDraw.Draw(canvas).polygon(corner_pixels.ravel().tolist(), fill=255)
                canvases[up, across] = np.asarray(canvas)[::-1]
        return Stamps(canvases.reshape(-1, size, size), self.resolution)
