"""The factors of your own images: named columns of numbers or words, which an .npz file may have."""

from pathlib import Path

import numpy as np

from lddr.data.factors import Factor, FactorTable
from lddr.data.factors_csv import Columns
from lddr.errors import UserError


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
