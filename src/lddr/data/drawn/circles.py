"""Circles: one white disc on black, its position the only factor (paper, appendix "Dataset details")."""

from functools import cached_property

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from lddr.data.dataset import Dataset, Images, datasets
from lddr.data.factors import Factor, FactorGrid, Indices
from lddr.errors import UserError

LOW, HIGH, VALUES = 0.2, 0.8, 40  # the centre's range, and how many of its values make the finite factor space
NUM_CORNERS, SCALE = 30, 0.2  # Spriteworld's circle: a regular 30-gon of area SCALE²


def corners() -> NDArray[np.float64]:
    """Return the disc's corners around its centre, as fractions of the picture: (corners, 2)."""
    angles = 2 * np.pi * np.arange(NUM_CORNERS) / NUM_CORNERS
    area = NUM_CORNERS * np.sin(np.pi / NUM_CORNERS) * np.cos(np.pi / NUM_CORNERS)
    return SCALE * np.stack([np.cos(angles), np.sin(angles)], axis=1) / np.sqrt(area)


CORNERS = corners()


@datasets.register("circles")
class Circles(Dataset):
    """A disc of size 0.2 with its centre in [0.2, 0.8]²: continuous in training, 40x40 centres for the scores.

    Pillow cuts a polygon's corners down to whole pixels, so that a disc has only 30 distinct outlines along each axis
    besides its shift by whole pixels. All 900 are drawn once; every picture is one of them, put in its place.
    """

    name = "circles"
    title = "Circles"
    origin = "drawn"
    space = FactorGrid(
        tuple(Factor(axis, VALUES, tuple(np.linspace(LOW, HIGH, VALUES).tolist())) for axis in ("x", "y"))
    )
    image_shape = (64, 64, 1)
    is_fixed = False

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
        """Draw discs around these centres (x to the right, y upwards): (count, 2) → (count, height, width, 1)."""
        centres = np.asarray(centres, np.float64)
        if centres.size and (centres.min() < LOW or centres.max() > HIGH):
            raise UserError(f"the centre of a circle lies in [{LOW}, {HIGH}] along both axes")
        pixels = (self.resolution * (centres[:, :, np.newaxis] + CORNERS.T)).astype(np.int64)  # (count, axes, corners)
        (columns, rows), (across, up) = np.divmod(pixels.sum(axis=2).T - self._first, NUM_CORNERS)
        return stamped(self._discs[up, across], self._reach - rows, columns, self.resolution)

    @cached_property
    def _first(self) -> Indices:
        """The sum of the corners' pixels at the smallest centre: each pixel a corner moves on adds one."""
        return np.array([[outlines[0].sum()] for outlines in self._outlines])

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

    @property
    def _reach(self) -> int:
        """The longest way of a disc, in whole pixels."""
        return int(self.resolution * (HIGH - LOW))

    @cached_property
    def _discs(self) -> Images:
        """All outlines, flipped so that y points up: (outlines up, outlines across, size, size)."""
        size = self.resolution - self._reach
        discs = np.empty((NUM_CORNERS, NUM_CORNERS, size, size), np.uint8)
        for up, rows in enumerate(self._outlines[1]):
            for across, columns in enumerate(self._outlines[0]):
                canvas = Image.new("L", (size, size))
                ImageDraw.Draw(canvas).polygon(np.stack([columns, rows], axis=1).ravel().tolist(), fill=255)
                discs[up, across] = np.asarray(canvas)[::-1]
        return discs


def stamped(masks: Images, tops: Indices, lefts: Indices, size: int, background: int = 0) -> Images:
    """Paste each mask with its upper left corner at its own place: (count, h, w) → (count, size, size, 1)."""
    images = np.full((len(masks), size, size, 1), background, np.uint8)
    windows = sliding_window_view(images[..., 0], masks.shape[1:], axis=(1, 2), writeable=True)
    windows[np.arange(len(masks)), tops, lefts] = masks
    return images
