"""Codes in an .npz file that any framework can write: whatever its bytes are, arrays come out or a sentence."""

import warnings
import zipfile
from math import prod
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from lddr.data.columns import factor_table
from lddr.data.factors import FactorTable
from lddr.errors import UserError

HOW = "save it with numpy.savez(path, codes=codes, factors=factors)"
LARGEST = 4 * 2**30  # bytes of an array: a damaged header claims more than there is memory
WORDS = "US"  # the kinds of arrays that hold words


def read_codes(path: Path) -> tuple[NDArray, FactorTable]:
    """The arrays `codes` (samples, latents), `factors` (samples, factors) and `factor_names` of an .npz file."""
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(path) as archive:
            warnings.simplefilter("ignore")  # that Python 2 wrote it, say
            found = {name: _array(archive, name) for name in ("codes", "factors", "factor_names")}
        codes = _codes(found["codes"], [name.removesuffix(".npy") for name in archive.namelist()])
        return codes, _factors(len(codes), found["factors"], found["factor_names"])
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    except FileNotFoundError as error:
        raise UserError(f"there is no file {path}") from error
    except Exception as error:  # foreign bytes: what libraries raise on them has no end
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"{path} cannot be read as an .npz file of numbers ({reason[:200]}); {HOW}") from error


def _array(archive: zipfile.ZipFile, name: str) -> NDArray | None:
    """An array of the archive, once its header is known to tell the truth; None where there is none."""
    if f"{name}.npy" not in archive.namelist():
        return None
    member = archive.getinfo(f"{name}.npy")
    with archive.open(member) as file:
        version = npy.read_magic(file)
        shape, _, dtype = {1: npy.read_array_header_1_0, 2: npy.read_array_header_2_0}[version[0]](file)
        size, there = prod(shape) * dtype.itemsize, member.file_size - file.tell()
    if dtype.hasobject or dtype.kind not in "biuf" + WORDS:
        raise UserError(f"'{name}' holds {dtype}; save numbers, or words for factors")
    if size != there or size > LARGEST:
        raise UserError(f"'{name}' claims {size:,} bytes where {there:,} are, and at most {LARGEST:,} are read; {HOW}")
    with archive.open(member) as file:
        return npy.read_array(file, allow_pickle=False)


def _codes(codes: NDArray | None, names: list[str]) -> NDArray:
    if codes is None:
        raise UserError(f"there is no array 'codes', only: {', '.join(names) or 'nothing'}; {HOW}")
    if codes.ndim != 2 or codes.dtype.kind in WORDS or not codes.size:
        raise UserError(f"'codes' is {codes.dtype} of shape {codes.shape}; save numbers (samples, latents)")
    return codes


def _factors(count: int, factors: NDArray | None, names: NDArray | None) -> FactorTable:
    """The factor space of the samples; without factors it has none."""
    if factors is None:
        return factor_table({}, count)
    table = factors.reshape(-1, 1) if factors.ndim == 1 else factors
    if table.ndim != 2 or len(table) != count:
        raise UserError(f"'factors' has the shape {factors.shape}; save it as ({count} samples, factors)")
    if table.dtype.kind == "f" and not np.isfinite(table).all():
        raise UserError("'factors' has values that are not finite")
    columns = np.char.decode(table, "utf-8", "replace") if table.dtype.kind == "S" else table
    return factor_table(dict(zip(_names(names, table.shape[1]), columns.T, strict=True)), count)


def _names(names: NDArray | None, count: int) -> list[str]:
    if names is None:
        return [f"factor {number}" for number in range(count)]
    words = np.char.decode(names, "utf-8", "replace") if names.dtype.kind == "S" else names
    given = [str(name).encode("utf-8", "replace").decode() for name in words.ravel().tolist()]
    if names.ndim != 1 or names.dtype.kind not in WORDS or len(set(given)) != count or len(given) != count:
        raise UserError(f"'factor_names' must be {count} distinct words, one per column of 'factors'")
    return given
