"""One array inside an .npz or HDF5 file: its shape and type from the header, its content in chunks, never whole."""

import struct
import warnings
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from lddr.data.conversion import MappedImages, Rows, Shape, damaged, described

CHUNK = 16 << 20  # bytes handed on at once
SLAB = 256 << 20  # bytes of an HDF5 file read at once: whole rows of its compressed blocks, so that each is read once
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


def array_in(path: Path, key: str) -> StoredArray:
    """The array under this key of an .npz or HDF5 file."""
    return Hdf5Array(path, key) if path.suffix in HDF5_SUFFIXES else NpzArray(path, key)


class NpzArray(StoredArray):
    """An array in an .npz archive. No object is ever unpickled."""

    def _header(self) -> tuple[Shape, np.dtype]:
        with self._opened() as (info, file):
            shape, dtype = self._npy_header(file)
            self._info, self._start = info, file.tell()
        if info.file_size != self._start + prod(shape) * dtype.itemsize:
            size = info.file_size - self._start
            raise damaged(self.path, f"{described(shape, dtype)} under {self.key!r}", f"{size} bytes of data")
        return shape, dtype

    def _npy_header(self, file: IO[bytes]) -> tuple[Shape, np.dtype]:
        readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that it was written by Python 2, which does no harm
                shape, fortran_order, dtype = readers[npy.read_magic(file)](file)
        except (ValueError, KeyError) as error:
            raise damaged(self.path, f"an .npy array under {self.key!r}", f"something else ({error})") from error
        if dtype.hasobject or fortran_order:
            found = "Python objects" if dtype.hasobject else "Fortran order"
            raise damaged(self.path, f"the array {self.key!r} to hold plain numbers in C order", found)
        return shape, dtype

    def chunks(self) -> Iterator[Rows]:
        width = prod(self.shape[1:]) * self.dtype.itemsize
        buffer = memoryview(bytearray(max(CHUNK // width, 1) * width))
        with self._opened() as (_, file):
            file.read(self._start)
            for start in range(0, self.shape[0] * width, len(buffer)):
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

    def mapped(self) -> MappedImages | None:
        if self._info.compress_type != zipfile.ZIP_STORED:
            return None
        with self.path.open("rb") as file:
            file.seek(self._info.header_offset)
            header = file.read(LOCAL_HEADER.size)
            signature, name_length, extra_length = LOCAL_HEADER.unpack(header.ljust(LOCAL_HEADER.size, b"\0"))
        if signature != SIGNATURE:
            raise damaged(self.path, f"a zip member at byte {self._info.header_offset}", f"{signature!r}")
        start = self._info.header_offset + LOCAL_HEADER.size + name_length + extra_length + self._start
        return MappedImages(self.path, self.shape, start)

    @contextmanager
    def _opened(self) -> Iterator[tuple[zipfile.ZipInfo, IO[bytes]]]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                name = f"{self.key}.npy"
                if name not in archive.namelist():
                    names = ", ".join(sorted(archive.namelist())) or "nothing"
                    raise damaged(self.path, f"an array {self.key!r}", names.replace(".npy", ""))
                with archive.open(name) as file:
                    yield archive.getinfo(name), file
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise damaged(self.path, "a whole .npz archive", f"a broken one ({error})") from error
        except (NotImplementedError, RuntimeError) as error:  # what zipfile raises for ciphers and rare compressions
            raise damaged(self.path, "a plain .npz archive", f"an unreadable one ({error})") from error


class Hdf5Array(StoredArray):
    """A dataset in an HDF5 file."""

    def _header(self) -> tuple[Shape, np.dtype]:
        with self._opened() as dataset:
            return dataset.shape or (), dataset.dtype

    def chunks(self) -> Iterator[Rows]:
        rows = max(CHUNK // (prod(self.shape[1:]) * self.dtype.itemsize), 1)
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

        try:
            with h5py.File(self.path, "r") as file:
                if not isinstance(file.get(self.key), h5py.Dataset):
                    raise damaged(self.path, f"an array {self.key!r}", ", ".join(file) or "nothing")
                yield file[self.key]
        except OSError as error:
            raise damaged(self.path, "a whole HDF5 file", f"a broken one ({error})") from error
