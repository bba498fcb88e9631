"""dSprites: 737 280 black and white images, from the official file or drawn; its coloured and noisy variants."""

from collections.abc import Iterator
from math import pi
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.array_files import MappedImages, Rows, array_in, converted
from lddr.data.dataset import Images, datasets
from lddr.data.download import Remote
from lddr.data.factors import Factor, FactorGrid, Indices, whole_numbers
from lddr.data.official.base import SIDE, Official
from lddr.data.rendered.sprite_bits import drawn_sprites
from lddr.data.variants import coloured, noisy
from lddr.errors import UserError
from lddr.files import damaged

PATH = "dsprites/dsprites_ndarray_co1sh3sc6or40x32y32_64x64"

AT_ONCE = 4096  # images compared
EXPECTED = (
    300  # pixels in which the file may differ from the drawing: 40 to 150 are thought to, of three thousand million
)
REDRAWN = "redrawn"  # the origin of dSprites without its file


def _evenly(start: float, stop: float, count: int) -> tuple[float, ...]:
    return tuple(np.linspace(start, stop, count).tolist())


@datasets.register("dsprites")
class DSprites(Official):
    """A white square, ellipse or heart on black, in 6 scales, 40 orientations and 32x32 positions.

    Without the official file the same pictures are drawn. Orientations 0 and 39 are one picture: that is the dataset.
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

    def look_closer(self) -> tuple[bool, str]:
        pixels = self._differing_pixels()
        numbers = np.flatnonzero(pixels)
        some = f" (the first: {', '.join(map(str, numbers[:5]))})" if numbers.size else ""
        words = f"{pixels.sum()} pixels differ from the drawing, in {numbers.size} of {self.space.size} images{some}"
        return bool(pixels.sum() <= EXPECTED), words

    def _differing_pixels(self) -> Indices:
        """In how many pixels each image of the file differs from its drawing."""
        from lddr.console import TaskBars

        found = np.zeros(self.space.size, np.int64)
        with TaskBars() as bars, bars.task("comparing with the drawing", self.space.size) as advance:
            for start in range(0, self.space.size, AT_ONCE):
                numbers = np.arange(start, min(start + AT_ONCE, self.space.size))
                differing = self.rows.take(numbers) ^ drawn_sprites().take(numbers)
                found[numbers] = np.unpackbits(differing, axis=1).sum(axis=1)
                advance(len(numbers))
        return found

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        images = self._painted(self._masks(indices), generator)
        return images if self.image_shape[0] == SIDE else halved(images)

    def _painted(self, masks: Images, generator: np.random.Generator | None) -> Images:
        return masks

    def _masks(self, indices: ArrayLike) -> Images:
        numbers = whole_numbers(indices, self.space.size, "image")
        packed = (drawn_sprites() if self.origin == REDRAWN else self.rows).take(numbers)
        bits = np.unpackbits(packed, axis=-1)
        return np.negative(bits, out=bits).reshape(len(packed), SIDE, SIDE, 1)  # in bytes, -1 is 255


@datasets.register("color_dsprites")
class ColorDSprites(DSprites):
    """dSprites in a random colour, fresh with every draw: U(0.5, 1) for red, green and blue."""

    name = "color_dsprites"
    title = "C-dSprites"
    image_shape = (SIDE, SIDE, 3)
    is_fixed = False

    def _painted(self, masks: Images, generator: np.random.Generator | None) -> Images:
        return coloured(masks, generator)


@datasets.register("noisy_dsprites")
class NoisyDSprites(DSprites):
    """White sprites on uniform noise, fresh with every draw."""

    name = "noisy_dsprites"
    title = "N-dSprites"
    image_shape = (SIDE, SIDE, 3)
    is_fixed = False

    def _painted(self, masks: Images, generator: np.random.Generator | None) -> Images:
        return noisy(masks, generator)


def halved(images: Images) -> Images:
    """Means of 2x2 pixels, halves rounded up: (count, h, w, channels) → (count, h/2, w/2, channels).

    Not cut back to black and white: a step of the position is half a pixel here, and the grey of the edges shows it.
    """
    planes = images.transpose(0, 3, 1, 2)
    pairs = np.add(planes[:, :, ::2], planes[:, :, 1::2], dtype=np.uint16).view(np.uint32)  # left and right in one
    return (((pairs & 0xFFFF) + (pairs >> 16) + 2) >> 2).astype(np.uint8).transpose(0, 2, 3, 1)


def _packed(path: Path, count: int) -> Iterator[Rows]:
    """The images of the file as bits, eight pixels in a byte."""
    masks = array_in(path, "imgs")
    masks.expect((count, SIDE, SIDE))
    for chunk in masks.chunks():
        if chunk.max() > 1:
            raise damaged(path, "only the values 0 and 1 in 'imgs'", chunk.max())
        yield np.packbits(chunk.reshape(len(chunk), -1), axis=1)
