import io
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from lddr.data import array_files as module
from lddr.data.array_files import Hdf5Array, NumpyArray, array_in, arrays_in, names_in
from lddr.errors import UserError

SHAPE = (50, 6, 5)
IMAGES = np.random.default_rng(0).integers(256, size=SHAPE, dtype=np.uint8)


def save_hdf5(path: Path, **options: object) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("images", data=IMAGES, **options)


WRITERS: dict[str, Callable[[Path], None]] = {
    "plain.npz": lambda path: np.savez(path, labels=np.arange(3), images=IMAGES),
    "packed.npz": lambda path: np.savez_compressed(path, labels=np.arange(3), images=IMAGES),
    "plain.h5": save_hdf5,
    "packed.hdf5": lambda path: save_hdf5(path, chunks=(7, 2, 5), compression="gzip"),
    "deep.hdf5": lambda path: save_hdf5(path, chunks=(40, 1, 1), compression="gzip"),
}


@pytest.fixture(params=WRITERS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / request.param
    WRITERS[request.param](path)
    return path


@pytest.mark.parametrize("rows_at_once", [1, 16, 1000])
@pytest.mark.parametrize("slab", [1, 10_000])
def test_chunks_are_the_array(path: Path, rows_at_once: int, slab: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK_BYTES", rows_at_once * IMAGES[0].nbytes)
    monkeypatch.setattr(module, "SLAB_BYTES", slab)
    array = array_in(path, "images")
    chunks = [chunk.copy() for chunk in array.chunks()]
    assert array.shape == SHAPE
    assert max(map(len, chunks)) <= rows_at_once
    np.testing.assert_array_equal(np.concatenate(chunks), IMAGES)


def test_an_npy_file_is_one_array(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    array = NumpyArray(tmp_path / "a.npy")
    assert (array.shape, array.dtype, array.key) == (SHAPE, np.uint8, "a.npy")
    np.testing.assert_array_equal(np.concatenate([chunk.copy() for chunk in array.chunks()]), IMAGES)
    (tmp_path / "a.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-1])
    with pytest.raises(UserError, match=r"a\.npy: expected 50x6x5 uint8 under 'a\.npy', found 1499 bytes of data"):
        NumpyArray(tmp_path / "a.npy")


def test_only_a_plain_npz_is_mapped_in_place(path: Path) -> None:
    rows = array_in(path, "images").mapped()
    assert (rows is not None) == (path.name == "plain.npz")
    if rows:
        assert rows.path == path
        np.testing.assert_array_equal(rows.take([49, 0, 7]), IMAGES[[49, 0, 7]])


def test_a_missing_key_is_said_with_those_that_are_there(path: Path) -> None:
    with pytest.raises(UserError, match=rf"{path.name}: expected an array 'imgs', found .*images"):
        array_in(path, "imgs")


@pytest.mark.parametrize("part", [0, 0.3, 0.7, 0.99])
def test_a_file_cut_short_is_refused(path: Path, part: float) -> None:
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(UserError, match=rf"{path.name}: expected a whole .*, found a broken one"):
        list(array_in(path, "images").chunks())


def test_another_kind_of_file_is_refused(path: Path) -> None:
    path.write_text("<html>404</html>")
    with pytest.raises(UserError, match=rf"{path.name}: expected a whole .*, found a broken one"):
        array_in(path, "images")


def place_of_data(path: Path) -> int:
    """A byte in the middle of the compressed data."""
    if path.suffix == ".npz":
        return path.stat().st_size // 2
    with h5py.File(path) as file:
        block = file["images"].id.get_chunk_info(0)
        return block.byte_offset + block.size // 2


@pytest.mark.parametrize("name", ["packed.npz", "packed.hdf5"])
def test_a_flipped_bit_is_noticed(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    content = bytearray(path.read_bytes())
    content[place_of_data(path)] ^= 0x10
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"{name}: expected .*, found"):
        list(array_in(path, "images").chunks())


@pytest.mark.parametrize(
    ("shape", "dtype", "found"),
    [
        ((49, 6, 5), "u1", "49x6x5 uint8"),
        ((50, 30), "u1", "50x30 uint8"),
        (SHAPE, "i2", "50x6x5 int16"),
        ((), "u1", "a single uint8"),
    ],
)
@pytest.mark.parametrize("kind", ["a.npz", "a.h5"])
def test_another_shape_or_type_is_refused(tmp_path: Path, kind: str, shape: tuple, dtype: str, found: str) -> None:
    path, array = tmp_path / kind, np.zeros(shape, dtype)
    if kind == "a.npz":
        np.savez(path, images=array)
    else:
        with h5py.File(path, "w") as file:
            file["images"] = array
    with pytest.raises(UserError, match=f"{kind}: expected the array 'images' to be 50x6x5 uint8, found {found}"):
        array_in(path, "images").expect(SHAPE)


def test_a_group_is_no_array(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_group("images")
    with pytest.raises(UserError, match=r"expected an array 'images', found images"):
        Hdf5Array(tmp_path / "a.h5", "images")


class Bomb:
    def __reduce__(self) -> tuple:
        return (pytest.fail, ("a pickle was loaded",))


def test_pickled_objects_are_refused_and_not_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.array([Bomb()], dtype=object), fine=IMAGES)
    with pytest.raises(UserError, match=r"expected the array 'images' to hold plain numbers, found Python"):
        NumpyArray(tmp_path / "a.npz", "images")
    NumpyArray(tmp_path / "a.npz", "fine").expect(SHAPE)


def test_fortran_order_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=np.asfortranarray(IMAGES))
    with pytest.raises(UserError, match=r"in C order, found Fortran order"):
        next(NumpyArray(tmp_path / "a.npz", "images").chunks())


def npy_bytes(header: str, version: tuple[int, int] = (1, 0)) -> bytes:
    length = struct.pack("<H" if version == (1, 0) else "<I", len(header))
    return b"\x93NUMPY" + bytes(version) + length + header.encode("latin1") + IMAGES.tobytes()


def write_member(path: Path, content: bytes, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("images.npy", content)
    return path


@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
@pytest.mark.parametrize("shape", ["(50, 6, 5)", "(50L, 6L, 5L)"])
def test_old_headers_are_understood(tmp_path: Path, version: tuple[int, int], shape: str) -> None:
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n"
    array = NumpyArray(write_member(tmp_path / "a.npz", npy_bytes(header, version)), "images")
    rows = array.mapped()
    assert rows is not None
    np.testing.assert_array_equal(rows.take(range(50)), IMAGES)


@pytest.mark.parametrize("content", [b"", b"no array", npy_bytes("garbage"), npy_bytes("{}", (9, 0))])
def test_a_member_that_is_no_array_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(UserError, match=r"a.npz: expected an .npy array under 'images', found something else"):
        NumpyArray(write_member(tmp_path / "a.npz", content), "images")


@pytest.mark.parametrize("surplus", [-1, 1])
def test_more_or_less_data_than_the_header_says_is_refused(tmp_path: Path, surplus: int) -> None:
    file = io.BytesIO()
    np.save(file, IMAGES)
    content = (file.getvalue() + b"x")[: len(file.getvalue()) + surplus]
    with pytest.raises(UserError, match=rf"expected 50x6x5 uint8 under 'images', found {1500 + surplus} bytes of data"):
        NumpyArray(write_member(tmp_path / "a.npz", content), "images")


def test_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=IMAGES)
    content = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(content.replace(IMAGES[20].tobytes(), IMAGES[21].tobytes()))
    with pytest.raises(UserError, match=r"a.npz: expected a whole .npz archive, found a broken one \(Bad CRC"):
        list(NumpyArray(tmp_path / "a.npz", "images").chunks())


@pytest.mark.parametrize(("offset", "value"), [(8, 1), (10, 99)])  # encrypted; compressed in an unknown way
def test_unreadable_members_are_refused(tmp_path: Path, offset: int, value: int) -> None:
    np.savez(tmp_path / "a.npz", images=IMAGES)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[content.rindex(b"PK\1\2") + offset] = value
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(UserError, match=r"a.npz: expected a whole .npz archive, found a broken one"):
        NumpyArray(tmp_path / "a.npz", "images")


def test_the_pickle_is_a_bomb() -> None:
    with pytest.raises(pytest.fail.Exception):
        pickle.loads(pickle.dumps(Bomb()))  # noqa: S301 - shows that the test above can fail


@pytest.mark.parametrize("shape", ["(-50, -6, 5)", "(10**12,)", "(50.0, 6, 5)"])
def test_a_shape_that_is_none_is_refused(tmp_path: Path, shape: str) -> None:
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}\n"
    with pytest.raises(UserError, match=r"a.npz: expected an .npy array under 'images', found something else"):
        NumpyArray(write_member(tmp_path / "a.npz", npy_bytes(header)), "images")


@pytest.mark.parametrize("kind", ["a.npz", "a.h5"])
@pytest.mark.parametrize("shape", [(), (5, 0), (5, 0, 3)])
def test_rows_without_bytes_are_refused(tmp_path: Path, kind: str, shape: tuple[int, ...]) -> None:
    path = tmp_path / kind
    if kind == "a.npz":
        np.savez(path, images=np.zeros(shape, np.uint8))
    else:
        with h5py.File(path, "w") as file:
            file["images"] = np.zeros(shape, np.uint8)
    with pytest.raises(UserError, match=rf"{kind}: expected rows of 1 to .* bytes in the array 'images', found"):
        list(array_in(path, "images").chunks())


@pytest.mark.parametrize("kind", ["a.npz", "a.h5"])
def test_a_row_too_large_to_hold_is_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WIDEST_ROW", 1 << 20)
    path = tmp_path / kind
    if kind == "a.h5":
        with h5py.File(path, "w") as file:  # nothing of it is written
            file.create_dataset("images", (2, 2**20, 2**20), np.uint8, chunks=(1, 256, 256))
    else:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("images.npy", "w") as file:
            header = {"descr": "|u1", "fortran_order": False, "shape": (1, module.WIDEST_ROW + 1)}
            np.lib.format.write_array_header_1_0(file, header)
            for _ in range(module.WIDEST_ROW >> 20):
                file.write(bytes(1 << 20))
            file.write(b"0")
    with pytest.raises(UserError, match=rf"{kind}: expected rows of 1 to 1,048,576 bytes in the array 'images'"):
        list(array_in(path, "images").chunks())


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    for kind in ("a.npz", "a.h5"):
        os.mkfifo(tmp_path / kind)
        with pytest.raises(UserError, match=rf"{kind}: expected a whole .*\(no plain file\)"):
            array_in(tmp_path / kind, "images")


NUMBERS, WORDS = np.arange(12).reshape(6, 2), np.array(["shape", "colour"])


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    np.savez(tmp_path / "a.npz", numbers=np.asfortranarray(NUMBERS), words=WORDS)
    return tmp_path / "a.npz"


def test_the_arrays_that_are_there_are_read(archive: Path) -> None:
    found = arrays_in(archive, ("numbers", "words", "others"), "save it")
    assert list(found) == ["numbers", "words"] == names_in(archive, "save it")
    np.testing.assert_array_equal(found["numbers"], NUMBERS)
    np.testing.assert_array_equal(found["words"], WORDS)


def test_a_member_that_claims_more_than_the_archive_can_hold_is_refused(archive: Path) -> None:
    header = io.BytesIO()
    lie = {"descr": "<i8", "fortran_order": False, "shape": (10**8,)}
    np.lib.format.write_array_header_1_0(header, lie)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("numbers.npy", header.getvalue())
    content = bytearray(archive.read_bytes())
    claimed = len(header.getvalue()) + 8 * 10**8
    struct.pack_into("<I", content, content.rindex(b"PK\1\2") + 24, claimed)
    archive.write_bytes(content)
    with pytest.raises(UserError, match=rf"a\.npz: .*{claimed:,} bytes cannot be in it\); save it"):
        arrays_in(archive, ("numbers",), "save it")


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("number", [0x110000, 0x1FFFFF, 2**32 - 1])
def test_letters_that_are_none_are_refused(archive: Path, number: int, order: str) -> None:
    np.savez(archive, words=np.array([65, number], f"{order}u4").view(f"{order}U1"))
    with pytest.raises(UserError, match=r"a\.npz: expected a whole \.npz archive, found a broken one"):
        arrays_in(archive, ("words",), "save it")
