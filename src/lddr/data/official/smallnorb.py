"""SmallNORB: photographs of 50 toys of 5 categories, from NORB's own binary matrices."""

import gzip
import struct
from collections.abc import Iterator
from itertools import chain
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lddr.data.array_files import Chunk, MappedImages, Shape, converted
from lddr.data.dataset import datasets
from lddr.data.factors import Factor, FactorGrid, Indices
from lddr.data.official import SIDE, Official, Remote
from lddr.data.pictures import scaled
from lddr.files import damaged, reading_untrusted

BYTES, INTEGERS = 507333717, 507333716  # magic numbers of the type of a matrix
TYPES: dict[int, np.dtype] = {BYTES: np.dtype("u1"), INTEGERS: np.dtype("<i4")}
PER_SPLIT = 24300
AT_ONCE = 300  # images: a divisor of 24 300

ADDRESS = "https://cs.nyu.edu/~ylclab/data/norb-v1.0-small"
TRAINING = "smallnorb-5x46789x9x18x6x2x96x96-training"
TESTING = "smallnorb-5x01235x9x18x6x2x96x96-testing"
PUBLISHED = {  # file: bytes and SHA-256 of its .gz
    f"{TRAINING}-dat.mat": (131896188, "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873"),
    f"{TRAINING}-cat.mat": (348, "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa"),
    f"{TRAINING}-info.mat": (71052, "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32"),
    f"{TESTING}-dat.mat": (130799817, "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474"),
    f"{TESTING}-cat.mat": (347, "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff"),
    f"{TESTING}-info.mat": (10428, "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2"),
}


@datasets.register("smallnorb")
class SmallNORB(Official):
    """Toys of five categories, ten of each, on a turntable: the left camera, training and testing together."""

    name = "smallnorb"
    title = "SmallNORB"
    files = tuple((f"small_norb/{name}", f"small_norb/{name}.gz") for name in PUBLISHED)
    remotes = tuple(
        Remote(path=f"small_norb/{name}.gz", url=f"{ADDRESS}/{name}.gz", checksum=f"sha256:{digest}", size=size)
        for name, (size, digest) in PUBLISHED.items()
    )
    space = FactorGrid(
        (
            Factor("category", 5, ("animal", "human", "airplane", "truck", "car")),
            Factor("elevation", 9, tuple(range(30, 71, 5))),
            Factor("azimuth", 18, tuple(range(0, 360, 20))),
            Factor("lighting", 6),
        ),
        hidden=(Factor("instance", 10),),
    )
    image_shape = (SIDE, SIDE, 1)

    def _open(self, paths: list[Path]) -> MappedImages:
        shape = (self.space.size, *self.image_shape)
        return converted(self.name, paths, 1, shape, lambda: _chunks(paths[:3], paths[3:], self.space))


def _chunks(training: list[Path], testing: list[Path], space: FactorGrid) -> Iterator[Chunk]:
    """Yield the left images in the order of the files, with the numbers given by their factors."""
    numbers = np.concatenate([_numbers(cat, info, space) for _, cat, info in (training, testing)])
    filled = np.bincount(numbers, minlength=space.size)
    if np.any(filled != 1):
        found = f"{np.count_nonzero(filled == 0)} missing and {np.count_nonzero(filled > 1)} repeated"
        raise damaged(training[2], "every combination of the factors once in training and testing", found)
    pairs = chain.from_iterable(read_matrix(path, BYTES, (PER_SPLIT, 2, 96, 96)) for path in (training[0], testing[0]))
    for some, both in zip(np.split(numbers, len(numbers) // AT_ONCE), pairs, strict=True):
        yield some, np.stack([scaled(left, SIDE) for left in both[:, 0]])


def _numbers(cat: Path, info: Path, space: FactorGrid) -> Indices:
    """Return the number of each image, by its category, elevation, azimuth, lighting and instance."""
    category = np.concatenate(list(read_matrix(cat, INTEGERS, (PER_SPLIT,))))
    instance, elevation, azimuth, lighting = np.concatenate(list(read_matrix(info, INTEGERS, (PER_SPLIT, 4)))).T
    columns = np.stack([category, elevation, azimuth, lighting, instance], axis=-1)
    for factor, values in zip((*space.factors, *space.hidden), columns.T, strict=True):
        step = 2 if factor.name == "azimuth" else 1
        wrong = (values < 0) | (values >= factor.size * step) | (values % step > 0)
        if wrong.any():
            expected = f"every {factor.name} to be one of 0, {step}, … {(factor.size - 1) * step}"
            found = f"{values[wrong][0]} in row {np.argmax(wrong)}"
            raise damaged(cat if factor.name == "category" else info, expected, found)
        values //= step
    return space.number_of(columns)


def read_matrix(path: Path, magic: int, shape: Shape) -> Iterator[NDArray]:
    """Yield the rows of a NORB matrix of exactly this type and shape, a few at a time."""
    width, sizes = prod(shape[1:]) * TYPES[magic].itemsize, max(3, len(shape))  # at least three sizes are stored
    opened = gzip.open if path.suffix == ".gz" else open
    with reading_untrusted(path, "a whole file"), opened(path, "rb") as file:
        header = file.read(4 * (2 + sizes))
        found = struct.unpack(f"<{len(header) // 4}i", header[: len(header) // 4 * 4])
        if len(found) < 2 + sizes or found[: 2 + len(shape)] != (magic, len(shape), *shape):
            raise damaged(path, f"a NORB matrix that begins {(magic, len(shape), *shape)}", found)
        for start in range(0, shape[0], AT_ONCE):
            data = file.read(AT_ONCE * width)
            if len(data) < AT_ONCE * width:
                raise damaged(path, f"{shape[0] * width} bytes of data", start * width + len(data))
            yield np.frombuffer(data, TYPES[magic]).reshape(-1, *shape[1:])
        if file.read(1):
            raise damaged(path, f"{shape[0] * width} bytes of data", "more")
