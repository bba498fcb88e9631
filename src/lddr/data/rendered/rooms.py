"""`rooms`: a coloured object in a coloured room, with the factors of Shapes3D."""

from colorsys import hsv_to_rgb
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.dataset import Dataset, Images, datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.data.rendered.raycast import Floats
from lddr.data.rendered.room_light import AZIMUTHS, SCALES, SOLIDS, lights
from lddr.errors import UserError

HUES = tuple(hue / 10 for hue in range(10))
PALETTE = np.array([hsv_to_rgb(hue, 0.85, 1) for hue in HUES], np.float32)  # (hues, 3)
WHITE = 253  # the three layers of a pixel may each be rounded up by a half: their sum must not pass 255


@dataclass(frozen=True)
class PaintLayer:
    """What one material adds to the images, cut to the pixels where it is ever seen."""

    rows: slice
    columns: slice
    table: Images  # (scale, shape, azimuth, hue, rows, columns, 3)


def coloured(light: Floats, shine: Floats | None = None) -> PaintLayer:
    """A material in every hue, from its light and the white shine on it: (scale, shape, azimuth, height, width)."""
    rows, columns = _extent(light, (0, 1, 2, 4)), _extent(light, (0, 1, 2, 3))
    light = light[..., rows, columns] * WHITE
    white = np.zeros_like(light) if shine is None else shine[..., rows, columns] * WHITE
    white += 0.5  # a cast cuts off, so this rounds
    table = np.empty((*light.shape[:3], len(HUES), *light.shape[3:], 3), np.uint8)
    for hue, channel in np.ndindex(PALETTE.shape):
        table[:, :, :, hue, :, :, channel] = light * PALETTE[hue, channel] + white
    return PaintLayer(rows, columns, table)


def _extent(light: Floats, other_axes: tuple[int, ...]) -> slice:
    """From the first to the last place along one axis that ever sends light."""
    places = np.flatnonzero(light.any(other_axes))
    return slice(int(places[0]), int(places[-1]) + 1)


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

    @cached_property
    def layers(self) -> tuple[PaintLayer, PaintLayer, PaintLayer]:
        """Floor, wall and object."""
        light = lights(self.image_shape[0])
        return coloured(light.floor), coloured(light.wall), coloured(light.thing, light.shine)

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        *hues, scale, shape, azimuth = self.space.factors_of(indices).T
        images = np.zeros((len(scale), *self.image_shape), np.uint8)
        for layer, hue in zip(self.layers, hues, strict=True):
            images[:, layer.rows, layer.columns] += layer.table[scale, shape, azimuth, hue]
        return images
