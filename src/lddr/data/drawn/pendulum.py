"""Pendulum: a light, a pendulum and the shadow it casts, whose factors depend on each other (Yang et al. 2021)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.data.dataset import Dataset, Images, datasets
from lddr.data.factors import Factor, FactorTable, whole_numbers
from lddr.errors import UserError

ANGLES = 64  # values of each angle
BINS = 32  # values of the shadow's position and length
LIMIT = 45.0  # degrees, to either side
LIGHT_HEIGHT, PIVOT, ROD = 20.5, (10.0, 10.0), 9.5  # the ground is at height 0
LOW, HIGH = -2.25, 22.25  # what the picture shows, along both axes
LIGHT_RADIUS, BOB_RADIUS, ROD_WIDTH, SHADOW_WIDTH = 1.5, 1.5, 0.35, 0.8
SUN, SILVER, SHADE = (255, 190, 30), (40, 60, 140), (0, 0, 0)
Floats = NDArray[np.float64]


def scene(light: Floats, pendulum: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the x of the light, the bob's position and both ends of the shadow, for angles in radians.

    The shadow ends where the rays through the bob and through the pivot reach the ground.

    >>> x, bob, shadow = scene(np.zeros(1), np.zeros(1))
    >>> x.tolist(), bob.tolist(), shadow.tolist()
    ([10.0], [[10.0, 0.5]], [[10.0, 10.0]])
    """
    x = PIVOT[0] - (LIGHT_HEIGHT - PIVOT[1]) * np.tan(light)
    bob = np.stack([PIVOT[0] + ROD * np.sin(pendulum), PIVOT[1] - ROD * np.cos(pendulum)], axis=-1)
    of_bob = x + LIGHT_HEIGHT * (bob[..., 0] - x) / (LIGHT_HEIGHT - bob[..., 1])
    return x, bob, np.stack([of_bob, x + LIGHT_HEIGHT * np.tan(light)], axis=-1)


def _factors() -> FactorTable:
    """All pairs of angles, and what follows from them: the middle and the length of the shadow, in equal bins."""
    degrees = tuple(np.linspace(-LIMIT, LIMIT, ANGLES).tolist())
    light, pendulum = (grid.ravel() for grid in np.indices((ANGLES, ANGLES)))
    _, _, ends = scene(np.deg2rad(degrees)[light], np.deg2rad(degrees)[pendulum])
    columns, factors = [light, pendulum], [Factor("light", ANGLES, degrees), Factor("pendulum", ANGLES, degrees)]
    for name, values in (("shadow position", ends.mean(-1)), ("shadow length", np.abs(np.diff(ends)[:, 0]))):
        edges = np.linspace(values.min(), values.max(), BINS + 1)
        numbers, column = np.unique(np.digitize(values, edges[1:-1]), return_inverse=True)  # without empty bins
        middles = tuple((edges[numbers] + edges[numbers + 1]).tolist())
        factors.append(Factor(name, len(numbers), tuple(middle / 2 for middle in middles)))
        columns.append(column)
    return FactorTable(factors, np.stack(columns, axis=1))


@datasets.register("pendulum")
class Pendulum(Dataset):
    """A light and a pendulum, each at an angle of -45 to 45 degrees, and the shadow that they cause.

    The four factors are not independent: the position and the length of the shadow follow from the two angles.
    """

    name = "pendulum"
    title = "Pendulum"
    origin = "drawn"
    space = _factors()
    image_shape = (64, 64, 3)

    def __init__(self, resolution: int = 64) -> None:
        if not 16 <= resolution <= 128:
            raise UserError(f"pendulums are drawn at 16x16 to 128x128, not {resolution}x{resolution}")
        self.image_shape = (resolution, resolution, 3)
        centres = LOW + (HIGH - LOW) * (np.arange(resolution) + 0.5) / resolution
        self._x, self._y = np.meshgrid(centres, centres[::-1])
        self._pixel = (HIGH - LOW) / resolution
        self._images = np.zeros((len(self), *self.image_shape), np.uint8)  # drawn on first use
        self._is_drawn = np.zeros(len(self), bool)

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        numbers = whole_numbers(indices, len(self), "image")
        missing = np.unique(numbers[~self._is_drawn[numbers]])
        if len(missing):
            angles = np.deg2rad(np.linspace(-LIMIT, LIMIT, ANGLES))[self.space.factors_of(missing)[:, :2]]
            self._images[missing], self._is_drawn[missing] = self.at(angles[:, 0], angles[:, 1]), True
        return self._images[numbers]

    def at(self, light: Floats, pendulum: Floats) -> Images:
        """Return the pictures of these angles, in radians: two arrays (count,) → (count, height, width, 3)."""
        x, bob, shadow = scene(light, pendulum)
        pivot = np.broadcast_to(PIVOT, bob.shape)
        sun = np.stack([x, np.full_like(x, LIGHT_HEIGHT)], axis=-1)
        ends = np.stack([shadow, np.zeros_like(shadow)], axis=-1)  # (count, two ends, x and y)
        images = np.full((len(x), *self.image_shape), 255.0)
        self._paint(images, SHADE, ends[:, 0], ends[:, 1], SHADOW_WIDTH / 2)
        self._paint(images, SILVER, pivot, bob, ROD_WIDTH / 2)
        self._paint(images, SILVER, bob, bob, BOB_RADIUS)
        self._paint(images, SUN, sun, sun, LIGHT_RADIUS)
        return np.rint(images).astype(np.uint8)

    def _paint(self, images: Floats, colour: tuple[int, ...], start: Floats, end: Floats, radius: float) -> None:
        """Paint all points within a radius of a line onto every image, with smooth edges of one pixel."""
        points = np.stack([self._x, self._y], axis=-1) - start[:, np.newaxis, np.newaxis]  # (count, height, width, 2)
        way = (end - start)[:, np.newaxis, np.newaxis]
        share = np.clip((points * way).sum(-1) / np.maximum((way**2).sum(-1), 1e-12), 0, 1)[..., np.newaxis]
        distance = np.linalg.norm(points - share * way, axis=-1, keepdims=True)
        cover = np.clip(0.5 + (radius - distance) / self._pixel, 0, 1)
        images += cover * (colour - images)
