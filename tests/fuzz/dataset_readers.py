"""Readers of archives, official datasets and pictures, with small valid files for them."""

import io
import struct
import tarfile
import zlib
from functools import partial
from gzip import compress
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

import h5py
import numpy as np
from PIL import Image
from scipy.io import savemat

from lddr.data.dataset import Dataset
from lddr.data.download import unpack
from lddr.data.factors import Factor, FactorGrid
from lddr.data.official import cars3d, high_resolution, mpi3d, smallnorb
from lddr.data.official.dsprites import PATH, DSprites
from lddr.data.official.shapes3d import HDF5, Shapes3D
from lddr.data.pictures import OwnImages, Preparation
from lddr.data.samples import Samples, read_samples, write_samples
from lddr.explorer.server import from_upload
from tests.fuzz.array_readers import GENERATOR, at, damaged_npy, damaged_npz, looked_at, npy, npz, pixels
from tests.fuzz.mutations import mutated
from tests.fuzz.runner import Files, Reader

SIX = FactorGrid((Factor("number", 6),))


def archive(mode: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:
        for name in ("data/cars/one.mat", "data/cars/two.mat", "data/other/three.mat"):
            member = tarfile.TarInfo(name)
            member.size = 300
            tar.addfile(member, io.BytesIO(GENERATOR.bytes(300)))
    return buffer.getvalue()


def archives() -> Files:
    return {
        "plain.tar": archive("w"),
        "old.tar": archive("w:"),
        "packed.tar.gz": archive("w:gz"),
        "xz.tar.xz": archive("w:xz"),
    }


def read_archives(folder: Path) -> None:
    for path in filter(Path.is_file, sorted(folder.glob("*.tar*"))):
        with TemporaryDirectory(dir=folder.parent) as place, path.open("rb") as file:
            unpack(file, "data/cars", Path(place) / "cars")


class SmallSprites(DSprites):
    space = SIX


class SmallShapes(Shapes3D):
    space = SIX


class SmallRobot(mpi3d.MPI3DToy):
    spaces = (SIX,)


class SmallRoom(high_resolution.Falcor3D):
    space = SIX
    files = (("Falcor3D_down128/images/000000.png",), ("Falcor3D_down128/images/000005.png",))


class SmallCars(cars3d.Cars3D):
    space = FactorGrid((Factor("elevation", 2), Factor("azimuth", 2), Factor("object", 2)))


def sprites() -> Files:
    return {f"{PATH}.npz": npz(pack=True, imgs=pixels(6, 64, 64) // 128, latents_values=np.zeros((6, 6)))}


def hdf5(pack: bool) -> bytes:
    buffer = io.BytesIO()
    options = {"chunks": (2, 32, 64, 3), "compression": "gzip", "shuffle": True} if pack else {}
    with h5py.File(buffer, "w") as file:
        file.create_dataset("images", data=pixels(6, 64, 64, 3) // 64 * 64, **options)
        file.create_dataset("labels", data=np.zeros((6, 1)))
    return buffer.getvalue()


def read_official(kind: type[Dataset], folder: Path) -> None:
    with at(folder):
        looked_at(kind())


def room() -> Files:
    image = picture("PNG", size=(128, 128))
    return {f"Falcor3D_down128/images/{number:06}.png": image for number in range(6)}


def cars() -> Files:
    files = {}
    for number, pack in enumerate([False, True]):
        buffer = io.BytesIO()
        savemat(buffer, {"im": pixels(8, 8, 3, 2, 2) // 64, "other": np.arange(3)}, do_compression=pack)
        files[f"cars/car_{number}.mat"] = buffer.getvalue()
    return files


def read_cars(folder: Path) -> None:
    with patch.multiple(cars3d, CARS=2, IN_FILE=(8, 8, 3, 2, 2)):
        read_official(SmallCars, folder)


def damaged_car(name: str, content: bytes, random: Random) -> bytes:
    """Damage inside the compressed elements."""
    place, whole = 128, content[:128]
    while place < len(content):
        kind, length = struct.unpack_from("<II", content, place)
        element = content[place + 8 : place + 8 + length]
        element = zlib.compress(mutated(zlib.decompress(element), random)) if kind == 15 else mutated(element, random)
        whole += struct.pack("<II", kind, len(element)) + element
        place += 8 + length
    return whole


def norb() -> Files:
    images = struct.pack("<6i", smallnorb.BYTES, 4, 4, 2, 96, 96) + pixels(4, 2, 96, 96).tobytes()
    facts = struct.pack("<5i", smallnorb.INTEGERS, 2, 4, 4, 1) + np.ones((4, 4), "<i4").tobytes()
    return {"dat.mat.gz": compress(images, 1), "dat.mat": images, "info.mat": facts}


def read_norb(folder: Path) -> None:
    matrices = {"dat.mat": (smallnorb.BYTES, (4, 2, 96, 96)), "info.mat": (smallnorb.INTEGERS, (4, 4))}
    with patch.object(smallnorb, "AT_ONCE", 2):
        for name, kind in (matrices | {"dat.mat.gz": matrices["dat.mat"]}).items():
            list(smallnorb.read_matrix(folder / name, *kind))


def picture(kind: str, mode: str = "RGB", size: tuple[int, int] = (20, 24), **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels(*size, 3)).convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


def pictures() -> Files:
    rows = "\n".join(f"{number}.png,{number % 2},{'ab'[number % 2]}" for number in range(3))
    named = {
        "0.png": picture("PNG"),
        "1.png": picture("PNG", "P"),
        "2.png": picture("PNG", "LA"),
        "3.jpg": picture("JPEG", exif=b"Exif\0\0" + rotated()),
    }
    return named | {"factors.csv": f"file,size,shape\n{rows}\n3.jpg,1,b\n".encode()}


def other_pictures() -> Files:
    deep = io.BytesIO()
    Image.fromarray(pixels(20, 24).astype(np.uint16) * 50).save(deep, "TIFF")
    named = {
        f"a.{kind}": picture(kind.upper(), mode) for kind, mode in (("bmp", "RGB"), ("gif", "P"), ("webp", "RGBA"))
    }
    return named | {"a.tif": picture("TIFF", "RGBA", compression="tiff_lzw"), "b.tif": deep.getvalue()}


def rotated() -> bytes:
    exif = Image.Exif()
    exif[0x0112] = 6
    return exif.tobytes()


def read_pictures(folder: Path) -> None:
    with at(folder.parent):
        looked_at(OwnImages(folder, 16))


def arrays_as_pictures() -> Files:
    return {"0.npy": npy(pixels(20, 24)), "1.npy": npy(pixels(20, 24, 4)), "2.npy": npy(pixels(3, 16, 16) / 255)}


def samples() -> Files:
    with TemporaryDirectory() as place:
        path = Path(place) / "samples.png"
        write_samples(path, pixels(4, 16, 16, 3))
        return {"samples.png": path.read_bytes()}


def read_sampled(folder: Path) -> None:
    looked_at(Samples(read_samples(folder / "samples.png", (16, 16, 3))))


def uploads() -> Files:
    return {f"a.{kind}": picture(kind) for kind in ("png", "jpeg", "webp", "bmp")}


def read_uploads(folder: Path) -> None:
    for path in sorted(folder.glob("a.*")):
        if path.is_file():
            from_upload(path.read_bytes(), Preparation((16, 16, 3)))


ROBOT = "mpi3d_toy/mpi3d_toy.npz"
READERS = (
    Reader("archives", archives, read_archives),
    Reader("cars3d", cars, read_cars, damaged_car),
    Reader("falcor3d", room, partial(read_official, SmallRoom)),
    Reader("dsprites", sprites, partial(read_official, SmallSprites), damaged_npz),
    Reader("mpi3d", lambda: {ROBOT: npz(images=pixels(6, 64, 64, 3))}, partial(read_official, SmallRobot), damaged_npz),
    Reader("pictures", pictures, read_pictures),
    Reader("pictures-npy", arrays_as_pictures, read_pictures, damaged_npy),
    Reader("pictures-other", other_pictures, read_pictures),
    Reader("shapes3d", lambda: {HDF5: hdf5(pack=False)}, partial(read_official, SmallShapes)),
    Reader("shapes3d-packed", lambda: {HDF5: hdf5(pack=True)}, partial(read_official, SmallShapes)),
    Reader("samples", samples, read_sampled),
    Reader("smallnorb", norb, read_norb),
    Reader("uploads", uploads, read_uploads),
)
