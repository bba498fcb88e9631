"""Infinite dSprites: as many random closed shapes as one wants, each with an orientation (Dziadzio et al. 2024)."""

from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from PIL import Image, ImageDraw

from lddr.data.dataset import Dataset, Images, datasets, stream
from lddr.data.drawn.circles import stamped
from lddr.data.factors import Factor, FactorGrid
from lddr.errors import UserError

VALUES = 32  # of scale, orientation, x and y
POINTS = 256  # corners of the polygon that a spline is drawn as
SMOOTH = 4  # a sprite is drawn so many times larger, then averaged
GREY = 169  # the background
Floats = NDArray[np.float64]


@cache
def outline(seed: int, shape: int) -> Floats:
    """Return one random closed curve around its centre of mass, its principal axis upright: (POINTS, 2).

    A spline of degree 1 or 3 runs through 5 to 8 vertices. Their radii are N(1, 0.4) within [0.1, 1.9], and their
    angles evenly spaced with normal jitter. The farthest point has a distance of 1 from the centre.
    """
    from scipy.interpolate import splev, splprep

    generator = stream(seed, "outline", shape)
    count, degree = int(generator.integers(5, 9)), int(generator.choice([1, 3]))
    radii = np.clip(generator.normal(1, 0.4, count), 0.1, 1.9)
    jitter = np.clip(generator.normal(0, 0.5, count), -0.9, 0.9) * np.pi / count
    angles = 2 * np.pi * np.arange(count) / count + jitter
    vertices = radii * np.stack([np.cos(angles), np.sin(angles)])
    closed = np.concatenate([vertices, vertices[:, :1]], axis=1)
    spline, _ = splprep(closed, s=0, k=degree, per=True)
    points = np.stack(splev(np.linspace(0, 1, POINTS, endpoint=False), spline), axis=1)
    centre, axis = _moments(points)
    points = (points - centre) @ np.stack([[axis[1], -axis[0]], axis], axis=1)
    return points / np.hypot(*points.T).max()


def _moments(points: Floats) -> tuple[Floats, Floats]:
    """Return the centre of mass and the principal axis of a polygon, by the formulas for its area's moments."""
    x, y, nx, ny = *points.T, *np.roll(points, -1, axis=0).T
    cross = x * ny - nx * y
    area = cross.sum() / 2
    centre = np.array([((x + nx) * cross).sum(), ((y + ny) * cross).sum()]) / (6 * area)
    xx, yy = (((a**2 + a * b + b**2) * cross).sum() / (12 * area) for a, b in ((x, nx), (y, ny)))
    xy = ((x * ny + 2 * x * y + 2 * nx * ny + nx * y) * cross).sum() / (24 * area)
    moments = np.array([[xx, xy], [xy, yy]]) - np.outer(centre, centre)
    axis = np.linalg.eigh(moments)[1][:, 1]
    return centre, axis if axis[1] >= 0 else -axis


@datasets.register("infinite_dsprites")
class InfiniteDSprites(Dataset):
    """Random shapes in 32 scales, orientations and positions each: half white, half black, on grey.

    The black half makes every orientation of a shape unique. Shape number i does not depend on how many there are.

    Parameters
    ----------
    resolution
        Pixels per side, 64 or 128.
    shapes
        How many shapes.
    seed
        Decides the shapes.
    """

    name = "infinite_dsprites"
    title = "Infinite dSprites"
    origin = "drawn"
    image_shape = (64, 64, 1)
    space = FactorGrid(
        (
            Factor("shape", 10),
            Factor("scale", VALUES, tuple(np.linspace(0.5, 1, VALUES).tolist())),
            Factor("orientation", VALUES, tuple((360 * np.arange(VALUES) / VALUES).tolist())),
            Factor("x", VALUES),
            Factor("y", VALUES),
        )
    )

    def __init__(self, resolution: int = 64, shapes: int = 10, seed: int = 0) -> None:
        if resolution not in (64, 128):
            raise UserError(f"infinite_dsprites are drawn at 64x64 or 128x128, not {resolution}x{resolution}")
        if shapes < 1:
            raise UserError(f"infinite_dsprites need at least one shape, not {shapes}")
        self.seed, self.image_shape = seed, (resolution, resolution, 1)
        self.space = FactorGrid((Factor("shape", shapes), *type(self).space.factors[1:]))
        side = resolution // 2  # of a sprite; its 32 places along each axis are whole pixels
        self._sprites = np.zeros((shapes * VALUES * VALUES, side, side), np.uint8)  # drawn on first use
        self._is_drawn = np.zeros(len(self._sprites), bool)

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        sprites, places = np.divmod(self.space.number_of(self.space.factors_of(indices)), VALUES * VALUES)
        for missing in {*sprites[~self._is_drawn[sprites]].tolist()}:
            self._sprites[missing], self._is_drawn[missing] = self._sprite(missing), True
        x, y = np.divmod(places, VALUES)
        resolution = self.image_shape[0]
        step = resolution // 64
        return stamped(self._sprites[sprites], step * y, step * x, resolution, GREY)

    def _sprite(self, number: int) -> Images:
        """Draw one shape at one scale and orientation: (side, side)."""
        shape, scale, orientation = np.unravel_index(number, (self.space.sizes[0], VALUES, VALUES))
        side = self._sprites.shape[1]
        size = SMOOTH * side * np.linspace(0.5, 1, VALUES)[scale] / 2
        angle = 2 * np.pi * orientation / VALUES
        rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        centre = SMOOTH * side / 2
        canvas, mask = (Image.new("L", (SMOOTH * side,) * 2, colour) for colour in (GREY, 0))
        corners = centre + size * outline(self.seed, int(shape)) @ rotation
        ImageDraw.Draw(mask).polygon((corners - 0.5).ravel().tolist(), fill=255)
        half = centre + 2 * size * np.array([[0, -1], [1, -1], [1, 1], [0, 1]]) @ rotation
        halves = Image.new("L", mask.size, 255)
        ImageDraw.Draw(halves).polygon((half - 0.5).ravel().tolist(), fill=0)
        canvas.paste(halves, mask=mask)
        return np.asarray(canvas.reduce(SMOOTH))
