"""Readers of arrays: codes, own images in .npz files, the cache; with small valid files for them."""

import io
import os
import zipfile
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random
from unittest.mock import patch

import numpy as np

from lddr.data import array_files as conversion
from lddr.data.dataset import Dataset
from lddr.data.pictures import OwnImages
from lddr.metrics.evaluate import read_codes
from tests.fuzz.mutations import mutated
from tests.fuzz.runner import Files, Reader

GENERATOR = np.random.default_rng(0)


def pixels(*shape: int) -> np.ndarray:
    return GENERATOR.integers(256, size=shape, dtype=np.uint8)


def at(folder: Path) -> AbstractContextManager:
    """Look for datasets here, and keep conversions next to them."""
    return patch.dict(os.environ, LDDR_DATA=str(folder), XDG_CACHE_HOME=str(folder.parent / "cache"))


def looked_at(dataset: Dataset) -> None:
    dataset.images(np.arange(len(dataset)))
    dataset.space.factors_of(np.arange(len(dataset)))


def npy(array: np.ndarray, **lies: object) -> bytes:
    buffer, header = io.BytesIO(), np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(buffer, header | lies)
    return buffer.getvalue() + array.tobytes()


def npz(pack: bool = False, **arrays: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if pack else np.savez)(buffer, **arrays)
    return buffer.getvalue()


def damaged_npz(name: str, content: bytes, random: Random) -> bytes:
    """A whole archive with a damaged or lying member."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    victim = random.choice(sorted(members))
    lie = random.choice([_damaged_member, _lying_member])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", random.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])) as archive:
        for member, data in members.items():
            archive.writestr(
                zipfile.ZipInfo(member), lie(data, random) if member == victim else data, archive.compression
            )
    return buffer.getvalue()


def damaged_npy(name: str, content: bytes, random: Random) -> bytes:
    """A whole array with a header that lies, or another one."""
    return _lying_member(content, random)


def _damaged_member(content: bytes, random: Random) -> bytes:
    return mutated(content, random, is_text=random.random() < 0.3)


SHAPES = [
    (),
    (0,),
    (6,),
    (6, 0),
    (-6, -1),
    (10**12,),
    (10**30, 10**30),
    (6, 10**9),
    (1, 40_000, 40_000),
    (6, 1, 1, 1, 1),
]
KINDS = [
    "|O",
    "<f2",
    "<f8",
    ">f4",
    "<c16",
    "<M8[s]",
    "|V9",
    "|V0",
    "<U0",
    "<U3",
    "|S4",
    "<U999999999",
    "?",
    ">i8",
    "u1",
]


def _lying_member(content: bytes, random: Random) -> bytes:
    array = np.load(io.BytesIO(content))
    lies = random.choice([{"shape": random.choice(SHAPES)}, {"descr": random.choice(KINDS)}, {"fortran_order": True}])
    if random.random() < 0.5:
        return npy(array, **lies)
    numbers = np.random.default_rng(random.getrandbits(32))
    made = numbers.random(random.choice([(6,), (6, 2), (2, 6), (6, 16, 16), (6, 1, 16, 16), (0, 16, 16), ()]))
    return npy(np.asarray(made).astype(random.choice(["f4", "f8", "u1", "i8", "?", "U3", "S2"])))


def images_npz() -> Files:
    arrays = {"images": pixels(6, 16, 16, 3), "factors": np.arange(12).reshape(6, 2) // 4}
    arrays["factor_names"] = np.array(["shape", "colour"])
    return {"plain.npz": npz(**arrays), "packed.npz": npz(pack=True, **arrays)}


def images_npy() -> Files:
    return {"clear.npy": npy(pixels(6, 16, 16, 4)), "deep.npy": npy(pixels(6, 20, 24).astype(np.uint16) * 50)}


def read_images(folder: Path) -> None:
    for path in sorted(folder.glob("*.np?")):
        with at(folder):
            dataset = OwnImages(path, 16)
            looked_at(dataset)
            dataset.content()


def codes() -> Files:
    factors = GENERATOR.integers([3, 4], size=(40, 2))
    arrays = {"codes": factors + GENERATOR.normal(0, 0.1, (40, 2)), "factors": factors}
    return {
        "codes.npz": npz(**arrays, factor_names=np.array(["shape", "colour"])),
        "packed.npz": npz(pack=True, **arrays),
    }


def read_both_codes(folder: Path) -> None:
    for name in ("codes.npz", "packed.npz"):
        " ".join(read_codes(folder / name)[1].names).encode()


SHAPE = (6, 8, 8)


def read_cache(folder: Path) -> None:
    conversion.map_npy(folder / "some.npy", SHAPE).take(np.arange(6))


READERS = (
    Reader("cache", lambda: {"some.npy": npy(pixels(*SHAPE))}, read_cache),
    Reader("codes", codes, read_both_codes, damaged_npz),
    Reader("npy", images_npy, read_images, damaged_npy),
    Reader("npz", images_npz, read_images, damaged_npz),
)
