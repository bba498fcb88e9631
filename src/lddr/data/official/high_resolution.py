"""Falcor3D and Isaac3D (Nie et al. 2020): photorealistic scenes, a PNG file for each image, averaged down to 64x64."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from lddr.data.array_files import MappedImages, Rows, converted
from lddr.data.dataset import Images, datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.data.official import SIDE, Official
from lddr.data.pictures import each_opened, stacked
from lddr.errors import UserError
from lddr.files import CURE, damaged


class NumberedPictures(Official):
    """One PNG file for each combination of the factors, named by its six-digit number."""

    folders: ClassVar[dict[str, int]]  # where the pictures may be, and the side of those there in pixels
    image_shape = (SIDE, SIDE, 3)

    def _open(self, paths: list[Path]) -> MappedImages:
        folder = paths[0].parent
        side = next(side for name, side in self.folders.items() if folder.as_posix().endswith(name))
        shape = (self.space.size, *self.image_shape)
        return converted(self.name, paths, 1, shape, lambda: _chunks(folder, side, self.space.size))


def _first_and_last(folders: dict[str, int], count: int) -> tuple[tuple[str, ...], ...]:
    """Return `files`: searching for hundreds of thousands would take seconds; the conversion counts them."""
    return tuple(tuple(f"{folder}/{number:06}.png" for folder in folders) for number in (0, count - 1))


def _chunks(folder: Path, side: int, count: int) -> Iterator[Rows]:
    if (found := len(list(folder.glob("*.png")))) != count:
        raise damaged(folder, f"{count} pictures (*.png)", found)
    files = [folder / f"{number:06}.png" for number in range(count)]
    yield from stacked(each_opened(files, partial(_averaged, side=side), "a whole PNG picture", CURE))


def _averaged(picture: Image.Image, side: int) -> Images:
    """Return a picture at 64x64: the mean of each block of pixels (2x2 at 128x128), halves rounded up."""
    if picture.size != (side, side) or picture.mode != "RGB":
        found = f"{picture.width}x{picture.height} in the mode {picture.mode}"
        raise UserError(f"expected {side}x{side} pixels in the mode RGB, found {found}; {CURE}")
    return np.asarray(picture.reduce(side // SIDE))


def _even(name: str, count: int) -> Factor:
    return Factor(name, count, tuple(np.linspace(0, 1, count).tolist()))


@datasets.register("falcor3d")
class Falcor3D(NumberedPictures):
    """A living room under a light and seen from a camera that move in three dimensions each."""

    name, title = "falcor3d", "Falcor3D"
    address = "https://drive.google.com/uc?export=download&id=1XAQfFK1x6cpN1eiovbP0hVfLTm5SsSoJ"
    space = FactorGrid(
        (
            _even("lighting intensity", 5),
            *(_even(f"lighting {axis}", 6) for axis in "xyz"),
            *(_even(f"camera {axis}", 6) for axis in "xyz"),
        )
    )
    folders: ClassVar = {"Falcor3D_down128/images": 128, "Falcor3D/images": 1024}
    files = _first_and_last(folders, space.size)


@datasets.register("isaac3d")
class Isaac3D(NumberedPictures):
    """A robot arm that holds an object in a kitchen.

    The factors have the order of the owners' `dataset_demo.py`. The formula in their README has the same strides, under
    names that do not fit its own list of sizes (an object scale of eight values instead of four).
    """

    name, title = "isaac3d", "Isaac3D"
    address = "https://drive.google.com/uc?export=download&id=1OmQ1G2wnm6eTsSFGTKFZZAh5D3nQTW1B"
    space = FactorGrid(
        (
            Factor("object shape", 3),
            _even("robot x", 8),
            _even("robot y", 5),
            _even("camera height", 4),
            _even("object scale", 4),
            _even("lighting intensity", 4),
            _even("lighting direction", 6),
            Factor("object colour", 4),
            Factor("wall colour", 4),
        )
    )
    folders: ClassVar = {"Isaac3D_down128/images": 128, "Isaac3D/images": 512}
    files = _first_and_last(folders, space.size)
