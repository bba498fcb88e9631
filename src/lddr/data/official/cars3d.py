"""Cars3D, and the part of MATLAB's file format that it needs."""

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lddr.data.array_files import Chunk, MappedImages, converted, described
from lddr.data.dataset import Images, datasets
from lddr.data.download import Remote
from lddr.data.factors import Factor, FactorGrid
from lddr.data.locations import find
from lddr.data.official.base import SIDE, Official
from lddr.data.pictures import scaled
from lddr.files import content_of, damaged, reading_untrusted

Element = tuple[int, memoryview]  # type and content

LARGEST = 64 << 20  # bytes of a file, and of an element once it is unpacked
HEADER, VERSION = 128, 0x0100
FLAGS, SHAPE, NAME, MATRIX, COMPRESSED = 6, 5, 1, 14, 15  # types of what is no value
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}  # types of values
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
COMPLEX = 0x0800  # a flag


def read_mat(path: Path, name: str) -> NDArray:
    """The array of numbers called `name`, in MATLAB's order (the first index turns fastest)."""
    with reading_untrusted(path, "a whole MATLAB file"):
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


CARS = 183
FOLDER = "cars"
IN_FILE = (128, 128, 3, 24, 4)  # height, width, channel, azimuth, elevation


@datasets.register("cars3d")
class Cars3D(Official):
    """Cars on white, one file each; the cars are numbered by the order of their file names."""

    name = "cars3d"
    title = "Cars3D"
    files = ((FOLDER,),)
    remotes = (
        Remote(
            path=FOLDER,
            url="http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
            checksum="md5:4e866a7919c1beedf53964e6f7a23686",
            members="data/cars",
        ),
    )
    space = FactorGrid((Factor("elevation", 4), Factor("azimuth", 24), Factor("object", CARS)))
    image_shape = (SIDE, SIDE, 3)

    @classmethod
    def found(cls) -> list[Path]:
        folder = find(FOLDER)
        return sorted(folder.glob("*.mat"), key=lambda path: path.name) if folder else []

    def _open(self, paths: list[Path]) -> MappedImages:
        if len(paths) != CARS:
            raise damaged(paths[0].parent, f"{CARS} car files (*.mat)", len(paths))
        return converted(self.name, paths, 1, (self.space.size, *self.image_shape), lambda: _chunks(paths))


def _chunks(paths: list[Path]) -> Iterator[Chunk]:
    """The views of one car after the other; in the numbering it is the cars of one view."""
    for car, path in enumerate(paths):
        images = np.stack([scaled(view, SIDE) for view in _views(path)])
        yield np.arange(len(images)) * len(paths) + car, images


def _views(path: Path) -> Images:
    """The views of a car, all azimuths of one elevation after the other: (96, 128, 128, 3)."""
    car = read_mat(path, "im")
    if car.shape != IN_FILE or car.dtype != np.uint8:
        raise damaged(path, f"'im' to be {described(IN_FILE)}", described(car.shape, car.dtype))
    return car.transpose(4, 3, 0, 1, 2).reshape(-1, *IN_FILE[:3])
