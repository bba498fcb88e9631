"""The header of an .npy array: believed when it tells of plain values and of as many bytes as there are."""

import io
import warnings
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

LONGEST = 1 << 16  # bytes: numpy itself reads no header of more than 10 000
READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class Header(NamedTuple):
    """Shape and type of an array, and where its values begin."""

    shape: tuple[int, ...]
    dtype: np.dtype
    in_fortran_order: bool
    start: int


def header_of(beginning: bytes) -> Header:
    """What the first bytes of an .npy file tell; a ValueError where that is nothing."""
    file = io.BytesIO(beginning[:LONGEST])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it was written by Python 2, which does no harm
        version = npy.read_magic(file)
        if version not in READERS:
            raise ValueError(f"version {version}")
        shape, in_fortran_order, dtype = READERS[version](file)
    if any(length < 0 for length in shape):
        raise ValueError(f"the shape {shape}")
    return Header(shape, dtype, in_fortran_order, file.tell())


def size_of(header: Header) -> int:
    """The bytes its values take."""
    return prod(header.shape) * header.dtype.itemsize
