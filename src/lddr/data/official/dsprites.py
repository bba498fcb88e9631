"""dSprites: 737 280 black and white images, held as bits; and its coloured and noisy variants."""

from collections.abc import Iterator
from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.arrays import MappedImages, Rows, converted, damaged
from lddr.data.dataset import Images, datasets
from lddr.data.download import Remote
from lddr.data.factors import Factor, Grid
from lddr.data.official.base import SIDE, Official
from lddr.data.stored import stored
from lddr.data.variants import coloured, noisy

PATH = "dsprites/dsprites_ndarray_co1sh3sc6or40x32y32_64x64"


def _evenly(start: float, stop: float, count: int) -> tuple[float, ...]:
    return tuple(np.linspace(start, stop, count).tolist())


@datasets.register("dsprites")
class DSprites(Official):
    """A white square, ellipse or heart on black, in 6 scales, 40 orientations and 32x32 positions."""

    name = "dsprites"
    title = "dSprites"
    summary = "dSprites: square, ellipse, heart in every place, size and turn"
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
    space = Grid(
        (
            Factor("shape", 3, ("square", "ellipse", "heart")),
            Factor("scale", 6, _evenly(0.5, 1, 6)),
            Factor("orientation", 40, _evenly(0, 2 * pi, 40)),
            Factor("x", 32, _evenly(0, 1, 32)),
            Factor("y", 32, _evenly(0, 1, 32)),
        )
    )
    image_shape = (SIDE, SIDE, 1)

    def _open(self, paths: list[Path]) -> MappedImages:
        shape = (self.space.size, SIDE * SIDE // 8)
        return converted("dsprites", paths, 1, shape, lambda: _packed(paths[0], self.space.size))

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self._masks(indices)

    def _masks(self, indices: ArrayLike) -> Images:
        packed = self.rows.take(indices)
        bits = np.unpackbits(packed, axis=-1)
        return np.negative(bits, out=bits).reshape(*packed.shape[:-1], SIDE, SIDE, 1)  # in bytes, -1 is 255


@datasets.register("color_dsprites")
class ColorDSprites(DSprites):
    """dSprites in a random colour, fresh with every draw: U(0.5, 1) for red, green and blue."""

    name = "color_dsprites"
    summary = "dSprites in random colours (the colour is no factor)"
    image_shape = (SIDE, SIDE, 3)
    is_fixed = False

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return coloured(self._masks(indices), generator)


@datasets.register("noisy_dsprites")
class NoisyDSprites(DSprites):
    """White sprites on uniform noise, fresh with every draw."""

    name = "noisy_dsprites"
    summary = "dSprites on random noise"
    image_shape = (SIDE, SIDE, 3)
    is_fixed = False

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return noisy(self._masks(indices), generator)


def _packed(path: Path, count: int) -> Iterator[Rows]:
    """The images of the file as bits, eight pixels in a byte."""
    masks = stored(path, "imgs")
    masks.expect((count, SIDE, SIDE))
    for chunk in masks.chunks():
        if chunk.max() > 1:
            raise damaged(path, "only the values 0 and 1 in 'imgs'", chunk.max())
        yield np.packbits(chunk.reshape(len(chunk), -1), axis=1)
