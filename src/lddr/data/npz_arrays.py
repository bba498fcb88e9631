"""Small arrays of an .npz file, whole: numbers and words whose headers tell the truth, and never more than is meant."""

import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from lddr.data.npy_header import LONGEST, header_of, size_of
from lddr.errors import UserError
from lddr.foreign import foreign

LARGEST = 4 << 30  # bytes of an array: a damaged header claims more than there is memory
MOST_UNPACKED = 1032  # bytes that deflate can make of one
WORDS = "US"  # the kinds of arrays that hold words


def arrays_in(path: Path, names: Iterable[str], how: str) -> dict[str, NDArray]:
    """Those of these arrays that the file has; `how` says how to write such a file."""
    with foreign(path, "an .npz file of numbers", how), _opened(path, how) as archive:
        there = [name for name in names if f"{name}.npy" in archive.namelist()]
        return {name: _array(archive, name, how) for name in there}


def names_in(path: Path, how: str) -> list[str]:
    """What the arrays of the file are called."""
    with foreign(path, "an .npz file of numbers", how), _opened(path, how) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _opened(path: Path, how: str) -> zipfile.ZipFile:
    if path.suffix != ".npz" and not zipfile.is_zipfile(path):
        raise UserError(f"this is no .npz file; {how}")
    return zipfile.ZipFile(path)


def member_of(archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    """A file of the archive, unless it claims to be larger than the archive can make it."""
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
    """Refuse numbers that no letter has: numpy makes texts of them that cannot be used."""
    if array.dtype.kind == "U" and array.nbytes:
        numbers = np.frombuffer(array.tobytes(), f"{array.dtype.byteorder}u4")
        if numbers.max() > sys.maxunicode:
            raise ValueError("words of what is no letter")
