"""dSprites: 737,280 black and white images, from the official file or drawn; its coloured and noisy variants.

Without the official file the same images are drawn as polygons. A corner (u, v) of a shape, v pointing down, lies at
x = 16 + 32·kx/31 + s·(cos θ·u + sin θ·v) and y = 16 + 32·ky/31 + s·(-sin θ·u + cos θ·v), both rounded to 1/256 pixel;
θ = 2π·k/39, so that orientation 39 is 0 again, and s = 0.5 + 0.1·scale. A pixel is lit when its centre is inside
(even-odd); a centre on an edge counts as a little further right, on a horizontal edge as a little further up.
"""

from collections.abc import Iterator
from functools import cache
from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.data.array_files import MappedImages, Rows, array_in, converted
from lddr.data.dataset import Images, datasets, stream
from lddr.data.factors import Factor, FactorGrid, Indices, whole_numbers
from lddr.data.official import SIDE, Official, Remote
from lddr.errors import UserError
from lddr.files import damaged

PATH = "dsprites/dsprites_ndarray_co1sh3sc6or40x32y32_64x64"
COMPARED_AT_ONCE = 4096  # images
MOST_DIFFERING = 300  # pixels: of three thousand million, 40 to 150 are thought to differ from the drawing
REDRAWN = "redrawn"  # the origin of dSprites without its file


def _evenly(start: float, stop: float, count: int) -> tuple[float, ...]:
    return tuple(np.linspace(start, stop, count).tolist())


@datasets.register("dsprites")
class DSprites(Official):
    """A white square, ellipse or heart on black, in 6 scales, 40 orientations and 32x32 positions.

    Without the official file the same images are drawn. Orientations 0 and 39 are the same image: that is the dataset.
    """

    name = "dsprites"
    title = "dSprites"
    origin = "redrawn or official file"
    needs_files = False
    files = ((f"{PATH}.npz", f"{PATH}.hdf5"),)
    remotes = (
        Remote(
            path=f"{PATH}.hdf5",
            url="https://github.com/google-deepmind/dsprites-dataset/raw/master/"
            "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.hdf5",
            checksum="sha256:729fa22e884c9c500e1f17415d580746b4c5894fbbb780a1319bbcfa39a745bb",
            size=28024106,
        ),
    )
    space = FactorGrid(
        (
            Factor("shape", 3, ("square", "ellipse", "heart")),
            Factor("scale", 6, _evenly(0.5, 1, 6)),
            Factor("orientation", 40, _evenly(0, 2 * pi, 40)),
            Factor("x", 32, _evenly(0, 1, 32)),
            Factor("y", 32, _evenly(0, 1, 32)),
        )
    )
    image_shape = (SIDE, SIDE, 1)

    def __init__(self, resolution: int = SIDE) -> None:
        if resolution not in (SIDE // 2, SIDE):
            raise UserError(f"{self.name} comes at 64x64 or 32x32, not {resolution}x{resolution}")
        self.image_shape = (resolution, resolution, self.image_shape[2])
        paths = self.found()
        self.origin = "official file" if paths else REDRAWN
        if paths:
            self.rows = self._open(paths)

    def _open(self, paths: list[Path]) -> MappedImages:
        shape = (self.space.size, SIDE * SIDE // 8)
        return converted("dsprites", paths, 1, shape, lambda: _packed(paths[0], self.space.size))

    def compare_images(self) -> tuple[bool, str]:
        """Count the pixels in which the file differs from the drawing."""
        from lddr.console import TaskBars

        pixels = np.zeros(self.space.size, np.int64)
        with TaskBars() as bars, bars.task("comparing with the drawing", self.space.size) as advance:
            for start in range(0, self.space.size, COMPARED_AT_ONCE):
                numbers = np.arange(start, min(start + COMPARED_AT_ONCE, self.space.size))
                differing = self.rows.take(numbers) ^ drawn_sprites().take(numbers)
                pixels[numbers] = np.unpackbits(differing, axis=1).sum(axis=1)
                advance(len(numbers))
        wrong = np.flatnonzero(pixels)
        some = f" (the first: {', '.join(map(str, wrong[:5]))})" if wrong.size else ""
        words = f"{pixels.sum()} pixels differ from the drawing, in {wrong.size} of {self.space.size} images{some}"
        return bool(pixels.sum() <= MOST_DIFFERING), words

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        numbers = whole_numbers(indices, self.space.size, "image")
        packed = (drawn_sprites() if self.origin == REDRAWN else self.rows).take(numbers)
        bits = np.unpackbits(packed, axis=-1)
        masks = np.negative(bits, out=bits).reshape(len(packed), SIDE, SIDE, 1)  # in bytes, -1 is 255
        images = self._painted(masks, generator or stream(0, "variant"))
        return images if self.image_shape[0] == SIDE else halved(images)

    def _painted(self, masks: Images, generator: np.random.Generator) -> Images:
        return masks


# The variants fill one channel after the other: twenty times faster than channels side by side in memory.
@datasets.register("color_dsprites")
class ColorDSprites(DSprites):
    """dSprites in a random colour, fresh with every draw: U(0.5, 1) for red, green and blue."""

    name = "color_dsprites"
    title = "C-dSprites"
    image_shape = (SIDE, SIDE, 3)
    is_fixed = False

    def _painted(self, masks: Images, generator: np.random.Generator) -> Images:
        colours = np.rint(255 * generator.uniform(0.5, 1, (len(masks), 3, 1, 1))).astype(np.uint8)
        return (masks.transpose(0, 3, 1, 2) & colours).transpose(0, 2, 3, 1)


@datasets.register("noisy_dsprites")
class NoisyDSprites(DSprites):
    """White sprites on uniform noise, fresh with every draw."""

    name = "noisy_dsprites"
    title = "N-dSprites"
    image_shape = (SIDE, SIDE, 3)
    is_fixed = False

    def _painted(self, masks: Images, generator: np.random.Generator) -> Images:
        words = generator.integers(2**64, size=-(-3 * masks.size // 8), dtype=np.uint64)  # eight pixels at a time
        noise = words.view(np.uint8)[: 3 * masks.size].reshape(len(masks), 3, SIDE, SIDE)
        return (masks.transpose(0, 3, 1, 2) | noise).transpose(0, 2, 3, 1)


def halved(images: Images) -> Images:
    """Return means of 2x2 pixels, halves rounded up: (count, h, w, channels) → (count, h/2, w/2, channels).

    They stay grey: a step of the position is half a pixel here, and the grey of the edges shows it.
    """
    planes = images.transpose(0, 3, 1, 2)
    pairs = np.add(planes[:, :, ::2], planes[:, :, 1::2], dtype=np.uint16).view(np.uint32)  # left and right in one
    return (((pairs & 0xFFFF) + (pairs >> 16) + 2) >> 2).astype(np.uint8).transpose(0, 2, 3, 1)


def _packed(path: Path, count: int) -> Iterator[Rows]:
    """Yield the images of the file as bits, eight pixels in a byte."""
    masks = array_in(path, "imgs")
    masks.expect((count, SIDE, SIDE))
    for chunk in masks.chunks():
        if chunk.max() > 1:
            raise damaged(path, "only the values 0 and 1 in 'imgs'", chunk.max())
        yield np.packbits(chunk.reshape(len(chunk), -1), axis=1)


SNAP = 256  # places of a corner within a pixel
TURNS, STEPS = 39, 31  # a full rotation, and a distance of 32 pixels, in steps: 31 of them make 32 pixels
REACH = 14  # whole pixels from the first one of a sprite to its centre's pixel
EXTENT = 2 * REACH + 1  # pixels that hold a sprite wherever its centre lies within a pixel
HALF = 9.6  # pixels: half the side of the largest square

Outline = tuple[NDArray[np.float64], NDArray[np.float64]]
Bits = NDArray[np.uint8]  # (images, 512): eight pixels in a byte, row by row


S, T = (2 * np.pi * np.arange(count) / count for count in (100, 150))  # angles around the ellipse and the heart
HEIGHT = 13 * np.cos(T) - 5 * np.cos(2 * T) - 2 * np.cos(3 * T) - np.cos(4 * T)
OUTLINES: tuple[Outline, ...] = (
    (HALF * np.array([1.0, -1, -1, 1]), HALF * np.array([1.0, 1, -1, -1])),
    (1.33 * HALF * np.cos(S), HALF / 1.33 * np.sin(S)),
    (HALF * np.sin(T) ** 3, -0.15 * HALF - HALF / 14.5 * HEIGHT),
)
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
    rotated = np.cos(angle) * u + np.sin(angle) * v, np.cos(angle) * v - np.sin(angle) * u
    places = np.arange(STEPS)[:, np.newaxis] / STEPS + REACH  # a step is 32/31 pixels: whole pixels are left out
    x, y = (np.floor(SNAP * (places + size * axis) + 0.5).astype(np.int64) for axis in rotated)
    return x, y
