"""Shapes3D: an object in a room, 480,000 images."""

from pathlib import Path

import numpy as np

from lddr.data.array_files import HDF5_SUFFIXES, MappedImages, array_in, describe_array, rows_in
from lddr.data.dataset import datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.data.official import SIDE, Official, Remote
from lddr.files import damaged

HDF5 = "3dshapes/3dshapes.h5"
NPZ = "3dshapes/look-at-object-room_floor-hueXwall-hueXobj-hueXobj-sizeXobj-shapeXview-azi.npz"


@datasets.register("shapes3d")
class Shapes3D(Official):
    """A cube, cylinder, sphere or capsule in a room, in 10 hues each for floor, wall and object."""

    name = "shapes3d"
    title = "Shapes3D"
    files = ((HDF5, NPZ),)
    remotes = (
        Remote(
            path=HDF5,
            url="https://storage.googleapis.com/3d-shapes/3dshapes.h5",
            checksum="sha256:0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785",
            size=267573662,
        ),
    )
    space = FactorGrid(
        (
            Factor("floor hue", 10),
            Factor("wall hue", 10),
            Factor("object hue", 10),
            Factor("scale", 8),
            Factor("shape", 4, ("cube", "cylinder", "sphere", "capsule")),
            Factor("azimuth", 15, tuple(np.linspace(-30, 30, 15).tolist())),
        )
    )
    image_shape = (SIDE, SIDE, 3)

    def _open(self, paths: list[Path]) -> MappedImages:
        if paths[0].suffix in HDF5_SUFFIXES:
            labels, shape = array_in(paths[0], "labels"), (self.space.size, len(self.space.factors))
            if labels.shape != shape:
                expected, found = (describe_array(size, labels.dtype) for size in (shape, labels.shape))
                raise damaged(paths[0], f"the array 'labels' to be {expected}", found)
        return rows_in(paths[0], "images", (self.space.size, *self.image_shape), self.name)
