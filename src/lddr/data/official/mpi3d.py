"""MPI3D: a robot arm holding an object, drawn simply, drawn realistically, or photographed."""

from pathlib import Path
from typing import ClassVar

from lddr.data.array_files import MappedImages, array_in, describe_array, rows_in
from lddr.data.dataset import datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.data.official import SIDE, Official, Remote
from lddr.files import damaged

ADDRESS = "https://huggingface.co/datasets/waleedgondal/mpi3d/resolve/main"  # the owners', since April 2025
FORMER_ADDRESS = "https://storage.googleapis.com/disentanglement_dataset/Final_Dataset"  # reported dead in 2023


def _space(colour: Factor, shape: Factor) -> FactorGrid:
    few = colour, shape, Factor("size", 2), Factor("camera height", 3), Factor("background", 3)
    return FactorGrid((*few, Factor("horizontal axis", 40), Factor("vertical axis", 40)))


class MPI3D(Official):
    """A robot arm holding an object; the number of images in the file decides which colours and shapes it shows."""

    spaces: ClassVar[tuple[FactorGrid, ...]] = (  # of the newer and of the older file
        _space(Factor("colour", 6), Factor("shape", 6)),
        _space(Factor("colour", 4), Factor("shape", 4)),
    )
    space = spaces[0]
    image_shape = (SIDE, SIDE, 3)

    def _open(self, paths: list[Path]) -> MappedImages:
        images = array_in(paths[0], "images")
        by_length = {space.size: space for space in self.spaces}
        length = images.shape[0] if images.shape else 0
        if length not in by_length:
            expected = " or ".join(describe_array((known, *self.image_shape)) for known in by_length)
            found = describe_array(images.shape, images.dtype)
            raise damaged(paths[0], f"the array 'images' to be {expected}", found)
        self.space = by_length[length]
        return rows_in(paths[0], "images", (length, *self.image_shape), self.name)


def _published(name: str, md5: str, may_differ: bool = False) -> tuple[tuple[tuple[str]], tuple[Remote]]:
    """Return `files` and `remotes`."""
    path = f"{name}/{name}.npz"
    others = () if may_differ else (f"{FORMER_ADDRESS}/{name}.npz",)  # an old file could be mistaken for a new one
    remote = Remote(path, f"{ADDRESS}/{name}.npz", f"md5:{md5}", others=others, may_differ=may_differ)
    return ((path,),), (remote,)


@datasets.register("mpi3d_toy")
class MPI3DToy(MPI3D):
    """MPI3D, simply drawn."""

    name, title = "mpi3d_toy", "MPI3D (toy)"
    files, remotes = _published(name, "55889cb7c7dfc655d6e0277beee88868")


@datasets.register("mpi3d_realistic")
class MPI3DRealistic(MPI3D):
    """MPI3D, realistically drawn."""

    name, title = "mpi3d_realistic", "MPI3D (realistic)"
    files, remotes = _published(name, "59a6225b88b635365f70c91b3e52f70f")


@datasets.register("mpi3d_real")
class MPI3DReal(MPI3D):
    """MPI3D, photographed."""

    name, title = "mpi3d_real", "MPI3D (real)"
    files, remotes = _published(name, "0f33f609918fb5c97996692f91129802", may_differ=True)  # replaced 2025-04-17


@datasets.register("mpi3d_real_complex")
class MPI3DRealComplex(MPI3D):
    """MPI3D with cups, a tennis ball and a croissant, photographed."""

    name, title = "mpi3d_real_complex", "MPI3D (real, complex)"
    files = ((f"{name}/real3d_complicated_shapes_ordered.npz", f"{name}/{name}.npz"),)
    address = "https://drive.google.com/file/d/1Tp8eTdHxgUMtsZv5uAoYAbJR1BOa_OQm/view"
    spaces = (
        _space(
            Factor("colour", 4, ("yellow", "green", "olive", "red")),
            Factor("shape", 4, ("coffee cup", "tennis ball", "croissant", "beer cup")),
        ),
    )
    space = spaces[0]
