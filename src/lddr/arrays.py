"""Arrays of any framework as NumPy arrays."""

from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.errors import UserError
from lddr.files import reason_of


def as_array(given: ArrayLike) -> NDArray:
    """Return lists, tables and tensors of any framework, on any device, with or without gradients, as an array.

    They are read through `__array__` or DLPack's `__dlpack__`; no framework is imported. Number types that NumPy lacks,
    such as bfloat16, are converted without loss.
    """
    try:
        array = _read(given)
        is_registered = array.dtype.kind == "V" and array.dtype.names is None  # by JAX or TensorFlow: bfloat16 …
        return array.astype(np.float64) if is_registered else array
    except UserError:
        raise
    except Exception as error:  # of any library
        kind = f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")
        cure = "give a table of numbers, such as float32 or whole numbers, in the memory of the CPU"
        raise UserError(f"this {kind} cannot be read as an array ({reason_of(error)}); {cure}") from error


def _read(given: Any) -> NDArray:
    if isinstance(given, np.ndarray):
        return given
    if isinstance(given, list | tuple) and any(hasattr(one, "__dlpack__") for one in given):  # tensors in a list
        return np.stack([as_array(one) for one in given])
    if hasattr(given, "detach"):  # torch
        tensor = given.detach().cpu()
        return np.asarray(tensor.float() if "bfloat16" in str(tensor.dtype) else tensor)
    if hasattr(given, "__array__") or not hasattr(given, "__dlpack__"):
        with suppress(TypeError) if hasattr(given, "__dlpack__") else nullcontext():
            return np.asarray(given)  # CuPy refuses: its arrays are on a GPU
    try:
        return np.from_dlpack(given, device="cpu")  # copied to the CPU, if the framework can
    except (TypeError, BufferError, RuntimeError):  # a NumPy or framework without that option
        return np.asarray(given.get()) if hasattr(given, "get") else np.from_dlpack(given)
