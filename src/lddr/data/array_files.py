"""Arrays in .npy, .npz and HDF5 files, read as untrusted input, and converted once into a memory-mapped cache."""

import hashlib
import io
import mmap
import secrets
import struct
import sys
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray
from platformdirs import user_cache_path

from lddr.data.factors import Indices, whole_numbers
from lddr.errors import UserError
from lddr.files import CURE, BusyError, alone, check_space, damaged, reading_untrusted, reason_of, written_whole

Rows = NDArray[np.uint8]  # (rows, …)
Chunk = Rows | tuple[Indices, Rows]  # the next rows, or row indices and the rows that belong there
Shape = tuple[int, ...]

MOST_RESIDENT = 384 << 20  # bytes of a mapping that one process may keep resident: enough for all of dSprites
ROWS_AT_ONCE = 256  # rows copied before their pages are released
CHUNK_BYTES = 16 << 20  # bytes passed on at once
SLAB_BYTES = 256 << 20  # bytes of an HDF5 file read at once: whole compressed blocks, so that each is read once
WIDEST_ROW = 256 << 20  # bytes: the header of a damaged file may claim more than fits into memory
LARGEST_LOADED = 4 << 30  # bytes of an array that is loaded into memory as a whole
LONGEST_HEADER = 1 << 16  # bytes: numpy itself refuses headers of more than 10,000
MOST_UNPACKED = 1032  # bytes that deflate can expand one byte to
TEXT_KINDS = "US"  # dtype kinds of text
HDF5_SUFFIXES = (".h5", ".hdf5")


def describe_array(shape: Shape, dtype: np.dtype | str = "uint8") -> str:
    """Describe an array: "480000x64x64x3 uint8"."""
    return f"{'x'.join(map(str, shape)) or 'a single'} {dtype}"


def cache_folder() -> Path:
    """Return the user's cache: for conversions, and for downloads unless $LDDR_DATA is set."""
    return user_cache_path("lddr", appauthor=False)


class MappedImages:
    """Rows of bytes stored contiguously in a file, memory-mapped and never loaded as a whole.

    The pages stay in the page cache, which all processes share; of mappings larger than `MOST_RESIDENT` this process
    releases them at once, so that several runs on one machine are not stopped for their memory.
    """

    def __init__(self, path: Path, shape: Shape, offset: int = 0) -> None:
        with path.open("rb") as file:
            self._pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(self._pages) < offset + prod(shape):
            raise damaged(path, f"{offset + prod(shape)} bytes", len(self._pages))
        self.path, self.shape, self._offset = path, shape, offset
        self._rows = np.frombuffer(self._pages, np.uint8, prod(shape), offset).reshape(len(self), -1)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the path: another process maps the file itself."""
        return MappedImages, (self.path, self.shape, self._offset)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, indices: ArrayLike) -> Rows:
        """Return copies of these rows: (count,) → (count, …)."""
        wanted = whole_numbers(indices, len(self), "image")
        rows = np.empty((wanted.size, self._rows.shape[1]), np.uint8)
        for start in range(0, wanted.size, ROWS_AT_ONCE):
            part = slice(start, start + ROWS_AT_ONCE)
            self._rows.take(wanted.ravel()[part], axis=0, out=rows[part], mode="clip")  # "raise" would copy once more
            self._release_pages()
        return rows.reshape(*wanted.shape, *self.shape[1:])

    def parts(self) -> Iterator[Rows]:
        """Iterate over all rows, flattened, a few at a time."""
        for start in range(0, len(self), ROWS_AT_ONCE):
            yield self._rows[start : start + ROWS_AT_ONCE]
            self._release_pages()

    def checksum(self) -> int:
        """Return the CRC-32 of all rows."""
        found = 0
        for part in self.parts():
            found = zlib.crc32(part.data, found)
        return found

    def _release_pages(self) -> None:
        """Release the pages of a large file, not counted: one page fault can map 2 MB of neighbours."""
        if len(self._pages) > MOST_RESIDENT and hasattr(self._pages, "madvise"):  # Windows frees them itself
            self._pages.madvise(mmap.MADV_DONTNEED)


def converted(
    name: str, sources: Iterable[Path], version: object, shape: Shape, chunks: Callable[[], Iterable[Chunk]]
) -> MappedImages:
    """Return the array that `chunks` yields, from the cache; it is converted first if the sources are new or changed.

    If several processes ask at the same time, one converts and the others wait.
    """
    facts = []
    for source in sources:
        with reading_untrusted(source, "a file"):
            facts.append((str(source.resolve()), source.stat().st_size, source.stat().st_mtime_ns))
    fingerprint = hashlib.sha256(repr((facts, version)).encode()).hexdigest()[:16]
    path = cache_folder() / "arrays" / f"{name}-{fingerprint}.npy"
    if not path.exists():
        with alone(path):
            if not path.exists():
                _write_rows(path, name, shape, chunks)
    return map_npy(path, shape)


def spooled(shape: Shape, chunks: Iterable[Rows]) -> MappedImages:
    """Write an array without a file into one named by its content: for arrays larger than memory."""
    draft = cache_folder() / "arrays" / f"items-{secrets.token_hex(8)}.npy"
    draft.parent.mkdir(parents=True, exist_ok=True)
    _write_rows(draft, "the images", shape, lambda: chunks, quiet=True)
    digest = hashlib.sha256()
    for part in map_npy(draft, shape).parts():
        digest.update(part.data)
    path = draft.with_name(f"items-{digest.hexdigest()[:16]}.npy")
    draft.replace(path)
    return map_npy(path, shape)


def conversions() -> list[Path]:
    """Return the cached conversions and the drafts of killed ones, without those in progress."""
    return [path for path in sorted((cache_folder() / "arrays").glob("*.npy")) if not _is_in_progress(path)]


def _is_in_progress(path: Path) -> bool:
    if not path.name.startswith("."):
        return False
    try:
        with alone(path.with_name(f"{path.stem[1:].rpartition('-')[0]}.npy"), wait=False):
            return False
    except BusyError:
        return True


def _write_rows(
    path: Path, name: str, shape: Shape, chunks: Callable[[], Iterable[Chunk]], quiet: bool = False
) -> None:
    from lddr.console import TaskBars

    for left_over in path.parent.glob(f".{path.stem}-*{path.suffix}"):  # left by a killed process: we hold the lock
        left_over.unlink()
    check_space(path.parent, prod(shape), f"converting {name} once")
    bars = TaskBars(quiet)
    task = bars.task(f"converting {name} (once)", shape[0])
    with written_whole(path) as draft, draft.open("wb") as file, bars, task as advance:
        npy.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
        start, width, count = file.tell(), prod(shape[1:]), 0
        for chunk in chunks():
            numbers, rows = chunk if isinstance(chunk, tuple) else (np.arange(count, count + len(chunk)), chunk)
            gaps = np.flatnonzero(np.diff(numbers) != 1) + 1  # consecutive rows are written together
            for first, run in zip(numbers[[0, *gaps]], np.split(rows, gaps), strict=True):
                file.seek(start + int(first) * width)
                file.write(np.ascontiguousarray(run).data)
            count += len(rows)
            advance(len(rows))
        if count != shape[0]:
            raise ValueError(f"the conversion of {name} gave {count} rows instead of {shape[0]}")


def map_npy(path: Path, shape: Shape) -> MappedImages:
    """Map the bytes of a converted file, unless its header has been changed."""
    try:
        stored = NumpyArray(path)
        stored.expect(shape)
        return MappedImages(path, shape, stored.start)
    except UserError as error:
        raise UserError(f"{path} is damaged; delete it, and it will be converted again") from error


class StoredArray:
    """An array stored under a key in a file: shape and type before anything else is read."""

    path: Path
    key: str
    shape: Shape
    dtype: np.dtype

    def expect(self, shape: Shape) -> None:
        """Refuse anything but bytes of this shape."""
        if self.shape != shape or self.dtype != np.uint8:
            found = describe_array(self.shape, self.dtype)
            raise damaged(self.path, f"the array {self.key!r} to be {describe_array(shape)}", found)

    def _row_bytes(self) -> int:
        """Return the bytes of a row: at least one, and at most what fits into memory."""
        width = prod(self.shape[1:]) * self.dtype.itemsize if self.shape else 0
        if not 0 < width <= WIDEST_ROW:
            found = describe_array(self.shape, self.dtype)
            raise damaged(self.path, f"rows of 1 to {WIDEST_ROW:,} bytes in the array {self.key!r}", found)
        return width


def rows_in(path: Path, key: str, shape: Shape, name: str) -> MappedImages:
    """Return an array of bytes of this shape: mapped in place if its layout allows that, else converted once."""
    array = array_in(path, key)
    array.expect(shape)
    return array.mapped() or converted(name, [path], 1, shape, array.chunks)


def array_in(path: Path, key: str) -> "NumpyArray | Hdf5Array":
    """Return the array under this key of an .npz or HDF5 file."""
    return Hdf5Array(path, key) if path.suffix in HDF5_SUFFIXES else NumpyArray(path, key)


class NumpyArray(StoredArray):
    """The array of an .npy file, or the one called `key` in an .npz file. Objects are never unpickled.

    numpy's own readers load a whole array, and allocate what its header claims; dSprites would take 3 GB.
    """

    def __init__(self, path: Path, key: str | None = None, cure: str = CURE) -> None:
        self.path, self.key = path, key or path.name
        self._member, self._cure = key and f"{key}.npy", cure
        self._info: zipfile.ZipInfo | None = None
        with self._opened() as (file, length):
            beginning = io.BytesIO(file.read(LONGEST_HEADER))
        try:
            self.shape, self.in_fortran_order, self.dtype = _read_header(beginning)
        except Exception as error:  # numpy parses the header with Python's parser
            found = f"something else ({reason_of(error)})"
            raise damaged(path, f"an .npy array under {self.key!r}", found, cure) from error
        self.start = beginning.tell()
        if self.dtype.hasobject:
            raise damaged(path, f"the array {self.key!r} to hold plain numbers", "Python objects", cure)
        self.nbytes = prod(self.shape) * self.dtype.itemsize
        if self.nbytes != length - self.start:
            wanted = f"{describe_array(self.shape, self.dtype)} under {self.key!r}"
            raise damaged(path, wanted, f"{length - self.start} bytes of data", cure)

    def chunks(self) -> Iterator[Rows]:
        """Iterate over the content, a few thousand rows at a time."""
        if self.in_fortran_order:
            raise damaged(self.path, f"the array {self.key!r} to be in C order", "Fortran order")
        width = self._row_bytes()
        rows = max(CHUNK_BYTES // width, 1)
        with self._opened() as (file, _):
            file.read(self.start)
            for start in range(0, self.shape[0], rows):
                count = min(rows, self.shape[0] - start)
                data = file.read(count * width)
                if len(data) < count * width:
                    raise EOFError(f"the data of {self.key!r} ends early")
                yield np.frombuffer(data, self.dtype).reshape(count, *self.shape[1:])

    def load(self) -> NDArray:
        """Return the whole array: numbers or text."""
        if self.dtype.kind not in "biuf" + TEXT_KINDS:
            raise UserError(f"{self.path}: {self.key!r} holds {self.dtype}; save numbers or words")
        if self.nbytes > LARGEST_LOADED:
            raise UserError(
                f"{self.path}: {self.key!r} has {self.nbytes:,} bytes, and at most {LARGEST_LOADED:,} are read"
            )
        with self._opened() as (file, _):
            array = npy.read_array(file, allow_pickle=False)
            codes = np.frombuffer(array.tobytes() if array.dtype.kind == "U" else b"", f"{array.dtype.byteorder}u4")
            if codes.max(initial=0) > sys.maxunicode:  # numpy would make unusable strings of them
                raise ValueError("words of what is no letter")
        return array

    def mapped(self) -> MappedImages | None:
        """Return the array mapped in place, or None if its layout does not allow that."""
        if self._info is None or self._info.compress_type != zipfile.ZIP_STORED or self.in_fortran_order:
            return None
        with reading_untrusted(self.path, "a whole .npz archive"), self.path.open("rb") as file:
            file.seek(self._info.header_offset)
            signature, name_length, extra_length = struct.unpack("<4s22xHH", file.read(30))
            if signature != b"PK\3\4":
                raise ValueError(f"no zip member at byte {self._info.header_offset}")
            return MappedImages(self.path, self.shape, file.tell() + name_length + extra_length + self.start)

    @contextmanager
    def _opened(self) -> Iterator[tuple[IO[bytes], int]]:
        """Open the array; yields the stream, and how many bytes header and values have."""
        what = "a whole .npz archive" if self._member else "a whole .npy file"
        with reading_untrusted(self.path, what, self._cure):
            if self._member is None:
                with self.path.open("rb") as file:
                    yield file, self.path.stat().st_size
                return
            with zipfile.ZipFile(self.path) as archive:
                if self._member not in archive.namelist():
                    names = ", ".join(sorted(archive.namelist())).replace(".npy", "") or "nothing"
                    raise damaged(self.path, f"an array {self.key!r}", names, self._cure)
                self._info = archive.getinfo(self._member)
                if self._info.file_size > MOST_UNPACKED * self.path.stat().st_size:
                    raise ValueError(f"{self._info.file_size:,} bytes cannot be in it")
                with archive.open(self._info) as member:
                    yield member, self._info.file_size


def _read_header(file: IO[bytes]) -> tuple[Shape, bool, np.dtype]:
    """Return shape, whether it is in Fortran order, and dtype of an .npy file; the values follow in the file."""
    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the warning that Python 2 wrote the file, which is harmless
        version = npy.read_magic(file)
        if version not in readers:
            raise ValueError(f"version {version}")
        header = readers[version](file)
    if any(length < 0 for length in header[0]):
        raise ValueError(f"the shape {header[0]}")
    return header


def arrays_in(path: Path, names: Iterable[str], how: str) -> dict[str, NDArray]:
    """Return those of these arrays that the file contains; `how` explains how to write such a file."""
    there = names_in(path, how)
    return {name: NumpyArray(path, name, how).load() for name in names if name in there}


def names_in(path: Path, how: str) -> list[str]:
    """Return the names of the arrays in an .npz file."""
    with reading_untrusted(path, "an .npz file of numbers", how):
        if path.suffix != ".npz" and not zipfile.is_zipfile(path):
            raise UserError(f"this is not an .npz file; {how}")
        with zipfile.ZipFile(path) as archive:
            return [name.removesuffix(".npy") for name in archive.namelist()]


class Hdf5Array(StoredArray):
    """A dataset in an HDF5 file."""

    def __init__(self, path: Path, key: str) -> None:
        self.path, self.key = path, key
        with self._opened() as dataset:
            self.shape, self.dtype = dataset.shape or (), dataset.dtype

    def mapped(self) -> None:
        """Return None: an HDF5 file is always converted."""

    def chunks(self) -> Iterator[Rows]:
        """Iterate over the content, a few thousand rows at a time."""
        width = self._row_bytes()
        rows = max(CHUNK_BYTES // width, 1)
        with self._opened() as dataset:
            depth = dataset.chunks[0] if dataset.chunks else 1
            slab = max(rows // depth, 1) * depth if depth * width <= SLAB_BYTES else rows
            for start in range(0, self.shape[0], slab):
                part = dataset[start : start + slab]
                yield from (part[first : first + rows] for first in range(0, len(part), rows))
                del part  # before the next one is read

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        import h5py

        with reading_untrusted(self.path, "a whole HDF5 file"), h5py.File(self.path, "r") as file:
            if not isinstance(file.get(self.key), h5py.Dataset):
                raise damaged(self.path, f"an array {self.key!r}", ", ".join(file) or "nothing")
            yield file[self.key]
