"""MPI3D: a robot arm holding an object, drawn simply, drawn realistically, or photographed."""

from pathlib import Path

from lddr.data.array_files import MappedImages, NpzArray, converted, described
from lddr.data.dataset import datasets
from lddr.data.download import Remote
from lddr.data.factors import Factor, FactorGrid
from lddr.data.official.base import SIDE, Official
from lddr.files import damaged

ADDRESS = "https://huggingface.co/datasets/waleedgondal/mpi3d/resolve/main"  # the owners', since April 2025
FORMER_ADDRESS = "https://storage.googleapis.com/disentanglement_dataset/Final_Dataset"  # reported dead in 2023


def _space(colours: int, shapes: int) -> FactorGrid:
    sizes = {
        "colour": colours,
        "shape": shapes,
        "size": 2,
        "camera height": 3,
        "background": 3,
        "horizontal axis": 40,
        "vertical axis": 40,
    }
    return FactorGrid(tuple(Factor(name, size) for name, size in sizes.items()))


SPACES = {space.size: space for space in (_space(6, 6), _space(4, 4))}  # the newer and older file, by image count


class MPI3D(Official):
    """A robot arm holding an object; the length of the file tells which colours and shapes it shows."""

    title = "MPI3D"
    space = next(iter(SPACES.values()))
    image_shape = (SIDE, SIDE, 3)

    def _open(self, paths: list[Path]) -> MappedImages:
        images = NpzArray(paths[0], "images")
        self.space = _space_of(images)
        return images.mapped() or converted(self.name, paths, 1, images.shape, images.chunks)


def _space_of(images: NpzArray) -> FactorGrid:
    """Return the factor space for the file's number of images; others are refused, as their indices would be wrong."""
    length = images.shape[0] if images.shape else 0
    if length not in SPACES:
        expected = " or ".join(described((known, *MPI3D.image_shape)) for known in SPACES)
        raise damaged(images.path, f"the array 'images' to be {expected}", described(images.shape, images.dtype))
    images.expect((length, *MPI3D.image_shape))
    return SPACES[length]


def _file(name: str) -> tuple[tuple[str, ...], ...]:
    return ((f"{name}/{name}.npz",),)


def _remotes(name: str, md5: str, may_differ: bool = False) -> tuple[Remote, ...]:
    others = () if may_differ else (f"{FORMER_ADDRESS}/{name}.npz",)  # an old file could be mistaken for a new one
    checksum = f"md5:{md5}"
    return (Remote(f"{name}/{name}.npz", f"{ADDRESS}/{name}.npz", checksum, others=others, may_differ=may_differ),)


@datasets.register("mpi3d_toy")
class MPI3DToy(MPI3D):
    """MPI3D, simply drawn."""

    name = "mpi3d_toy"
    title = "MPI3D (toy)"
    files = _file("mpi3d_toy")
    remotes = _remotes("mpi3d_toy", "55889cb7c7dfc655d6e0277beee88868")


@datasets.register("mpi3d_realistic")
class MPI3DRealistic(MPI3D):
    """MPI3D, realistically drawn."""

    name = "mpi3d_realistic"
    title = "MPI3D (realistic)"
    files = _file("mpi3d_realistic")
    remotes = _remotes("mpi3d_realistic", "59a6225b88b635365f70c91b3e52f70f")


@datasets.register("mpi3d_real")
class MPI3DReal(MPI3D):
    """MPI3D, photographed."""

    name = "mpi3d_real"
    title = "MPI3D (real)"
    files = _file("mpi3d_real")
    remotes = _remotes("mpi3d_real", "0f33f609918fb5c97996692f91129802", may_differ=True)  # replaced 2025-04-17
