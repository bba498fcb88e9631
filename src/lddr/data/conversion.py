"""Large arrays in files: converted once into the user's cache, then mapped, so that all processes share the pages."""

import hashlib
import mmap
import os
import secrets
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from lddr.data.factors import Indices, whole_numbers
from lddr.data.locations import cache_folder
from lddr.data.npy_header import LONGEST, header_of
from lddr.errors import UserError
from lddr.files import BusyError, alone, written_whole
from lddr.foreign import damaged, foreign

Rows = NDArray[np.uint8]  # (rows, …)
Chunk = Rows | tuple[Indices, Rows]  # the rows that come next, or row numbers and the rows that belong there
Shape = tuple[int, ...]

KEPT = 384 << 20  # bytes of a mapping that one process may hold: enough for all of dSprites
AT_ONCE = 256  # rows copied before looking how much is held


def described(shape: Shape, dtype: np.dtype | str = "uint8") -> str:
    """An array in words: "480000x64x64x3 uint8"."""
    return f"{'x'.join(map(str, shape)) or 'a single'} {dtype}"


class MappedImages:
    """Rows of bytes that lie one after the other in a file, mapped and never loaded as a whole.

    The pages stay in the system's cache, where all processes share them; this process lets go of them whenever
    it holds more than `KEPT` bytes.
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
        """Another process maps the file itself."""
        return MappedImages, (self.path, self.shape, self._offset)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, indices: ArrayLike) -> Rows:
        """Copies of these rows: (count,) → (count, …)."""
        wanted = whole_numbers(indices, len(self), "image")
        rows = np.empty((wanted.size, self._rows.shape[1]), np.uint8)
        for start in range(0, wanted.size, AT_ONCE):
            part = slice(start, start + AT_ONCE)
            self._rows.take(wanted.ravel()[part], axis=0, out=rows[part], mode="clip")  # "raise" would copy once more
            self._let_go()
        return rows.reshape(*wanted.shape, *self.shape[1:])

    def checksum(self) -> int:
        """The CRC-32 of all rows."""
        found = 0
        for part in self.parts():
            found = zlib.crc32(part.data, found)
        return found

    def parts(self) -> Iterator[Rows]:
        """All rows, flat, a few at a time."""
        for start in range(0, len(self), AT_ONCE):
            yield self._rows[start : start + AT_ONCE]
            self._let_go()

    def _let_go(self) -> None:
        """Drop the pages when they have become many: measured, as one page can bring in 2 MB of neighbours."""
        if len(self._pages) > KEPT and _resident() - self._resident_before > KEPT:
            self._pages.madvise(mmap.MADV_DONTNEED)
            self._resident_before = _resident()


def _resident() -> int:
    """How many bytes of mapped files this process holds; 0 where the system does not say (and frees them by itself)."""
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
    """The array `chunks` gives piece by piece, from the cache; written there first unless these sources already were.

    However many processes ask at once, one converts and the others wait for it.
    """
    path = cache_folder() / "arrays" / f"{name}-{_fingerprint(sources, version)}.npy"
    if not path.exists():
        with alone(path):
            if not path.exists():
                _write(path, name, shape, chunks)
    return _mapped_npy(path, shape)


def spooled(shape: Shape, chunks: Iterable[Rows]) -> MappedImages:
    """What has no file, written into one that is called after its content: for more than fits into memory."""
    draft = cache_folder() / "arrays" / f"items-{secrets.token_hex(8)}.npy"
    draft.parent.mkdir(parents=True, exist_ok=True)
    _write(draft, "the images", shape, lambda: chunks, quiet=True)
    digest = hashlib.sha256()
    for part in _mapped_npy(draft, shape).parts():
        digest.update(part.data)
    path = draft.with_name(f"items-{digest.hexdigest()[:16]}.npy")
    draft.replace(path)
    return _mapped_npy(path, shape)


def conversions() -> list[Path]:
    """The converted arrays in the cache, and what killed conversions left there; not those that are being made."""
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
    """Names a conversion: other files, changed files or another way to convert give another name."""
    facts = list(map(_facts, sources))
    return hashlib.sha256(repr((facts, version)).encode()).hexdigest()[:16]


def _facts(path: Path) -> tuple[str, int, int]:
    with foreign(path, "a file"):
        return str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns


def _numbered(chunks: Iterable[Chunk]) -> Iterator[tuple[Indices, Rows]]:
    start = 0
    for chunk in chunks:
        numbers, rows = chunk if isinstance(chunk, tuple) else (np.arange(start, start + len(chunk)), chunk)
        yield numbers, rows
        start += len(rows)


def _write(path: Path, name: str, shape: Shape, chunks: Callable[[], Iterable[Chunk]], quiet: bool = False) -> None:
    for left_over in path.parent.glob(f".{path.stem}-*{path.suffix}"):  # a killed process left it: we hold the lock
        left_over.unlink()
    _check_space(path.parent, name, prod(shape))
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
    """Write rows where they belong, those that follow one another at once."""
    gaps = np.flatnonzero(np.diff(numbers) != 1) + 1
    for first, last in zip((0, *gaps), (*gaps, len(rows)), strict=True):
        run = np.ascontiguousarray(rows[first:last])
        if run.any():  # blank stretches stay holes, which take neither time nor disk
            file.seek(start + int(numbers[first]) * run[0].nbytes)
            file.write(run.data)


def _check_space(folder: Path, name: str, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        message = f"converting {name} once needs {needed / 1e6:.0f} MB in {folder}, where {free / 1e6:.0f} MB are free"
        raise UserError(f"{message}; make room there")


@contextmanager
def _progress(name: str, rows: int, quiet: bool) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal, with the time that is left."""
    from lddr.console import TaskBars

    with TaskBars(quiet) as bars, bars.task(f"converting {name} (once)", rows) as advance:
        yield advance


def _mapped_npy(path: Path, shape: Shape) -> MappedImages:
    """The bytes that were written there, unless somebody has changed what the file says of them."""
    try:
        with path.open("rb") as file:
            header = header_of(file.read(LONGEST))
        if header.shape != shape or header.dtype != np.uint8:
            raise damaged(path, described(shape), described(header.shape, header.dtype))
        return MappedImages(path, shape, header.start)
    except Exception as error:  # foreign bytes, once somebody has changed them
        raise UserError(f"{path} is damaged; delete it, and it is made again") from error
