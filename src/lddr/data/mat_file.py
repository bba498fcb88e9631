"""An array of numbers in a MATLAB file of the versions 5 to 7, read by hand: scipy's reader crashes on damaged ones.

The file is a header of 128 bytes and elements. An element is its type and its length, four bytes each, and its content;
where the length fits into the upper half of the type, the content takes the place of the length. A compressed element
holds another. A matrix holds flags, shape, name and values, each filled up to eight bytes.
"""

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lddr.foreign import content_of, damaged, foreign

Element = tuple[int, memoryview]  # type and content

LARGEST = 64 << 20  # bytes of a file, and of an element once it is unpacked
HEADER, VERSION = 128, 0x0100
FLAGS, SHAPE, NAME, MATRIX, COMPRESSED = 6, 5, 1, 14, 15  # types of what is no value
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}  # types of values
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
COMPLEX = 0x0800  # a flag


def read_mat(path: Path, name: str) -> NDArray:
    """The array of numbers called `name`, in MATLAB's order (the first index turns fastest)."""
    with foreign(path, "a whole MATLAB file"):
        content = memoryview(content_of(path, LARGEST))
        order = _byte_order(content)
        for matrix in _matrices(content[HEADER:], order):
            parts = list(islice(_elements(matrix, order, padded=True), 4))
            if [kind for kind, _ in parts[:3]] == [FLAGS, SHAPE, NAME] and parts[2][1] == name.encode():
                return _array(parts, order)
    raise damaged(path, f"an array {name!r}", "none")


def _byte_order(content: memoryview) -> str:
    """As struct and numpy write it; the last two bytes of the header tell."""
    order = {b"IM": "<", b"MI": ">"}.get(bytes(content[HEADER - 2 : HEADER]))
    if order is None or struct.unpack_from(f"{order}H", content, HEADER - 4)[0] != VERSION:
        raise ValueError("not of the versions 5 to 7")
    return order


def _matrices(content: memoryview, order: str) -> Iterator[memoryview]:
    for kind, inner in _elements(content, order):
        if kind == COMPRESSED:
            kind, inner = next(_elements(_unpacked(inner), order))
        if kind == MATRIX:
            yield inner


def _elements(content: memoryview, order: str, padded: bool = False) -> Iterator[Element]:
    place = 0
    while place < len(content):
        kind, length = struct.unpack_from(f"{order}II", content, place)
        if kind >> 16:
            start, kind, length = place + 4, kind & 0xFFFF, kind >> 16
            place += 8
        else:
            start = place + 8
            place = start + length + (-length % 8 if padded else 0)
        if start + length > min(place, len(content)):
            raise ValueError("an element ends early")
        yield kind, content[start : start + length]


def _unpacked(content: memoryview) -> memoryview:
    unpacker = zlib.decompressobj()
    found = unpacker.decompress(content, LARGEST)
    if not unpacker.eof:
        raise ValueError("compressed data that ends early or never")
    return memoryview(found)


def _array(parts: list[Element], order: str) -> NDArray:
    (_, flags), (_, shape), _, (stored, values) = parts
    kind = struct.unpack_from(f"{order}I", flags)[0]
    if kind & COMPLEX or kind & 0xFF not in CLASSES or stored not in STORED:
        raise ValueError("something else than numbers")
    sizes = tuple(np.frombuffer(shape, f"{order}i4").tolist())
    numbers, wanted = np.frombuffer(values, order + STORED[stored]), np.dtype(CLASSES[kind & 0xFF])
    if min(sizes, default=0) < 0 or prod(sizes) != numbers.size or not np.can_cast(numbers.dtype, wanted):
        raise ValueError(f"{numbers.size} {numbers.dtype} in the place of {'x'.join(map(str, sizes))} {wanted}")
    return numbers.astype(wanted, copy=False).reshape(sizes, order="F")
