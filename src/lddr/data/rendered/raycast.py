"""Rounded solids standing on the floor: where rays meet them, which way their surface faces."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]  # float32 throughout; vectors are (3, count): x to the right, y ahead, z up

_CLOSE = 1e-3  # a ray this near to a surface has met it


@dataclass(frozen=True)
class Solid:
    """All points within `rounding` of a core, which is an upright box or, when `turned` on a lathe, an upright drum."""

    width: float  # of the core, from its axis to its side
    height: float  # of the core, from its middle to its top
    rounding: float
    turned: bool = True

    @property
    def middle(self) -> float:
        """Height of the centre above the floor."""
        return self.height + self.rounding

    @property
    def reach(self) -> float:
        """Radius of the ball about the centre that holds the whole solid."""
        corner = self.width if self.turned else self.width * 2**0.5
        return (corner**2 + self.height**2) ** 0.5 + self.rounding

    def surface(self, points: Floats) -> tuple[Floats, Floats]:
        """How far points outside the core are from the surface, (count,), and which way is out there, (3, count)."""
        x, y, z = points
        z = _beyond(z - self.middle, self.height)
        if self.turned:
            radius = np.maximum(np.sqrt(x * x + y * y), _CLOSE)
            outside = np.maximum(1 - self.width / radius, 0)
            x, y = x * outside, y * outside
        else:
            x, y = _beyond(x, self.width), _beyond(y, self.width)
        from_core = np.stack([x, y, z])
        return length(from_core) - self.rounding, unit(from_core)


def first_hit(solid: Solid, origin: Floats, directions: Floats) -> Floats:
    """How far rays from `origin`, (3, 1), go until they meet the solid, infinity if never: (3, count) → (count,).

    The distance to a convex solid is a convex function along a ray, so Newton's steps never go too far.
    """
    start, crossing = _enter_ball(solid, origin, directions)
    found = np.full(start.shape, np.inf, np.float32)
    rays = np.flatnonzero(crossing)
    way, directions = start[rays], directions[:, rays]
    while rays.size:  # every step gains _CLOSE at least, so each ray soon meets the solid or leaves it behind
        gap, outward = solid.surface(origin + way * directions)
        met = gap < _CLOSE
        found[rays[met]] = way[met]
        approach = -dot(outward, directions)
        going = ~met & (approach > 0)
        way = way[going] + gap[going] / approach[going]
        rays, directions = rays[going], directions[:, going]
    return found


def length(vectors: Floats) -> Floats:
    """(3, count) → (count,)."""
    return np.sqrt(dot(vectors, vectors))


def unit(vectors: Floats) -> Floats:
    """The same directions with length 1: (3, count) → (3, count)."""
    return vectors / np.maximum(length(vectors), 1e-6)


def dot(left: Floats, right: Floats) -> Floats:
    """(3, count), (3, count) → (count,)."""
    return left[0] * right[0] + left[1] * right[1] + left[2] * right[2]


def _beyond(values: Floats, limit: float) -> Floats:
    """How far values lie outside -limit … limit."""
    return values - np.clip(values, -limit, limit)


def _enter_ball(solid: Solid, origin: Floats, directions: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Where rays enter the ball around the solid, and whether they cross it at all."""
    centre = np.array([[0], [0], [solid.middle]], np.float32) - origin
    nearest = dot(directions, centre)
    inside = solid.reach**2 - dot(centre, centre) + nearest**2
    return nearest - np.sqrt(np.maximum(inside, 0)), inside > 0
