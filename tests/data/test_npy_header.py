import io

import numpy as np
import pytest

from lddr.data.array_files import LONGEST, header_of, size_of

ARRAY = np.arange(12, dtype="<i4").reshape(3, 4)


def saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


@pytest.mark.parametrize("in_fortran_order", [False, True])
def test_the_header_tells_shape_type_order_and_where_the_values_begin(in_fortran_order: bool) -> None:
    content = saved(np.asfortranarray(ARRAY) if in_fortran_order else ARRAY)
    header = header_of(content)
    assert header[:3] == (ARRAY.shape, ARRAY.dtype, in_fortran_order)
    assert header.start + size_of(header) == len(content)
    assert header_of(content[: header.start]) == header


@pytest.mark.parametrize(
    "content",
    [
        b"",
        saved(ARRAY)[:20],
        saved(ARRAY).replace(b"(3, 4)", b"(-3,4)"),
        saved(ARRAY).replace(b"(3, 4)", b"[3, 4]"),
        saved(ARRAY).replace(b"\x01\x00", b"\x09\x00", 1),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + b" " * 2 * LONGEST,
    ],
)
def test_what_is_no_header_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        header_of(content)
