"""The factors of your own images: named columns of numbers or words, from factors.csv or an .npz file."""

import csv
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lddr.data.factors import Factor, FactorTable
from lddr.errors import UserError

FILE_COLUMNS = ("file", "filename", "image", "path")  # a column of factors.csv that names the picture of its row

Columns = dict[str, NDArray]  # name → one number or word per image


def factor_table(columns: Columns, count: int) -> FactorTable:
    """The factor space of `count` images: the values of a factor are the distinct entries of its column, sorted."""
    factors, numbers = [], [np.zeros((count, 0), np.int64)]
    for name, column in columns.items():
        values, codes = np.unique(column, return_inverse=True)
        factors.append(Factor(name, len(values), tuple(values.tolist())))
        numbers.append(codes.reshape(count, 1))
    return FactorTable(factors, np.concatenate(numbers, axis=1))


def columns_of_csv(path: Path, files: list[str]) -> Columns:
    """The columns of factors.csv in the order of `files`, by name where a column has names; nothing without a table."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8-sig") as file:
        header, *rows = list(csv.reader(file)) or [[]]
    rows = [row for row in rows if row]
    _check_shape(path, header, rows, len(files))
    names = [name.strip() for name in header]
    by_file = next((names.index(name) for name in FILE_COLUMNS if name in names), None)
    if by_file is not None:
        rows = _in_order(path, rows, by_file, files)
    return {name: _parsed([row[place] for row in rows]) for place, name in enumerate(names) if place != by_file}


def _check_shape(path: Path, header: list[str], rows: list[list[str]], count: int) -> None:
    if not header or len(set(header)) < len(header):
        raise UserError(f"{path} must start with a line of distinct column names")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header) or not all(cell.strip() for cell in row):
            raise UserError(f"{path}, row {number}: expected {len(header)} values ({', '.join(header)}), found {row}")
    if len(rows) != count:
        raise UserError(f"{path} has {len(rows)} rows but the folder has {count} images; give one row per image")


def _in_order(path: Path, rows: list[list[str]], column: int, files: list[str]) -> list[list[str]]:
    named = {row[column].strip(): row for row in rows}
    missing = [file for file in files if file not in named]
    if missing:
        raise UserError(f"{path} has no row for the image {missing[0]}")
    return [named[file] for file in files]


def _parsed(cells: list[str]) -> NDArray:
    """Numbers where every cell is one, else words."""
    try:
        numbers = np.array([float(cell) for cell in cells])
    except ValueError:
        return np.array([cell.strip() for cell in cells])
    return numbers if np.isfinite(numbers).all() else np.array(cells)


def columns_of_npz(path: Path, count: int) -> Columns:
    """The columns of the arrays `factors` and `factor_names` of an .npz file; nothing without `factors`."""
    with np.load(path, allow_pickle=False) as file:
        if "factors" not in file:
            return {}
        try:
            factors = file["factors"]
            names = file["factor_names"].tolist() if "factor_names" in file else None
        except ValueError as error:
            raise UserError(f"the factors in {path} are Python objects; save them as numbers or strings") from error
    factors = factors.reshape(len(factors), -1) if factors.ndim == 1 else factors
    if factors.ndim != 2 or len(factors) != count:
        raise UserError(f"'factors' in {path} has the shape {factors.shape}; save it as ({count} images, factors)")
    if factors.dtype.kind == "f" and not np.isfinite(factors).all():
        raise UserError(f"'factors' in {path} has values that are not finite")
    names = names or [f"factor {number}" for number in range(factors.shape[1])]
    if len(set(names)) != factors.shape[1]:
        raise UserError(
            f"'factor_names' in {path} must be {factors.shape[1]} distinct names, one per column of 'factors'"
        )
    return {str(name): factors[:, place] for place, name in enumerate(names)}
