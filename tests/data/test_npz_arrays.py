import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from lddr.data.array_files import arrays_in, names_in
from lddr.errors import UserError

NUMBERS, WORDS = np.arange(12).reshape(6, 2), np.array(["shape", "colour"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    np.savez(tmp_path / "a.npz", numbers=np.asfortranarray(NUMBERS), words=WORDS)
    return tmp_path / "a.npz"


def test_the_arrays_that_are_there_are_read(path: Path) -> None:
    found = arrays_in(path, ("numbers", "words", "others"), "save it")
    assert list(found) == ["numbers", "words"] == names_in(path, "save it")
    np.testing.assert_array_equal(found["numbers"], NUMBERS)
    np.testing.assert_array_equal(found["words"], WORDS)


def test_a_member_that_claims_more_than_the_archive_can_hold_is_refused(path: Path) -> None:
    header = io.BytesIO()
    lie = {"descr": "<i8", "fortran_order": False, "shape": (10**8,)}
    np.lib.format.write_array_header_1_0(header, lie)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("numbers.npy", header.getvalue())
    content = bytearray(path.read_bytes())
    claimed = len(header.getvalue()) + 8 * 10**8
    struct.pack_into("<I", content, content.rindex(b"PK\1\2") + 24, claimed)
    path.write_bytes(content)
    with pytest.raises(UserError, match=rf"a\.npz: .*{claimed:,} bytes cannot come of it\); save it"):
        arrays_in(path, ("numbers",), "save it")


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("number", [0x110000, 0x1FFFFF, 2**32 - 1])
def test_letters_that_are_none_are_refused(path: Path, number: int, order: str) -> None:
    np.savez(path, words=np.array([65, number], f"{order}u4").view(f"{order}U1"))
    with pytest.raises(UserError, match=r"a\.npz: expected an \.npz file of numbers, found a broken one"):
        arrays_in(path, ("words",), "save it")
