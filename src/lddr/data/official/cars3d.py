"""Cars3D: 183 cars on a turntable, a MATLAB file each."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lddr.data.array_files import Chunk, MappedImages, converted, describe_array
from lddr.data.dataset import Images, datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.data.official import SIDE, Official, Remote, find
from lddr.data.pictures import scaled
from lddr.files import damaged, reading_untrusted

CARS = 183
FOLDER = "cars"
IN_FILE = (128, 128, 3, 24, 4)  # height, width, channel, azimuth, elevation


@datasets.register("cars3d")
class Cars3D(Official):
    """Cars on white, one file each; the cars are numbered by the order of their file names."""

    name = "cars3d"
    title = "Cars3D"
    files = ((FOLDER,),)
    remotes = (
        Remote(
            path=FOLDER,
            url="http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
            checksum="md5:4e866a7919c1beedf53964e6f7a23686",
            members="data/cars",
        ),
    )
    space = FactorGrid((Factor("elevation", 4), Factor("azimuth", 24), Factor("object", CARS)))
    image_shape = (SIDE, SIDE, 3)

    @classmethod
    def found(cls) -> list[Path]:
        folder = find(FOLDER)
        return sorted(folder.glob("*.mat"), key=lambda path: path.name) if folder else []

    def _open(self, paths: list[Path]) -> MappedImages:
        if len(paths) != CARS:
            raise damaged(paths[0].parent, f"{CARS} car files (*.mat)", len(paths))
        return converted(self.name, paths, 1, (self.space.size, *self.image_shape), lambda: _chunks(paths))


def _chunks(paths: list[Path]) -> Iterator[Chunk]:
    """Yield the views of one car after the other; in the numbering it is the cars of one view."""
    for car, path in enumerate(paths):
        images = np.stack([scaled(view, SIDE) for view in _views(path)])
        yield np.arange(len(images)) * len(paths) + car, images


def _views(path: Path) -> Images:
    """Return the views of a car, all azimuths of one elevation after the other: (96, 128, 128, 3)."""
    from scipy.io import loadmat

    with reading_untrusted(path, "a whole MATLAB file"):
        content = loadmat(path, variable_names=["im"])
    if "im" not in content:
        raise damaged(path, "an array 'im'", "none")
    car = content["im"]
    if car.shape != IN_FILE or car.dtype != np.uint8:
        raise damaged(path, f"'im' to be {describe_array(IN_FILE)}", describe_array(car.shape, car.dtype))
    return car.transpose(4, 3, 0, 1, 2).reshape(-1, *IN_FILE[:3])
