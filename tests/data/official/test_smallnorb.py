import gzip
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from lddr.data.factors import Factor, FactorGrid
from lddr.data.official import smallnorb
from lddr.data.official.smallnorb import TESTING, TRAINING, SmallNORB
from lddr.errors import UserError

BYTES, INTEGERS = 507333717, 507333716
INSTANCES = {TRAINING: (4, 6, 7, 8, 9), TESTING: (0, 1, 2, 3, 5)}


def header(magic: int, *sizes: int) -> bytes:
    padded = (*sizes, 1, 1)[: max(3, len(sizes))]
    return struct.pack(f"<{2 + len(padded)}i", magic, len(sizes), *padded)


def rows(split: str, lights: int = 6) -> np.ndarray:
    """Category, instance, elevation, azimuth (doubled, as in the file) and lighting of each image, shuffled."""
    elevations = 9 if lights == 6 else 2
    axes = np.meshgrid(range(5), INSTANCES[split], range(elevations), range(0, 36, 2), range(lights), indexing="ij")
    table = np.stack(axes, axis=-1).reshape(-1, 5)
    return np.random.default_rng(len(split)).permutation(table).astype("<i4")


def write(path: Path, *parts: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as file:
        for part in parts:
            file.write(part)


def write_labels(folder: Path, split: str, suffix: str = "", table: np.ndarray | None = None) -> None:
    table = rows(split) if table is None else table
    write(folder / f"{split}-cat.mat{suffix}", header(INTEGERS, len(table)), table[:, 0].tobytes())
    write(folder / f"{split}-info.mat{suffix}", header(INTEGERS, len(table), 4), table[:, 1:].tobytes())


def pairs(split: str, lights: int) -> Iterator[bytes]:
    """Each left picture in four flat quarters that show its factors; each right one white."""
    category, instance, elevation, azimuth, lighting = rows(split, lights).T
    quarters = np.stack([category * 9 + elevation, azimuth // 2, lighting, instance], axis=-1).astype(np.uint8)
    for part in np.array_split(quarters.reshape(-1, 2, 2), 27):
        both = np.full((len(part), 2, 96, 96), 255, np.uint8)
        both[:, 0] = part.repeat(48, axis=1).repeat(48, axis=2)
        yield both.tobytes()


@pytest.fixture(scope="module", params=[1, pytest.param(6, marks=pytest.mark.long)])
def norb(lasting_data: Path, request: pytest.FixtureRequest) -> SmallNORB:
    """Training as it is, testing compressed; with fewer lights and elevations, as there are many images."""
    folder, lights = lasting_data / f"{request.param}" / "small_norb", request.param
    category, elevation, azimuth, _ = SmallNORB.space.factors
    elevation = elevation if lights == 6 else Factor("elevation", 2)
    space = FactorGrid((category, elevation, azimuth, Factor("lighting", lights)), SmallNORB.space.hidden)
    count = space.size // 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LDDR_DATA", str(folder.parent))
        patch.setattr(smallnorb, "PER_SPLIT", count)
        patch.setattr(smallnorb, "AT_ONCE", 180)
        patch.setattr(SmallNORB, "space", space)
        for split, suffix in ((TRAINING, ""), (TESTING, ".gz")):
            write_labels(folder, split, suffix, rows(split, lights))
            write(folder / f"{split}-dat.mat{suffix}", header(BYTES, count, 2, 96, 96), *pairs(split, lights))
        dataset = SmallNORB()
    dataset.space = space
    return dataset


def test_the_image_of_a_factor_tuple_is_the_one_stored_for_it(norb: SmallNORB) -> None:
    numbers = np.arange(len(norb))
    images = norb.images(numbers)
    assert images.shape in ((1800, 64, 64, 1), (48600, 64, 64, 1))
    first, azimuth, lighting, instance = (images[:, y, x, 0] for y in (16, 48) for x in (16, 48))
    factors = np.stack([first // 9, first % 9, azimuth, lighting], axis=-1)
    np.testing.assert_array_equal(factors, norb.space.factors_of(numbers))
    np.testing.assert_array_equal(instance, norb.space.values_of(numbers)[:, -1])
    np.testing.assert_array_equal(norb.space.indices_of(factors), numbers // 10 * 10)


def test_the_instance_is_drawn_at_random(norb: SmallNORB) -> None:
    factors = np.tile([[4, 1, 17, 0]], (500, 1))
    images = norb.images(norb.space.indices_of(factors, np.random.default_rng(0)))
    assert set(images[:, 48, 48, 0]) == set(range(10))
    assert (images[:, 16, 48, 0] == 17).all()


def test_labels() -> None:
    category, elevation, azimuth, _ = SmallNORB.space.factors
    assert [category.label(value) for value in range(5)] == ["animal", "human", "airplane", "truck", "car"]
    assert (elevation.label(8), azimuth.label(17)) == ("70", "340")


@pytest.fixture
def folder(data: Path) -> Path:
    """Right labels, and pictures that end after the header."""
    for split in (TRAINING, TESTING):
        write_labels(data / "small_norb", split)
        write(data / "small_norb" / f"{split}-dat.mat", header(BYTES, 24300, 2, 96, 96))
    return data / "small_norb"


TOTAL = 24300 * 2 * 96 * 96


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        (f"{TRAINING}-cat.mat", b"", r"a NORB matrix that begins \(507333716, 1, 24300\), found \(\)"),
        (f"{TRAINING}-cat.mat", b"<html>404</html>", r"a NORB matrix that begins"),
        (f"{TRAINING}-cat.mat", header(BYTES, 24300), r"\(507333716, 1, 24300\), found \(507333717, 1, 24300, 1, 1\)"),
        (f"{TESTING}-info.mat", header(INTEGERS, 24300, 5), r"found \(507333716, 2, 24300, 5, 1\)"),
        (f"{TESTING}-info.mat", header(INTEGERS, 24299, 4), r"found \(507333716, 2, 24299, 4, 1\)"),
        (f"{TESTING}-info.mat", header(INTEGERS, 24300, 4) + bytes(99), "expected 388800 bytes of data, found 99"),
        (
            f"{TESTING}-info.mat",
            header(INTEGERS, 24300, 4) + bytes(388801),
            "expected 388800 bytes of data, found more",
        ),
        (
            f"{TRAINING}-dat.mat",
            header(BYTES, 24300, 2, 96, 96) + bytes(999),
            f"expected {TOTAL} bytes of data, found 999",
        ),
        (f"{TRAINING}-dat.mat", header(BYTES, 24300, 2, 64, 64), r"found \(507333717, 4, 24300, 2, 64, 64\)"),
    ],
)
def test_a_file_that_is_not_as_it_should_be_is_refused(folder: Path, name: str, content: bytes, sentence: str) -> None:
    write(folder / name, content)
    with pytest.raises(UserError, match=rf"{name}: expected .*{sentence.removeprefix('expected ')}"):
        SmallNORB()
    assert [path.suffix for path in (folder.parents[1] / "cache/lddr/arrays").iterdir()] == [".lock"]


@pytest.mark.parametrize("damage", [slice(100), slice(5, None)])
def test_a_broken_gz_is_refused(folder: Path, damage: slice) -> None:
    path = folder / f"{TRAINING}-info.mat"
    path.unlink()
    path = path.with_suffix(".mat.gz")
    write_labels(folder, TRAINING, ".gz")
    path.write_bytes(path.read_bytes()[damage])
    with pytest.raises(UserError, match=r"info\.mat\.gz: expected a whole file, found a broken one"):
        SmallNORB()


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        (0, 5, r"training-cat\.mat: expected every category to be one of 0, 1, … 4, found 5 in row 7"),
        (1, 10, r"training-info\.mat: expected every instance to be one of 0, 1, … 9, found 10 in row 7"),
        (2, -1, r"training-info\.mat: expected every elevation to be one of 0, 1, … 8, found -1 in row 7"),
        (3, 3, r"training-info\.mat: expected every azimuth to be one of 0, 2, … 34, found 3 in row 7"),
        (3, 36, r"training-info\.mat: expected every azimuth to be one of 0, 2, … 34, found 36 in row 7"),
        (4, 6, r"training-info\.mat: expected every lighting to be one of 0, 1, … 5, found 6 in row 7"),
    ],
)
def test_impossible_labels_are_refused(folder: Path, column: int, value: int, sentence: str) -> None:
    table = rows(TRAINING)
    table[7, column] = value
    write_labels(folder, TRAINING, table=table)
    with pytest.raises(UserError, match=sentence):
        SmallNORB()


def test_a_combination_that_comes_twice_is_refused(folder: Path) -> None:
    table = rows(TRAINING)
    table[7] = table[8]
    write_labels(folder, TRAINING, table=table)
    with pytest.raises(UserError, match=r"expected every combination .* once .*, found 1 missing and 1 repeated"):
        SmallNORB()
