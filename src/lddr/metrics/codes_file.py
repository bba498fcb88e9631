"""Codes in an .npz file that any framework can write: whatever its bytes are, arrays come out or a sentence."""

from pathlib import Path

from numpy.typing import NDArray

from lddr.data.columns import columns_of_arrays, factor_table
from lddr.data.factors import FactorTable
from lddr.data.npz_arrays import WORDS, arrays_in, names_in
from lddr.errors import UserError
from lddr.foreign import in_one_line, named

HOW = "save it with numpy.savez(path, codes=codes, factors=factors)"


def read_codes(path: Path) -> tuple[NDArray, FactorTable]:
    """The arrays `codes` (samples, latents), `factors` (samples, factors) and `factor_names` of an .npz file."""
    found = arrays_in(path, ("codes", "factors", "factor_names"), HOW)
    with named(path):
        codes = _codes(found.get("codes"), names_in(path, HOW))
        return codes, factor_table(columns_of_arrays(found, len(codes), "samples"), len(codes))


def _codes(codes: NDArray | None, names: list[str]) -> NDArray:
    if codes is None:
        raise UserError(f"there is no array 'codes', only: {in_one_line(', '.join(names)) or 'nothing'}; {HOW}")
    if codes.ndim != 2 or codes.dtype.kind in WORDS or not codes.size:
        raise UserError(f"'codes' is {codes.dtype} of shape {codes.shape}; save numbers (samples, latents)")
    return codes
