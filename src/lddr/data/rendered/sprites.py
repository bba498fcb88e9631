"""Sprites: dSprites drawn by ourselves, with the same factors and sizes, and its coloured and noisy variants."""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.data.dataset import Dataset, Images, datasets
from lddr.data.factors import Factor, Grid
from lddr.data.rendered.stamps import stamped
from lddr.data.variants import coloured, noisy
from lddr.errors import UserError

SCALES = tuple(round(0.5 + 0.1 * step, 1) for step in range(6))
ORIENTATIONS = tuple(9.0 * step for step in range(40))  # degrees
POSITIONS = 32
RADIUS = 15  # of a sprite of scale 1, on a picture 64 pixels wide, where one step of the position is one pixel
# Where the first sprite stands and how far all are tilted. A binary picture does not change with every small step of
# a small shape, least of all of one that stands straight on the middle of a pixel: these odd values are the outcome
# of a search for ones with which every step changes every picture, at both resolutions (the tests look at all).
FIRST_X, FIRST_Y, TILT = 16.121, 16.366, 2.94


def inside_square(x: NDArray, y: NDArray) -> NDArray[np.bool_]:
    return np.maximum(np.abs(x), np.abs(y)) <= np.sqrt(0.5)


def inside_ellipse(x: NDArray, y: NDArray) -> NDArray[np.bool_]:
    return x**2 + (2 * y) ** 2 <= 1


def inside_heart(x: NDArray, y: NDArray) -> NDArray[np.bool_]:
    x, y = 1.4 * 1.313 * x, 1.313 * y  # the curve (x² + y² - 1)³ = x² y³, slimmer, and shrunk into the unit circle
    return (x**2 + y**2 - 1) ** 3 <= x**2 * y**3


SHAPES = {"square": inside_square, "ellipse": inside_ellipse, "heart": inside_heart}  # each within the unit circle


@datasets.register("sprites")
class Sprites(Dataset):
    """A white square, ellipse or heart on black: 3 shapes, 6 scales, 40 orientations, 32x32 positions."""

    name = "sprites"
    summary = "our dSprites: square, ellipse, heart in every place, size and turn"
    origin = "drawn"
    space = Grid(
        (
            Factor("shape", len(SHAPES), tuple(SHAPES)),
            Factor("scale", len(SCALES), SCALES),
            Factor("orientation", len(ORIENTATIONS), ORIENTATIONS),
            Factor("x", POSITIONS),
            Factor("y", POSITIONS),
        )
    )
    image_shape = (64, 64, 1)

    def __init__(self, resolution: int = 64) -> None:
        if resolution not in (32, 64):
            raise UserError(f"{self.name} are drawn at 64x64 or 32x32, not {resolution}x{resolution}")
        self.resolution = resolution
        self.image_shape = (resolution, resolution, self.image_shape[2])

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self._masks(indices)

    def _masks(self, indices: ArrayLike) -> Images:
        shape, scale, orientation, x, y = self.space.factors_of(indices).T
        (left, phase_x), (top, phase_y) = np.divmod(x, self._phases), np.divmod(y, self._phases)
        return stamped(self._sprites[shape, scale, orientation, phase_y, phase_x], top, left, self.resolution)

    @property
    def _phases(self) -> int:
        """How many steps of the position make one pixel."""
        return 64 // self.resolution

    @cached_property
    def _sprites(self) -> Images:
        """Every sprite at the first of its positions: (shapes, scales, orientations, phases, phases, size, size)."""
        size = self.resolution - (POSITIONS - 1) // self._phases  # what a sprite's way leaves of the picture
        places = (np.arange(size) + 0.5) * self._phases  # of the pixels, in steps of the position
        moved = places - np.arange(self._phases)[:, np.newaxis]  # (phases, size)
        x = (moved - FIRST_X)[np.newaxis, :, np.newaxis, :] / RADIUS
        y = (FIRST_Y - moved)[:, np.newaxis, :, np.newaxis] / RADIUS
        turns = [(np.cos(angle), np.sin(angle)) for angle in np.radians(np.array(ORIENTATIONS) + TILT)]
        turned = [(cos * x + sin * y, cos * y - sin * x) for cos, sin in turns]
        masks = [[[inside(u / scale, v / scale) for u, v in turned] for scale in SCALES] for inside in SHAPES.values()]
        return np.multiply(masks, 255, dtype=np.uint8)


@datasets.register("color_sprites")
class ColorSprites(Sprites):
    """Sprites in a random colour, fresh with every draw: U(0.5, 1) for red, green and blue."""

    name = "color_sprites"
    summary = "sprites in random colours (the colour is no factor)"
    image_shape = (64, 64, 3)
    is_fixed = False

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return coloured(self._masks(indices), generator)


@datasets.register("noisy_sprites")
class NoisySprites(Sprites):
    """White sprites on uniform noise, fresh with every draw."""

    name = "noisy_sprites"
    summary = "sprites on random noise"
    image_shape = (64, 64, 3)
    is_fixed = False

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return noisy(self._masks(indices), generator)
