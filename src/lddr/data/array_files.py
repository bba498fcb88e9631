"""One array of an .npz, .npy or HDF5 file: its shape and type from the header, its content in chunks, never whole."""

import struct
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from lddr.data.conversion import MappedImages, Rows, Shape, described
from lddr.data.npy_header import LONGEST, header_of, size_of
from lddr.data.npz_arrays import member_of
from lddr.foreign import damaged, foreign, reason_of

CHUNK = 16 << 20  # bytes handed on at once
SLAB = 256 << 20  # bytes of an HDF5 file read at once: whole rows of its compressed blocks, so that each is read once
WIDEST = 256 << 20  # bytes of a row: a damaged header claims more than there is memory
SIGNATURE = b"PK\3\4"
LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, length of the name, length of the extra field

HDF5_SUFFIXES = (".h5", ".hdf5")


class StoredArray(ABC):
    """An array under a key in a file."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self.shape, self.dtype = self._header()

    @abstractmethod
    def _header(self) -> tuple[Shape, np.dtype]:
        """Shape and type, without reading the content."""

    @abstractmethod
    def chunks(self) -> Iterator[Rows]:
        """The content, a few thousand rows at a time; each is valid until the next is asked for."""

    def mapped(self) -> MappedImages | None:
        """The array where it lies in the file, or None when it cannot be used as it lies there."""
        return None

    def expect(self, shape: Shape) -> None:
        """Refuse anything but bytes of this shape."""
        if self.shape != shape or self.dtype != np.uint8:
            found = described(self.shape, self.dtype)
            raise damaged(self.path, f"the array {self.key!r} to be {described(shape)}", found)

    def _width(self) -> int:
        """The bytes of a row: some, and not more than can be held."""
        width = prod(self.shape[1:]) * self.dtype.itemsize if self.shape else 0
        if not 0 < width <= WIDEST:
            found = described(self.shape, self.dtype)
            raise damaged(self.path, f"rows of 1 to {WIDEST:,} bytes in the array {self.key!r}", found)
        return width


def array_in(path: Path, key: str) -> StoredArray:
    """The array under this key of an .npz or HDF5 file."""
    return Hdf5Array(path, key) if path.suffix in HDF5_SUFFIXES else NpzArray(path, key)


class NpyArray(StoredArray):
    """The array of an .npy file, called as the file. No object is ever unpickled."""

    def __init__(self, path: Path, key: str | None = None) -> None:
        super().__init__(path, key or path.name)

    def _header(self) -> tuple[Shape, np.dtype]:
        with self._opened() as (length, file):
            beginning = file.read(LONGEST)
        try:
            header = header_of(beginning)
        except Exception as error:  # numpy has Python parse it
            found = f"something else ({reason_of(error)})"
            raise damaged(self.path, f"an .npy array under {self.key!r}", found) from error
        if header.dtype.hasobject or header.in_fortran_order:
            found = "Python objects" if header.dtype.hasobject else "Fortran order"
            raise damaged(self.path, f"the array {self.key!r} to hold plain numbers in C order", found)
        self._start, size = header.start, length - header.start
        if size != size_of(header):
            wanted = f"{described(header.shape, header.dtype)} under {self.key!r}"
            raise damaged(self.path, wanted, f"{size} bytes of data")
        return header.shape, header.dtype

    def chunks(self) -> Iterator[Rows]:
        width = self._width()
        buffer = memoryview(bytearray(min(max(CHUNK // width, 1), self.shape[0]) * width))
        with self._opened() as (_, file):
            file.read(self._start)
            for start in range(0, self.shape[0] * width, len(buffer) or 1):
                part = buffer[: self.shape[0] * width - start]
                self._fill(part, file)
                yield np.frombuffer(part, self.dtype).reshape(-1, *self.shape[1:])

    def _fill(self, buffer: memoryview, file: IO[bytes]) -> None:
        filled = 0
        while filled < len(buffer):
            piece = file.read1(len(buffer) - filled)  # type: ignore[attr-defined]
            if not piece:
                raise EOFError(f"the data of {self.key!r} ends early")
            buffer[filled : filled + len(piece)] = piece
            filled += len(piece)

    @contextmanager
    def _opened(self) -> Iterator[tuple[int, IO[bytes]]]:
        """Header and values, and how many bytes they are."""
        with foreign(self.path, "a whole .npy file"), self.path.open("rb") as file:
            yield self.path.stat().st_size, file


class NpzArray(NpyArray):
    """An array in an .npz archive."""

    def mapped(self) -> MappedImages | None:
        if self._info.compress_type != zipfile.ZIP_STORED:
            return None
        with foreign(self.path, "a whole .npz archive"):
            with self.path.open("rb") as file:
                file.seek(self._info.header_offset)
                signature, name_length, extra_length = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
            if signature != SIGNATURE:
                raise ValueError(f"no zip member at byte {self._info.header_offset}")
            start = self._info.header_offset + LOCAL_HEADER.size + name_length + extra_length + self._start
            return MappedImages(self.path, self.shape, start)

    @contextmanager
    def _opened(self) -> Iterator[tuple[int, IO[bytes]]]:
        with foreign(self.path, "a whole .npz archive"), zipfile.ZipFile(self.path) as archive:
            name = f"{self.key}.npy"
            if name not in archive.namelist():
                names = ", ".join(sorted(archive.namelist())) or "nothing"
                raise damaged(self.path, f"an array {self.key!r}", names.replace(".npy", ""))
            self._info = member_of(archive, name)
            with archive.open(self._info) as file:
                yield self._info.file_size, file


class Hdf5Array(StoredArray):
    """A dataset in an HDF5 file."""

    def _header(self) -> tuple[Shape, np.dtype]:
        with self._opened() as dataset:
            return dataset.shape or (), dataset.dtype

    def chunks(self) -> Iterator[Rows]:
        rows = max(CHUNK // self._width(), 1)
        with self._opened() as dataset:
            slab = np.empty((self._slab_rows(dataset.chunks, rows), *self.shape[1:]), self.dtype)
            for start in range(0, self.shape[0], len(slab)):
                count = min(len(slab), self.shape[0] - start)
                dataset.read_direct(slab, np.s_[start : start + count], np.s_[:count])
                yield from (slab[first : min(first + rows, count)] for first in range(0, count, rows))

    def _slab_rows(self, block: Shape | None, rows: int) -> int:
        """About `rows`, but a multiple of the rows of a block, unless that is too many to hold."""
        depth = block[0] if block else 1
        fits = depth * prod(self.shape[1:]) * self.dtype.itemsize <= SLAB
        return max(rows // depth, 1) * depth if fits else rows

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import h5py

        with foreign(self.path, "a whole HDF5 file"), h5py.File(self.path, "r") as file:
            if not isinstance(file.get(self.key), h5py.Dataset):
                raise damaged(self.path, f"an array {self.key!r}", ", ".join(file) or "nothing")
            yield file[self.key]
