"""Files in the official formats, full length and nearly empty: written in seconds, small on the disk."""

import io
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pytest
from numpy.lib import format as npy

STORED, DEFLATED = 0, 8
PIECE = 64  # images compressed together


@contextmanager
def _places(folder: Path) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDDR_DATA", str(folder / "data"))
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.delenv("DISENTANGLEMENT_LIB_DATA", raising=False)
        yield folder / "data"


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    """An empty data folder and an empty cache for one test, removed afterwards: full-length files are large."""
    with _places(tmp_path) as folder:
        yield folder
    shutil.rmtree(tmp_path)


@pytest.fixture(scope="module")
def lasting_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder and a cache for all tests of a module, removed afterwards: they are large."""
    folder = tmp_path_factory.mktemp("official")
    with _places(folder) as data:
        yield data
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def chosen() -> Callable[[int, int], np.ndarray]:
    """Some numbers below a limit: the first, the last, and some in between."""

    def choose(limit: int, count: int) -> np.ndarray:
        return np.unique(np.append(np.random.default_rng(0).integers(limit, size=count), [0, limit - 1]))

    return choose


def _npy_header(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    npy.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
    return file.getvalue()


@dataclass
class Member:
    """A file in a zip archive, as the directory at the archive's end speaks of it."""

    name: bytes
    method: int
    crc: int
    packed: int
    size: int
    offset: int = 0

    def _common(self, version: int = 45) -> bytes:
        return struct.pack("<HHHHHI", version, 0, self.method, 0, 33, self.crc)

    def local(self) -> bytes:
        extra = struct.pack("<HHQQ", 1, 16, self.size, self.packed)
        lengths = struct.pack("<IIHH", 2**32 - 1, 2**32 - 1, len(self.name), len(extra))
        return b"PK\3\4" + self._common() + lengths + self.name + extra

    def central(self) -> bytes:
        extra = struct.pack("<HHQQQ", 1, 24, self.size, self.packed, self.offset)
        lengths = struct.pack("<IIHHHHHII", 2**32 - 1, 2**32 - 1, len(self.name), len(extra), 0, 0, 0, 0, 2**32 - 1)
        return b"PK\1\2" + struct.pack("<H", 45) + self._common() + lengths + self.name + extra


def _write_directory(file: BinaryIO, members: list[Member]) -> None:
    start, count = file.tell(), len(members)
    file.write(b"".join(member.central() for member in members))
    end = file.tell()
    file.write(b"PK\6\6" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, end - start, start))
    file.write(b"PK\6\7" + struct.pack("<IQI", 0, end, 1))
    file.write(b"PK\5\6" + struct.pack("<HHHHIIH", 0, 0, count, count, 2**32 - 1, 2**32 - 1, 0))


def _stored_npz(path: Path, key: str, shape: tuple[int, ...], images: dict[int, np.ndarray]) -> None:
    """An .npz (zip64) with one uncompressed array of zeros, but for these images: a sparse file, its CRC a lie."""
    header = _npy_header(shape)
    size = len(header) + int(np.prod(shape))
    member = Member(f"{key}.npy".encode(), STORED, crc=0, packed=size, size=size)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(member.local() + header)
        start = file.tell()
        for number, image in images.items():
            file.seek(start + number * image.nbytes)
            file.write(image.tobytes())
        file.truncate(start + int(np.prod(shape)))
        file.seek(0, 2)
        _write_directory(file, [member])


def _deflated(data: bytes) -> bytes:
    """Compressed so that the pieces can be put one after the other in any order."""
    compressor = zlib.compressobj(1, zlib.DEFLATED, -15)
    return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)


def _deflated_npz(
    path: Path, key: str, shape: tuple[int, ...], images: dict[int, np.ndarray], others: dict[str, bytes]
) -> None:
    """An .npz (zip64) with one compressed array of zeros, but for these images, and other members after it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        members = [_write_member(file, f"{key}.npy", _pieces(shape, images))]
        members += [_write_member(file, name, [(content, _deflated(content))]) for name, content in others.items()]
        _write_directory(file, members)


def _pieces(shape: tuple[int, ...], images: dict[int, np.ndarray]) -> Iterator[tuple[bytes, bytes]]:
    blank = np.zeros((PIECE, *shape[1:]), np.uint8)
    blank_piece = blank.tobytes(), _deflated(blank.tobytes())
    header = _npy_header(shape)
    yield header, _deflated(header)
    for first in range(0, shape[0], PIECE):
        held = {number: images[number] for number in range(first, first + PIECE) if number in images}
        if held:
            piece = blank.copy()
            piece[np.array(list(held)) - first] = list(held.values())
            yield piece.tobytes(), _deflated(piece.tobytes())
        else:
            yield blank_piece


def _write_member(
    file: BinaryIO, name: str, pieces: Iterator[tuple[bytes, bytes]] | list[tuple[bytes, bytes]]
) -> Member:
    member = Member(name.encode(), DEFLATED, crc=0, packed=0, size=0, offset=file.tell())
    file.write(member.local())
    start = file.tell()
    for plain, packed in pieces:
        member.crc = zlib.crc32(plain, member.crc)
        member.size += len(plain)
        file.write(packed)
    file.write(zlib.compressobj(1, zlib.DEFLATED, -15).flush())
    member.packed = file.tell() - start
    file.seek(member.offset)
    file.write(member.local())
    file.seek(0, 2)
    return member


@pytest.fixture(scope="session")
def stored_npz() -> Callable[..., None]:
    return _stored_npz


@pytest.fixture(scope="session")
def deflated_npz() -> Callable[..., None]:
    return _deflated_npz
