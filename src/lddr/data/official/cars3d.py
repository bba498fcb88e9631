"""Cars3D, and the part of MATLAB's file format that it needs."""

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lddr.data.array_files import Chunk, MappedImages, converted, describe_array
from lddr.data.dataset import Images, datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.data.official import SIDE, Official, Remote, find
from lddr.data.pictures import scaled
from lddr.files import content_of, damaged, reading_untrusted

CARS = 183
FOLDER = "cars"
IN_FILE = (128, 128, 3, 24, 4)  # height, width, channel, azimuth, elevation
MOST_BYTES = 64 << 20  # of a file, and of an element once it is unpacked


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
    """Yield the views of one car after the other; in the numbering it is the cars of one view."""
    for car, path in enumerate(paths):
        images = np.stack([scaled(view, SIDE) for view in _views(path)])
        yield np.arange(len(images)) * len(paths) + car, images


def _views(path: Path) -> Images:
    """Return the views of a car, all azimuths of one elevation after the other: (96, 128, 128, 3)."""
    car = read_mat(path, "im")
    if car.shape != IN_FILE or car.dtype != np.uint8:
        raise damaged(path, f"'im' to be {describe_array(IN_FILE)}", describe_array(car.shape, car.dtype))
    return car.transpose(4, 3, 0, 1, 2).reshape(-1, *IN_FILE[:3])


# A reader of MATLAB's format, versions 5 to 7, for arrays of numbers: scipy's ends in a segmentation fault on damaged
# files, which nothing can catch. A file is a header and elements (type, length, content); a matrix is an element that
# holds elements: flags, shape, name and values.
Element = tuple[int, memoryview]  # type and content
HEADER_BYTES, MATRIX, COMPRESSED = 128, 14, 15
STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}  # types of values
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}


def read_mat(path: Path, name: str) -> NDArray:
    """Return the array of numbers called `name`, in MATLAB's order (the first index varies fastest)."""
    with reading_untrusted(path, "a whole MATLAB file"):
        content = memoryview(content_of(path, MOST_BYTES))
        order = {b"\x00\x01IM": "<", b"\x01\x00MI": ">"}.get(bytes(content[HEADER_BYTES - 4 : HEADER_BYTES]))
        if order is None:
            raise ValueError("not of the versions 5 to 7")
        for kind, inner in _elements(content[HEADER_BYTES:], order):
            if kind == COMPRESSED:
                unpacker = zlib.decompressobj()
                unpacked = unpacker.decompress(inner, MOST_BYTES)
                if not unpacker.eof:
                    raise ValueError("compressed data that ends early or never")
                kind, inner = next(_elements(memoryview(unpacked), order))
            parts = list(islice(_elements(inner, order, padded=True), 4)) if kind == MATRIX else []
            if [kind for kind, _ in parts[:3]] == [6, 5, 1] and parts[2][1] == name.encode():  # flags, shape, name
                return _numbers(parts, order)
    raise damaged(path, f"an array {name!r}", "none")


def _elements(content: memoryview, order: str, padded: bool = False) -> Iterator[Element]:
    place = 0
    while place < len(content):
        kind, length = struct.unpack_from(f"{order}II", content, place)
        if kind >> 16:  # a short element has its length and its content in these eight bytes
            start, kind, length = place + 4, kind & 0xFFFF, kind >> 16
            place += 8
        else:
            start = place + 8
            place = start + length + (-length % 8 if padded else 0)
        if start + length > min(place, len(content)):
            raise ValueError("an element ends early")
        yield kind, content[start : start + length]


def _numbers(parts: list[Element], order: str) -> NDArray:
    (_, flags), (_, shape), _, (stored, values) = parts
    kind = struct.unpack_from(f"{order}I", flags)[0]
    if kind & 0x0800 or kind & 0xFF not in CLASSES or stored not in STORED:  # 0x0800: complex numbers
        raise ValueError("something else than numbers")
    sizes = tuple(np.frombuffer(shape, f"{order}i4").tolist())
    numbers, wanted = np.frombuffer(values, order + STORED[stored]), np.dtype(CLASSES[kind & 0xFF])
    if min(sizes, default=0) < 0 or prod(sizes) != numbers.size or not np.can_cast(numbers.dtype, wanted):
        raise ValueError(f"{numbers.size} {numbers.dtype} in the place of {'x'.join(map(str, sizes))} {wanted}")
    return numbers.astype(wanted, copy=False).reshape(sizes, order="F")
