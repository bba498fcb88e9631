"""Rooms: a 3D scene similar to 3D Shapes, rendered by ray casting."""

from colorsys import hsv_to_rgb
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.data.dataset import Dataset, Images, datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.errors import UserError

Floats = NDArray[np.floating]  # float32 throughout; vectors are (3, count): x points right, y forward, z up

_CLOSE = 1e-3  # a ray this close to a surface has hit it


@dataclass(frozen=True)
class Solid:
    """All points within `rounding` of a core: an upright box or, with `is_round`, an upright cylinder."""

    width: float  # of the core, from its axis to its side
    height: float  # of the core, from its middle to its top
    rounding: float
    is_round: bool = True

    @property
    def middle(self) -> float:
        """Height of the centre above the floor."""
        return self.height + self.rounding

    @property
    def reach(self) -> float:
        """Return the radius of the bounding sphere about the centre."""
        corner = self.width if self.is_round else self.width * 2**0.5
        return (corner**2 + self.height**2) ** 0.5 + self.rounding

    def surface(self, points: Floats) -> tuple[Floats, Floats]:
        """Return distances to the surface for points outside the core, (count,), and outward normals, (3, count)."""
        x, y, z = points
        z = _beyond(z - self.middle, self.height)
        if self.is_round:
            radius = np.maximum(np.sqrt(x * x + y * y), _CLOSE)
            outside = np.maximum(1 - self.width / radius, 0)
            x, y = x * outside, y * outside
        else:
            x, y = _beyond(x, self.width), _beyond(y, self.width)
        from_core = np.stack([x, y, z])
        return length(from_core) - self.rounding, unit(from_core)


def first_hit(solid: Solid, origin: Floats, directions: Floats) -> Floats:
    """Return how far rays from `origin`, (3, 1), travel to the solid, infinity if they miss: (3, count) → (count,).

    The distance to a convex solid is a convex function along a ray, so Newton steps never overshoot.
    """
    centre = np.array([[0], [0], [solid.middle]], np.float32) - origin
    nearest = dot(directions, centre)
    inside = solid.reach**2 - dot(centre, centre) + nearest**2  # above 0 where a ray enters the bounding sphere
    found = np.full(nearest.shape, np.inf, np.float32)
    rays = np.flatnonzero(inside > 0)
    way, directions = nearest[rays] - np.sqrt(inside[rays]), directions[:, rays]
    while rays.size:  # every step advances by at least _CLOSE, so each ray soon hits the solid or passes it
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
    """Normalise vectors to length 1: (3, count) → (3, count)."""
    return vectors / np.maximum(length(vectors), 1e-6)


def dot(left: Floats, right: Floats) -> Floats:
    """(3, count), (3, count) → (count,)."""
    return left[0] * right[0] + left[1] * right[1] + left[2] * right[2]


def _beyond(values: Floats, limit: float) -> Floats:
    """Return how far values lie outside -limit … limit."""
    return values - np.clip(values, -limit, limit)


SOLIDS = {
    "cube": Solid(0.80, 0.80, 0.08, is_round=False),
    "cylinder": Solid(0.74, 0.84, 0.10),
    "sphere": Solid(0, 0, 1.05),
    "capsule": Solid(0, 0.54, 0.70),
}
SCALES = tuple(float(scale) for scale in np.linspace(0.75, 1.25, 8))
AZIMUTHS = tuple(float(degrees) for degrees in np.linspace(-30, 30, 15))

_SAMPLES = 3  # rays per pixel, along each side
_ROOM = 3.5  # from the centre of the room to its walls
_INWARD = np.array([[0, 0, 1], [1, 0, 0], [-1, 0, 0], [0, -1, 0]], np.float32)  # floor, left, right, back wall
_LAMP = np.array([[-3.0], [-2.4], [7.0]], np.float32)
_LAMP_RADIUS, _LAMP_POINTS = 1.4, 24
_CAMERA_DISTANCE, _CAMERA_HEIGHT, _AIM_HEIGHT, _OPENING = 6.2, 3.0, 0.92, 0.42
_FLOOR = np.linspace(-_ROOM - 0.1, _ROOM + 0.1, 73, dtype=np.float32)  # in x and y: a grid of points on the floor
_GAMMA = 1 / 2.2  # a power of a product is the product of the powers: colours can be multiplied in later


class Lights(NamedTuple):
    """Each pixel's light per unit of each colour: (scale, shape, azimuth, height, width), summing to at most 1."""

    floor: Floats
    wall: Floats
    thing: Floats
    shine: Floats  # white, from the object's highlight


@dataclass(frozen=True)
class View:
    """The empty room from one azimuth: what each ray hits."""

    camera: Floats  # (3, 1)
    directions: Floats  # (3, rays): the first sample of every pixel, then the second of every pixel, …
    wall: Floats  # (rays,): brightness of the wall, 0 on the floor
    floor: NDArray[np.intp]  # (floor rays,): the rays that hit the floor
    corners: NDArray[np.intp]  # (4, floor rays): the points of the floor's grid around the hit
    weights: Floats  # (4, floor rays): their interpolation weights


def lights(resolution: int) -> Lights:
    """Render every object from every azimuth."""
    shape = (len(SCALES), len(SOLIDS), len(AZIMUTHS), resolution, resolution)
    result = Lights(*(np.empty(shape, np.float32) for _ in Lights._fields))
    objects = [(i, j, solid, scale) for i, scale in enumerate(SCALES) for j, solid in enumerate(SOLIDS.values())]
    floors = [_floor(solid, scale) for _, _, solid, scale in objects]
    for k, azimuth in enumerate(AZIMUTHS):
        view = _view(azimuth, resolution)
        for floor, (i, j, solid, scale) in zip(floors, objects, strict=True):
            for layer, rays in zip(result, _look(view, floor, solid, scale), strict=True):
                layer[i, j, k] = rays.reshape(-1, resolution, resolution).mean(0)
    return result


def _look(view: View, floor: Floats, solid: Solid, scale: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the light of each ray from floor, wall, object and highlight: four arrays (rays,)."""
    camera = view.camera / scale  # instead of scaling the object up, scale the room down
    way = first_hit(solid, camera, view.directions)
    hit = np.isfinite(way)
    ground, thing, shine = np.zeros((3, len(way)), np.float32)
    ground[view.floor] = (floor[view.corners] * view.weights).sum(0)
    ground[hit] = 0
    directions = view.directions[:, hit]
    thing[hit], shine[hit] = _object(solid, scale, camera + way[hit] * directions, directions)
    return ground, np.where(hit, 0, view.wall), thing, shine


def _view(azimuth: float, resolution: int) -> View:
    camera, directions = _rays(azimuth, resolution)
    towards = -_INWARD @ directions  # (surfaces, rays)
    ways = np.where(towards > 0, _gaps(camera) / np.maximum(towards, 1e-6), np.inf)
    surface, way = ways.argmin(0), ways.min(0)  # the first of floor, left, right and back wall
    points = camera + way * directions
    lamp, ambient = _room_light(points, surface)
    wall = np.where(surface > 0, _brightness(0.68 * lamp + ambient), 0)
    floor = np.flatnonzero(surface == 0)
    return View(camera, directions, wall, floor, *_grid_corners(points[:2, floor]))


def _rays(azimuth: float, resolution: int) -> tuple[Floats, Floats]:
    """Return the camera's position, (3, 1), and the directions of its rays, (3, rays)."""
    sine, cosine = np.sin(np.radians(azimuth)), np.cos(np.radians(azimuth))
    camera = np.array([[sine * _CAMERA_DISTANCE], [-cosine * _CAMERA_DISTANCE], [_CAMERA_HEIGHT]], np.float32)
    ahead = unit(np.array([[0], [0], [_AIM_HEIGHT]], np.float32) - camera)
    right = np.array([[cosine], [sine], [0]], np.float32)
    up = np.cross(right, ahead, axis=0)
    steps = np.linspace(-_OPENING, _OPENING, 2 * resolution * _SAMPLES + 1, dtype=np.float32)[1::2]
    steps = steps.reshape(resolution, _SAMPLES).T
    down, across = np.broadcast_arrays(steps[:, None, :, None], steps[None, :, None, :])
    return camera, unit(ahead - up * down.ravel() + right * across.ravel())


def _gaps(points: Floats) -> Floats:
    """Return the distances of points from floor, left, right and back wall: (3, count) → (4, count)."""
    return _INWARD @ points + np.array([[0], [_ROOM], [_ROOM], [_ROOM]], np.float32)


def _room_light(points: Floats, surface: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return direct light from the lamp and ambient light at points of the room's surfaces; corners get less."""
    towards = _LAMP - points
    away = length(towards)
    lamp = dot(_INWARD.T[:, surface], towards) / away * (7 / away) ** 1.5
    shade = 0.4 * np.exp(-np.maximum(_gaps(points), 0) / 0.4)
    shade[surface, np.arange(len(surface))] = 0
    clear = (1 - shade).prod(0)
    return lamp * (1 + clear) / 2, 0.30 * clear


def _floor(solid: Solid, scale: float) -> Floats:
    """Return the brightness of the floor with the object's shadow: (grid points,), the same from every azimuth."""
    x, y = (grid.ravel() for grid in np.meshgrid(_FLOOR, _FLOOR, indexing="ij"))
    points = np.stack([x, y, np.zeros_like(x)])
    lamp, ambient = _room_light(points, np.zeros(len(x), np.intp))
    gap, _ = solid.surface(points / scale)
    contact = 1 - 0.6 * np.exp(-np.maximum(gap, 0) * scale / 0.25)
    return _brightness(0.62 * lamp * _lamp_share(solid, scale, points) + ambient * contact)


def _lamp_share(solid: Solid, scale: float, points: Floats) -> Floats:
    """Return the share of the lamp that is visible from these points of the floor: (3, count) → (count,)."""
    seen = np.zeros(points.shape[1], np.float32)
    for turn in range(_LAMP_POINTS):  # points on a spiral cover the lamp's disc evenly
        angle, radius = 2.4 * turn, _LAMP_RADIUS * ((turn + 0.5) / _LAMP_POINTS) ** 0.5
        spot = _LAMP + np.array([[radius * np.cos(angle)], [radius * np.sin(angle)], [0]], np.float32)
        seen += np.isinf(first_hit(solid, spot / scale, unit(points - spot)))
    return seen / _LAMP_POINTS


def _grid_corners(places: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the four points of the floor's grid around each place, and their weights: (2, count) → two (4, count)."""
    steps = (places - _FLOOR[0]) / (_FLOOR[1] - _FLOOR[0])
    x, y = whole = steps.astype(np.intp)
    right, back = steps - whole.astype(np.float32)
    corners = x * len(_FLOOR) + y + np.array([[0], [1], [len(_FLOOR)], [len(_FLOOR) + 1]])
    return corners, np.stack([(1 - right) * (1 - back), (1 - right) * back, right * (1 - back), right * back])


def _object(solid: Solid, scale: float, points: Floats, directions: Floats) -> tuple[Floats, Floats]:
    """Return brightness and highlight of points on the object, seen along these directions."""
    _, normal = solid.surface(points)
    x, y, z = normal
    lamp = unit(_LAMP / scale - points)
    mirrored = np.maximum(dot(normal, unit(lamp - directions)), 0)
    shine = 0.55 * mirrored**60 + 0.08 * mirrored**12
    contact = 1 - np.exp(-points[2] * scale / 0.4) * (1 - np.maximum(z, 0)) / 2
    ambient = 0.24 + 0.1 * z + 0.2 * np.maximum(-y, 0) + 0.05 * x
    light = 0.66 * np.maximum(dot(normal, lamp), 0) + ambient * contact
    return _brightness(light) * (1 - shine), shine


def _brightness(light: Floats) -> Floats:
    """Convert linear light to screen brightness (gamma correction)."""
    return np.clip(light, 0, 1) ** _GAMMA


HUES = tuple(hue / 10 for hue in range(10))
PALETTE = np.array([hsv_to_rgb(hue, 0.85, 1) for hue in HUES], np.float32)  # (hues, 3)
WHITE = 253  # the three layers of a pixel may each be rounded up by a half: their sum must not exceed 255


@dataclass(frozen=True)
class PaintLayer:
    """The contribution of one material to the images, cropped to the pixels where it is ever visible."""

    rows: slice
    columns: slice
    table: Images  # (scale, shape, azimuth, hue, rows, columns, 3)


def coloured(light: Floats, shine: Floats | None = None) -> PaintLayer:
    """Return a material in every hue, from its light and white highlight: (scale, shape, azimuth, height, width)."""
    rows, columns = _extent(light, (0, 1, 2, 4)), _extent(light, (0, 1, 2, 3))
    light = light[..., rows, columns] * WHITE
    white = np.zeros_like(light) if shine is None else shine[..., rows, columns] * WHITE
    white += 0.5  # casting truncates, so adding a half rounds
    table = np.empty((*light.shape[:3], len(HUES), *light.shape[3:], 3), np.uint8)
    for hue, channel in np.ndindex(PALETTE.shape):
        table[:, :, :, hue, :, :, channel] = light * PALETTE[hue, channel] + white
    return PaintLayer(rows, columns, table)


def _extent(light: Floats, other_axes: tuple[int, ...]) -> slice:
    """Return the range from the first to the last position along one axis that is ever lit."""
    places = np.flatnonzero(light.any(other_axes))
    return slice(int(places[0]), int(places[-1]) + 1)


@cache
def paint_layers(resolution: int) -> tuple[PaintLayer, PaintLayer, PaintLayer]:
    """Return floor, wall and object, which all datasets of this process share."""
    light = lights(resolution)
    return coloured(light.floor), coloured(light.wall), coloured(light.thing, light.shine)


@datasets.register("rooms")
class Rooms(Dataset):
    """Shapes3D drawn here: floor, wall and object are three layers, looked up by geometry and hue, and added."""

    name = "rooms"
    title = "rooms"
    origin = "drawn"
    space = FactorGrid(
        (
            Factor("floor hue", len(HUES), HUES),
            Factor("wall hue", len(HUES), HUES),
            Factor("object hue", len(HUES), HUES),
            Factor("scale", len(SCALES), SCALES),
            Factor("shape", len(SOLIDS), tuple(SOLIDS)),
            Factor("azimuth", len(AZIMUTHS), AZIMUTHS),
        )
    )
    image_shape = (64, 64, 3)

    def __init__(self, resolution: int = 64) -> None:
        if resolution not in (32, 64):
            raise UserError(f"rooms are drawn with resolution 32 or 64, not {resolution}")
        self.image_shape = (resolution, resolution, 3)

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        *hues, scale, shape, azimuth = self.space.factors_of(indices).T
        images = np.zeros((len(scale), *self.image_shape), np.uint8)
        for layer, hue in zip(paint_layers(self.image_shape[0]), hues, strict=True):
            images[:, layer.rows, layer.columns] += layer.table[scale, shape, azimuth, hue]
        return images
