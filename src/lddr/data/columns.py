"""The factors of your own images: named columns of numbers or words, which an .npz file may have."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lddr.data.factors import Factor, FactorTable
from lddr.data.factors_csv import Columns
from lddr.data.npz_arrays import WORDS, arrays_in
from lddr.errors import UserError
from lddr.foreign import named

HOW = "save it with numpy.savez(path, images=images, factors=factors)"


def factor_table(columns: Columns, count: int) -> FactorTable:
    """The factor space of `count` images: the values of a factor are the distinct entries of its column, sorted."""
    factors, numbers = [], [np.zeros((count, 0), np.int64)]
    for name, column in columns.items():
        values, codes = np.unique(column, return_inverse=True)
        factors.append(Factor(name, len(values), tuple(values.tolist())))
        numbers.append(codes.reshape(count, 1))
    return FactorTable(factors, np.concatenate(numbers, axis=1))


def columns_of_npz(path: Path, count: int) -> Columns:
    """The columns of the arrays `factors` and `factor_names` of an .npz file; nothing without `factors`."""
    found = arrays_in(path, ("factors", "factor_names"), HOW)
    with named(path):
        return columns_of_arrays(found, count, "images")


def columns_of_arrays(arrays: Mapping[str, NDArray], count: int, what: str) -> Columns:
    """The columns of `factors`, called as `factor_names` says: numbers or words for each of `count` samples."""
    if "factors" not in arrays:
        return {}
    factors = arrays["factors"]
    table = factors.reshape(-1, 1) if factors.ndim == 1 else factors
    if table.ndim != 2 or len(table) != count:
        raise UserError(f"'factors' has the shape {factors.shape}; save it as ({count} {what}, factors)")
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        raise UserError("'factors' has values that are not finite; save numbers or words")
    return dict(zip(_names(arrays.get("factor_names"), table.shape[1]), _words(table).T, strict=True))


def _names(names: NDArray | None, count: int) -> list[str]:
    if names is None:
        return [f"factor {number}" for number in range(count)]
    given = [str(name).encode("utf-8", "replace").decode() for name in _words(names).ravel().tolist()]
    if names.ndim != 1 or names.dtype.kind not in WORDS or len(set(given)) != count or len(given) != count:
        raise UserError(f"'factor_names' must be {count} distinct names, one per column of 'factors'")
    return given


def _words(array: NDArray) -> NDArray:
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array
