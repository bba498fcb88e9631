"""Arrays in .npy and .npz files, read as untrusted input, and converted once into a memory-mapped cache."""

import hashlib
import io
import mmap
import os
import secrets
import shutil
import struct
import sys
import warnings
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from lddr.data.factors import Indices, whole_numbers
from lddr.data.locations import cache_folder
from lddr.errors import UserError
from lddr.files import BusyError, alone, damaged, reading_untrusted, reason_of, written_whole

Rows = NDArray[np.uint8]  # (rows, …)
Chunk = Rows | tuple[Indices, Rows]  # the next rows, or row indices and the rows that belong there
Shape = tuple[int, ...]

KEPT = 384 << 20  # bytes of a mapping that one process may keep resident: enough for all of dSprites
AT_ONCE = 256  # rows copied between two checks of the resident size


def described(shape: Shape, dtype: np.dtype | str = "uint8") -> str:
    """Describe an array: "480000x64x64x3 uint8"."""
    return f"{'x'.join(map(str, shape)) or 'a single'} {dtype}"


class MappedImages:
    """Rows of bytes stored contiguously in a file, memory-mapped and never loaded as a whole.

    The pages stay in the page cache, which all processes share; this process releases them whenever
    more than `KEPT` bytes are resident.
    """

    def __init__(self, path: Path, shape: Shape, offset: int = 0) -> None:
        with path.open("rb") as file:
            self._pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(self._pages) < offset + prod(shape):
            raise damaged(path, f"{offset + prod(shape)} bytes", len(self._pages))
        self.path, self.shape, self._offset = path, shape, offset
        self._rows = np.frombuffer(self._pages, np.uint8, prod(shape), offset).reshape(len(self), -1)
        self._resident_before = _resident()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: another process maps the file itself."""
        return MappedImages, (self.path, self.shape, self._offset)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, indices: ArrayLike) -> Rows:
        """Return copies of these rows: (count,) → (count, …)."""
        wanted = whole_numbers(indices, len(self), "image")
        rows = np.empty((wanted.size, self._rows.shape[1]), np.uint8)
        for start in range(0, wanted.size, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            self._rows.take(wanted.ravel()[part], axis=0, out=rows[part], mode="clip")  # "raise" would copy once more
            self._let_go()
        return rows.reshape(*wanted.shape, *self.shape[1:])

    def checksum(self) -> int:
        """Return the CRC-32 of all rows."""
        found = 0
        for part in self.parts():
            found = zlib.crc32(part.data, found)
        return found

    def parts(self) -> Iterator[Rows]:
        """Iterate over all rows, flattened, a few at a time."""
        for start in range(0, len(self), AT_ONCE):
            yield self._rows[start : start + AT_ONCE]
            self._let_go()

    def _let_go(self) -> None:
        """Release the pages once there are many: this is measured, as one page fault can map 2 MB of neighbours."""
        if len(self._pages) > KEPT and _resident() - self._resident_before > KEPT:
            self._pages.madvise(mmap.MADV_DONTNEED)
            self._resident_before = _resident()


def _resident() -> int:
    """Return the resident bytes of mapped files; 0 where the system does not report them (and frees them itself)."""
    try:
        statistics = os.open("/proc/self/statm", os.O_RDONLY)
    except OSError:
        return 0
    try:
        return int(os.read(statistics, 200).split()[2]) * mmap.PAGESIZE
    finally:
        os.close(statistics)


def converted(
    name: str, sources: Iterable[Path], version: object, shape: Shape, chunks: Callable[[], Iterable[Chunk]]
) -> MappedImages:
    """Return the array that `chunks` yields, from the cache; it is converted first if the sources are new or changed.

    If several processes ask at the same time, one converts and the others wait.
    """
    path = cache_folder() / "arrays" / f"{name}-{_fingerprint(sources, version)}.npy"
    if not path.exists():
        with alone(path):
            if not path.exists():
                _write_rows(path, name, shape, chunks)
    return _mapped_npy(path, shape)


def spooled(shape: Shape, chunks: Iterable[Rows]) -> MappedImages:
    """Write an array without a file into one named by its content: for arrays larger than memory."""
    draft = cache_folder() / "arrays" / f"items-{secrets.token_hex(8)}.npy"
    draft.parent.mkdir(parents=True, exist_ok=True)
    _write_rows(draft, "the images", shape, lambda: chunks, quiet=True)
    digest = hashlib.sha256()
    for part in _mapped_npy(draft, shape).parts():
        digest.update(part.data)
    path = draft.with_name(f"items-{digest.hexdigest()[:16]}.npy")
    draft.replace(path)
    return _mapped_npy(path, shape)


def conversions() -> list[Path]:
    """Return the cached conversions and the leftovers of killed ones, without those in progress."""
    return [path for path in sorted((cache_folder() / "arrays").glob("*.npy")) if not _is_in_the_making(path)]


def _is_in_the_making(path: Path) -> bool:
    if not path.name.startswith("."):
        return False
    try:
        with alone(path.with_name(f"{path.stem[1:].rpartition('-')[0]}.npy"), wait=False):
            return False
    except BusyError:
        return True


def _fingerprint(sources: Iterable[Path], version: object) -> str:
    """Return the name of a conversion; it depends on the source files, their versions and the converter's version."""
    facts = list(map(_facts, sources))
    return hashlib.sha256(repr((facts, version)).encode()).hexdigest()[:16]


def _facts(path: Path) -> tuple[str, int, int]:
    with reading_untrusted(path, "a file"):
        return str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns


def _numbered(chunks: Iterable[Chunk]) -> Iterator[tuple[Indices, Rows]]:
    start = 0
    for chunk in chunks:
        numbers, rows = chunk if isinstance(chunk, tuple) else (np.arange(start, start + len(chunk)), chunk)
        yield numbers, rows
        start += len(rows)


def _write_rows(
    path: Path, name: str, shape: Shape, chunks: Callable[[], Iterable[Chunk]], quiet: bool = False
) -> None:
    for left_over in path.parent.glob(f".{path.stem}-*{path.suffix}"):  # left by a killed process: we hold the lock
        left_over.unlink()
    _check_space_for_rows(path.parent, name, prod(shape))
    with written_whole(path) as draft, draft.open("wb") as file, _progress(name, shape[0], quiet) as advance:
        npy.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        start, given = file.tell(), 0
        for numbers, rows in _numbered(chunks()):
            _put(file, start, numbers, rows)
            given += len(rows)
            advance(len(rows))
        if given != shape[0]:
            raise ValueError(f"the conversion of {name} gave {given} rows instead of {shape[0]}")
        file.truncate(start + prod(shape))


def _put(file: BinaryIO, start: int, numbers: Indices, rows: Rows) -> None:
    """Write rows at their indices, consecutive ones in one go."""
    gaps = np.flatnonzero(np.diff(numbers) != 1) + 1
    for first, last in zip((0, *gaps), (*gaps, len(rows)), strict=True):
        run = np.ascontiguousarray(rows[first:last])
        if run.any():  # blank stretches stay holes in a sparse file, which take neither time nor disk space
            file.seek(start + int(numbers[first]) * run[0].nbytes)
            file.write(run.data)


def _check_space_for_rows(folder: Path, name: str, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        message = f"converting {name} once needs {needed / 1e6:.0f} MB in {folder}, where {free / 1e6:.0f} MB are free"
        raise UserError(f"{message}; make room there")


@contextmanager
def _progress(name: str, rows: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """Show a progress bar with the time left."""
    from lddr.console import TaskBars

    with TaskBars(quiet) as bars, bars.task(f"converting {name} (once)", rows) as advance:
        yield advance


def _mapped_npy(path: Path, shape: Shape) -> MappedImages:
    """Map the bytes of a converted file, unless its header has been changed."""
    try:
        with path.open("rb") as file:
            header = header_of(file.read(LONGEST))
        if header.shape != shape or header.dtype != np.uint8:
            raise damaged(path, described(shape), described(header.shape, header.dtype))
        return MappedImages(path, shape, header.start)
    except Exception as error:  # the file may have been changed, so its bytes are untrusted
        raise UserError(f"{path} is damaged; delete it, and it is made again") from error


LONGEST = 1 << 16  # bytes: numpy itself refuses headers of more than 10,000
READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Header(NamedTuple):
    """Shape and dtype of an array, and the offset of its values."""

    shape: tuple[int, ...]
    dtype: np.dtype
    in_fortran_order: bool
    start: int


def header_of(beginning: bytes) -> Header:
    """Parse the first bytes of an .npy file; raises ValueError if they are not a header."""
    file = io.BytesIO(beginning[:LONGEST])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the warning that Python 2 wrote the file, which is harmless
        version = npy.read_magic(file)
        if version not in READERS:
            raise ValueError(f"version {version}")
        shape, in_fortran_order, dtype = READERS[version](file)
    if any(length < 0 for length in shape):
        raise ValueError(f"the shape {shape}")
    return Header(shape, dtype, in_fortran_order, file.tell())


def size_of(header: Header) -> int:
    """Return the number of bytes of the array's values."""
    return prod(header.shape) * header.dtype.itemsize


LARGEST = 4 << 30  # bytes of an array: the header of a damaged file may claim more than fits into memory
MOST_UNPACKED = 1032  # bytes that deflate can expand one byte to
WORDS = "US"  # dtype kinds of text


def arrays_in(path: Path, names: Iterable[str], how: str) -> dict[str, NDArray]:
    """Return those of these arrays that the file contains; `how` explains how to write such a file."""
    with reading_untrusted(path, "an .npz file of numbers", how), _opened(path, how) as archive:
        there = [name for name in names if f"{name}.npy" in archive.namelist()]
        return {name: _array(archive, name, how) for name in there}


def names_in(path: Path, how: str) -> list[str]:
    """Return the names of the arrays in the file."""
    with reading_untrusted(path, "an .npz file of numbers", how), _opened(path, how) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _opened(path: Path, how: str) -> zipfile.ZipFile:
    if path.suffix != ".npz" and not zipfile.is_zipfile(path):
        raise UserError(f"this is no .npz file; {how}")
    return zipfile.ZipFile(path)


def member_of(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """Return a member of the archive, unless it claims to be larger than its compressed size allows."""
    member = archive.getinfo(name)
    if member.file_size > MOST_UNPACKED * Path(archive.filename or "").stat().st_size:
        raise ValueError(f"{member.file_size:,} bytes cannot come of it")
    return member


def _array(archive: zipfile.ZipFile, name: str, how: str) -> NDArray:
    member = member_of(archive, f"{name}.npy")
    with archive.open(member) as file:
        header = header_of(file.read(LONGEST))
    if header.dtype.hasobject or header.dtype.kind not in "biuf" + WORDS:
        raise UserError(f"'{name}' holds {header.dtype}; save numbers or words")
    size, there = size_of(header), member.file_size - header.start
    if size != there or size > LARGEST:
        raise UserError(f"'{name}' claims {size:,} bytes where {there:,} are, and at most {LARGEST:,} are read; {how}")
    with archive.open(member) as file:
        array = npy.read_array(file, allow_pickle=False)
    _check_letters(array)
    return array


def _check_letters(array: NDArray) -> None:
    """Refuse code points that are not valid characters: numpy makes unusable strings of them."""
    if array.dtype.kind == "U" and array.nbytes:
        numbers = np.frombuffer(array.tobytes(), f"{array.dtype.byteorder}u4")
        if numbers.max() > sys.maxunicode:
            raise ValueError("words of what is no letter")


CHUNK = 16 << 20  # bytes passed on at once
SLAB = 256 << 20  # bytes of an HDF5 file read at once: whole rows of its compressed blocks, so that each is read once
WIDEST = 256 << 20  # bytes of a row: the header of a damaged file may claim more than fits into memory
SIGNATURE = b"PK\3\4"
LOCAL_HEADER = struct.Struct("<4s22xHH")  # signature, …, length of the name, length of the extra field

HDF5_SUFFIXES = (".h5", ".hdf5")


class StoredArray(ABC):
    """An array stored under a key in a file."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        self.shape, self.dtype = self._header()

    @abstractmethod
    def _header(self) -> tuple[Shape, np.dtype]:
        """Return shape and dtype, without reading the content."""

    @abstractmethod
    def chunks(self) -> Iterator[Rows]:
        """Iterate over the content, a few thousand rows at a time; each chunk is valid until the next is requested."""

    def mapped(self) -> MappedImages | None:
        """Return the array mapped in place, or None if its layout does not allow that."""
        return None

    def expect(self, shape: Shape) -> None:
        """Refuse anything but bytes of this shape."""
        if self.shape != shape or self.dtype != np.uint8:
            found = described(self.shape, self.dtype)
            raise damaged(self.path, f"the array {self.key!r} to be {described(shape)}", found)

    def _width(self) -> int:
        """Return the bytes of a row: at least one, and at most what fits into memory."""
        width = prod(self.shape[1:]) * self.dtype.itemsize if self.shape else 0
        if not 0 < width <= WIDEST:
            found = described(self.shape, self.dtype)
            raise damaged(self.path, f"rows of 1 to {WIDEST:,} bytes in the array {self.key!r}", found)
        return width


def array_in(path: Path, key: str) -> StoredArray:
    """Return the array under this key of an .npz or HDF5 file."""
    return Hdf5Array(path, key) if path.suffix in HDF5_SUFFIXES else NpzArray(path, key)


class NpyArray(StoredArray):
    """The array of an .npy file, named after the file. Objects are never unpickled."""

    def __init__(self, path: Path, key: str | None = None) -> None:
        super().__init__(path, key or path.name)

    def _header(self) -> tuple[Shape, np.dtype]:
        with self._opened() as (length, file):
            beginning = file.read(LONGEST)
        try:
            header = header_of(beginning)
        except Exception as error:  # numpy parses the header with Python's parser
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
        """Open the file; yields the number of bytes of header and values, and the stream."""
        with reading_untrusted(self.path, "a whole .npy file"), self.path.open("rb") as file:
            yield self.path.stat().st_size, file


class NpzArray(NpyArray):
    """An array in an .npz archive."""

    def mapped(self) -> MappedImages | None:
        if self._info.compress_type != zipfile.ZIP_STORED:
            return None
        with reading_untrusted(self.path, "a whole .npz archive"):
            with self.path.open("rb") as file:
                file.seek(self._info.header_offset)
                signature, name_length, extra_length = LOCAL_HEADER.unpack(file.read(LOCAL_HEADER.size))
            if signature != SIGNATURE:
                raise ValueError(f"no zip member at byte {self._info.header_offset}")
            start = self._info.header_offset + LOCAL_HEADER.size + name_length + extra_length + self._start
            return MappedImages(self.path, self.shape, start)

    @contextmanager
    def _opened(self) -> Iterator[tuple[int, IO[bytes]]]:
        with reading_untrusted(self.path, "a whole .npz archive"), zipfile.ZipFile(self.path) as archive:
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
        """Return about `rows`, rounded to a multiple of a block's rows unless that is too large."""
        depth = block[0] if block else 1
        fits = depth * prod(self.shape[1:]) * self.dtype.itemsize <= SLAB
        return max(rows // depth, 1) * depth if fits else rows

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import h5py

        with reading_untrusted(self.path, "a whole HDF5 file"), h5py.File(self.path, "r") as file:
            if not isinstance(file.get(self.key), h5py.Dataset):
                raise damaged(self.path, f"an array {self.key!r}", ", ".join(file) or "nothing")
            yield file[self.key]
