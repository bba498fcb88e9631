"""The images of dSprites, rendered by rule: polygons with every corner on a grid of 1/256 pixel.

A corner (u, v) of a shape, v pointing down, lies at x = 16 + 32·kx/31 + s·(cos θ·u + sin θ·v) and
y = 16 + 32·ky/31 + s·(-sin θ·u + cos θ·v), both rounded to 1/256 pixel; θ = 2π·k/39, so that orientation 39 is 0 again,
and s = 0.5 + 0.1·scale. A pixel is lit when its centre is inside (even-odd); a centre on an edge counts as a little
further right, on a horizontal edge as a little further up.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from lddr.data.factors import Indices

SIDE, SNAP = 64, 256  # pixels of a picture, places of a corner within a pixel
TURNS, STEPS = 39, 31  # a full rotation, and a distance of 32 pixels, in steps: 31 of them make 32 pixels
REACH = 14  # whole pixels from the first one of a sprite to its centre's pixel
EXTENT = 2 * REACH + 1  # pixels that hold a sprite wherever its centre lies within a pixel
HALF = 9.6  # pixels: half the side of the largest square

Outline = tuple[NDArray[np.float64], NDArray[np.float64]]
Bits = NDArray[np.uint8]  # (images, 512): eight pixels in a byte, row by row


def _angles(count: int) -> NDArray[np.float64]:
    return 2 * np.pi * np.arange(count) / count


def _square() -> Outline:
    return HALF * np.array([1.0, -1, -1, 1]), HALF * np.array([1.0, 1, -1, -1])


def _ellipse() -> Outline:
    return 1.33 * HALF * np.cos(_angles(100)), HALF / 1.33 * np.sin(_angles(100))


def _heart() -> Outline:
    t = _angles(150)
    height = 13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t)
    return HALF * np.sin(t) ** 3, -0.15 * HALF - HALF / 14.5 * height


OUTLINES = (_square(), _ellipse(), _heart())
KIND_SHAPE = (3, 6, 40)  # shapes, scales, orientations
KINDS = 720
FIRST_ALIKE = np.arange(KINDS) - (np.arange(KINDS) % 40 == TURNS) * TURNS  # orientation 39 is 0
X, Y = np.divmod(np.arange(32 * 32), 32)
WITHIN = Y % STEPS * STEPS + X % STEPS  # the place within a pixel
LEFT, TOP = (SIDE // 4 - REACH + steps + steps // STEPS for steps in (X, Y))  # the last place is 32 pixels on
SHIFT = SIDE - EXTENT - LEFT
# All pixels of a row from this column on. A row is the exclusive or of one such mask for each edge that crosses it.
FROM_COLUMN = np.array([(1 << (EXTENT - column)) - 1 for column in range(EXTENT + 1)], np.uint32)


class SpriteBits:
    """Every shape, scale and orientation at every subpixel position, rendered on first use.

    The images are numbered as in the dataset: shape, scale, orientation, x, y, where the last varies fastest.
    """

    def __init__(self) -> None:
        self._is_drawn = np.zeros(KINDS, bool)
        self._rows = np.zeros((KINDS, STEPS * STEPS, EXTENT), np.uint32)

    def take(self, numbers: Indices) -> Bits:
        """Return the images with these numbers: (count,) → (count, 512)."""
        kind, place = FIRST_ALIKE[numbers >> 10], numbers & 1023
        for missing in {*kind[~self._is_drawn[kind]].tolist()}:
            self._rows[missing], self._is_drawn[missing] = sprite(*np.unravel_index(missing, KIND_SHAPE)), True
        rows = self._rows[kind, WITHIN[place]].astype(np.int64) << SHIFT[place, np.newaxis]  # (count, EXTENT)
        pictures = np.zeros(len(numbers) * SIDE, np.int64)  # an integer per row of pixels, its highest bit on the left
        upmost = np.arange(len(numbers)) * SIDE + TOP[place]
        pictures[upmost[:, np.newaxis] + np.arange(EXTENT)] = rows
        return pictures.astype(">i8").view(np.uint8).reshape(len(numbers), SIDE * SIDE // 8)


@cache
def drawn_sprites() -> SpriteBits:
    """Return the table that this process shares."""
    return SpriteBits()


def sprite(shape: int, scale: int, turn: int) -> NDArray[np.uint32]:
    """Return the rows of one sprite at every subpixel position, where x varies fastest: (STEPS², EXTENT)."""
    x, y = _corners(shape, scale, turn)
    across, down = np.roll(x, -1, axis=1) - x, np.roll(y, -1, axis=1) - y  # the edges: (places, corners)
    centres = SNAP * np.arange(EXTENT) + SNAP // 2
    above = y[:, np.newaxis] < centres[:, np.newaxis]  # a corner level with a centre counts as below it
    place, row, edge = np.nonzero(above != np.roll(above, -1, axis=2))
    fall = down[place, edge, np.newaxis]
    crossing = (centres[row] - y[place, edge])[:, np.newaxis] * across.T[edge] + fall * (x.T[edge] - SNAP // 2)
    # The float quotient of integers below 2^30 is an integer only if the exact one is: no tie is lost.
    column = np.ceil(crossing / (SNAP * fall)).astype(np.intp)  # the first one right of the edge: (crossings, places)
    first = np.flatnonzero(np.diff(place * EXTENT + row, prepend=-1))  # of each row's crossings
    rows = np.zeros((STEPS, EXTENT, STEPS), np.uint32)
    rows[place[first], row[first]] = np.bitwise_xor.reduceat(FROM_COLUMN[column], first, axis=0)
    return rows.transpose(0, 2, 1).reshape(-1, EXTENT)


def _corners(shape: int, scale: int, turn: int) -> tuple[Indices, Indices]:
    """Return x and y of the corners, in 1/256 pixel from the sprite's first pixel: two arrays (places, corners)."""
    (u, v), size, angle = OUTLINES[shape], 0.5 + 0.1 * scale, 2 * np.pi * turn / TURNS
    turned = np.cos(angle) * u + np.sin(angle) * v, np.cos(angle) * v - np.sin(angle) * u
    places = np.arange(STEPS)[:, np.newaxis] / STEPS + REACH  # a step is 32/31 pixels: whole pixels are left out
    x, y = (np.floor(SNAP * (places + size * axis) + 0.5).astype(np.int64) for axis in turned)
    return x, y
