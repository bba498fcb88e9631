import struct
import zlib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from lddr.data.official import cars3d as mat_file
from lddr.data.official.cars3d import read_mat
from lddr.errors import UserError

SHAPE = (8, 8, 3, 4, 2)
IMAGES = np.random.default_rng(0).integers(256, size=SHAPE, dtype=np.uint8)
VALUES = 192  # where the element of the values begins in the file that `plain` writes


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    savemat(tmp_path / "car.mat", {"im": IMAGES})
    return tmp_path / "car.mat"


def refused(path: Path, sentence: str) -> None:
    with pytest.raises(UserError, match=rf"{path.name}: expected .*, found .*{sentence}.*; fix or replace that file"):
        read_mat(path, "im")


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("kind", ["u1", "i1", "u2", "i4", "u8", "f4", "f8"])
def test_what_was_saved_is_read(tmp_path: Path, kind: str, compressed: bool) -> None:
    content = {"before": np.arange(3), "im": IMAGES.astype(kind), "a longer name": np.ones(2), "cell": {"a": [1, "b"]}}
    savemat(tmp_path / "car.mat", content, do_compression=compressed)
    found = read_mat(tmp_path / "car.mat", "im")
    assert found.dtype == np.dtype(kind)
    np.testing.assert_array_equal(found, IMAGES.astype(kind))


def matlab_files() -> list[Path]:
    """Files that MATLAB itself wrote on several machines, as far as scipy was installed with its tests."""
    spec = find_spec("scipy.io.matlab")
    folder = Path(spec.origin or "").parent / "tests" / "data" if spec else Path()
    numbers = ("testdouble", "testmatrix", "testminus", "test3dmatrix", "testmulti")
    return [
        path for path in sorted(folder.glob("*.mat")) if path.name.startswith(numbers) and "_4.2c_" not in path.name
    ]


@pytest.mark.parametrize("path", matlab_files(), ids=lambda path: path.name)
def test_it_reads_what_scipy_reads(path: Path) -> None:
    for name, array in loadmat(path).items():
        if not name.startswith("__"):
            np.testing.assert_array_equal(read_mat(path, name), array)


def test_values_without_a_type_are_refused(plain: Path) -> None:
    """The case that ends in a segmentation fault in scipy."""
    content = bytearray(plain.read_bytes())
    assert struct.unpack_from("<II", content, VALUES) == (2, IMAGES.nbytes)
    content[VALUES : VALUES + 8] = bytes(8)
    plain.write_bytes(content)
    refused(plain, "something else than numbers")


@pytest.mark.parametrize(
    ("place", "number", "sentence"),
    [
        (124, 0x4D490200, "not of the versions 5 to 7"),
        (VALUES + 4, 2**31, "an element ends early"),
        (VALUES + 4, 8, "8 uint8 in the place of 8x8x3x4x2 uint8"),
        (VALUES, 9, "192 float64 in the place of 8x8x3x4x2 uint8"),
        (168 - 8, 2**31 - 1, "in the place of"),
        (168 - 8, 2**32 - 8, "in the place of -8x8x3x4x2 uint8"),
        (144, 0x0809, "something else than numbers"),
        (144, 5, "something else than numbers"),
        (132, 40, "something else than numbers|ends early|buffer"),
    ],
)
def test_numbers_that_lie_are_refused(plain: Path, place: int, number: int, sentence: str) -> None:
    content = bytearray(plain.read_bytes())
    struct.pack_into("<I", content, place, number)
    plain.write_bytes(content)
    refused(plain, f"({sentence})")


def compressed(content: bytes) -> bytes:
    packed = zlib.compress(content)
    return struct.pack("<II", 15, len(packed)) + packed


def test_what_unpacks_to_more_than_is_read_is_refused(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mat_file, "MOST_BYTES", 4000)
    header, element = plain.read_bytes()[:128], plain.read_bytes()[128:]
    plain.write_bytes(header + compressed(element))
    read_mat(plain, "im")
    plain.write_bytes(header + compressed(element + bytes(10_000)))
    refused(plain, "compressed data that ends early or never")


def test_what_is_packed_twice_is_not_unpacked_twice(plain: Path) -> None:
    header, element = plain.read_bytes()[:128], plain.read_bytes()[128:]
    plain.write_bytes(header + compressed(compressed(element)))
    refused(plain, "none")


def test_a_larger_file_is_not_read(plain: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mat_file, "MOST_BYTES", 1000)
    refused(plain, "more than 1,000 bytes")
