"""The factors of your own images: named columns of numbers or words, from a file or from Python."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lddr.arrays import as_array
from lddr.data.factors import UNKNOWN, Factor, FactorTable
from lddr.data.factors_csv import UNKNOWN_CELLS, Columns
from lddr.data.npz_arrays import WORDS, arrays_in
from lddr.errors import UserError
from lddr.foreign import in_one_line, named

HOW = "save it with numpy.savez(path, images=images, factors=factors)"


def factor_table(columns: Columns, count: int) -> FactorTable:
    """The factor space of `count` images; the values of a factor are the known entries of its column, sorted."""
    factors, numbers = [], [np.zeros((count, 0), np.int64)]
    for name, column in columns.items():
        known = column != "" if column.dtype.kind in WORDS else column == column  # NaN is not itself
        values, codes = np.unique(column[known], return_inverse=True)
        if not len(values):
            raise UserError(
                f"the factor {in_one_line(name)} has no known value; label some images with it or remove it"
            )
        factors.append(Factor(name, len(values), tuple(values.tolist())))
        place = np.full((count, 1), UNKNOWN, np.int64)
        place[known, 0] = codes
        numbers.append(place)
    return FactorTable(factors, np.concatenate(numbers, axis=1))


def factor_table_of(factors: Any, count: int | None = None) -> FactorTable:
    """The factor space of a table given in Python.

    Parameters
    ----------
    factors
        A dict of columns, a DataFrame, a structured array, or an array of shape (count,) or (count, factors). NaN,
        None, an empty word or -1 mark an unknown value; -1 counts as a value in a column with other negative numbers,
        or with fewer than two other values.
    count
        The number of images; left out, that of the first column.
    """
    arrays = {name: as_array(values) for name, values in _named(factors).items()}
    if count is None:
        count = next((len(column) for column in arrays.values() if column.ndim), 0)
    return factor_table({name: _column(column, name, count) for name, column in arrays.items()}, count)


def _named(factors: Any) -> dict[str, Any]:
    """The columns of any kind of table, by name."""
    if isinstance(factors, Mapping) or hasattr(factors, "columns"):  # a dict, or a table of pandas or polars
        names = list(factors if isinstance(factors, Mapping) else factors.columns)
        if len(set(map(str, names))) < len(names):
            raise UserError("the factors must have distinct names")
        return {str(name): factors[name] for name in names}
    array = as_array(factors)
    if array.dtype.names:
        return {name: array[name] for name in array.dtype.names}
    if array.ndim == 1:
        name = getattr(factors, "name", None)  # of a pandas Series
        return {name if isinstance(name, str) else "factor 0": array}
    if array.ndim != 2:
        raise UserError(f"expected factors of shape (samples, factors), got {array.shape}")
    return {f"factor {number}": column for number, column in enumerate(array.T)}


def _column(values: NDArray, name: str, count: int) -> NDArray:
    """One column as numbers or words, with NaN or "" where it is unknown."""
    column = _words(values)
    if column.shape != (count,):
        raise UserError(
            f"the factor {in_one_line(name)} has the shape {column.shape}; give one value for each of {count}"
        )
    if column.dtype.kind == "O":
        column = _of_objects(column)
    if column.dtype.kind == "U":
        return np.where(np.isin(np.char.strip(column), UNKNOWN_CELLS), "", column)
    if column.dtype.kind not in "biuf":
        raise UserError(f"the factor {in_one_line(name)} holds {column.dtype}; give numbers or words")
    if column.dtype.kind == "f" and np.isinf(column).any():
        raise UserError(f"the factor {in_one_line(name)} has infinite values; give finite numbers, NaN where unknown")
    return _without_marks(column)


def _of_objects(column: NDArray) -> NDArray:
    """Objects as numbers where every known one is a number, else as words."""
    known = [value is not None and str(value).strip() not in UNKNOWN_CELLS for value in column]
    if all(isinstance(value, int | float | np.number) for value in column[known]):
        return np.array([float(value) if is_known else np.nan for value, is_known in zip(column, known, strict=True)])
    return np.array([str(value) if is_known else "" for value, is_known in zip(column, known, strict=True)])


def _without_marks(column: NDArray) -> NDArray:
    """NaN for a -1 that marks an unknown value: there are at least two other values, and none is negative."""
    if column.dtype.kind not in "if" or not (column == UNKNOWN).any():
        return column
    others = np.unique(column[(column == column) & (column != UNKNOWN)])
    marks = len(others) > 1 and others[0] >= 0
    return np.where(column == UNKNOWN, np.nan, column) if marks else column


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
    names = _names(arrays.get("factor_names"), table.shape[1])
    return {name: _column(column, name, count) for name, column in zip(names, table.T, strict=True)}


def _names(names: NDArray | None, count: int) -> list[str]:
    if names is None:
        return [f"factor {number}" for number in range(count)]
    given = [str(name).encode("utf-8", "replace").decode() for name in _words(names).ravel().tolist()]
    if names.ndim != 1 or names.dtype.kind not in WORDS or len(set(given)) != count or len(given) != count:
        raise UserError(f"'factor_names' must be {count} distinct names, one per column of 'factors'")
    return given


def _words(array: NDArray) -> NDArray:
    return np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array
