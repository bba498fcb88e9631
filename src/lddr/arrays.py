"""Arrays of any framework as those of numpy: the one place where they come in."""

from contextlib import nullcontext, suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.errors import UserError
from lddr.files import reason_of


def as_array(given: ArrayLike) -> NDArray:
    """What was given as an array: lists, tables, tensors of any framework, on any device, with or without gradients.

    They are asked by what they can do, `__array__` or DLPack's `__dlpack__`; no framework is imported. Numbers that
    numpy does not have, bfloat16 say, become some it has, which lose nothing.
    """
    try:
        return _in_known_numbers(_read(given))
    except UserError:
        raise
    except Exception as error:  # of foreign libraries, without end
        kind = f"{type(given).__module__}.{type(given).__qualname__}".removeprefix("builtins.")
        cure = "give a table of numbers, such as float32 or whole numbers, in the memory of the CPU"
        raise UserError(f"this {kind} cannot be read as an array ({reason_of(error)}); {cure}") from error


def _read(given: Any) -> NDArray:
    if isinstance(given, np.ndarray):
        return given
    if isinstance(given, list | tuple) and any(hasattr(one, "__dlpack__") for one in given):  # tensors in a list
        return np.stack([as_array(one) for one in given])
    if hasattr(given, "detach"):
        return _off_its_graph(given)
    if hasattr(given, "__array__") or not hasattr(given, "__dlpack__"):
        with suppress(TypeError) if hasattr(given, "__dlpack__") else nullcontext():
            return np.asarray(given)  # CuPy's refuse: their numbers are on a GPU
    return _by_dlpack(given)


def _off_its_graph(tensor: Any) -> NDArray:
    """Of torch and its like; bfloat16, which numpy has not, in 32 bits."""
    plain = tensor.detach().cpu()
    return np.asarray(plain.float() if "bfloat16" in str(plain.dtype) else plain)


def _by_dlpack(given: Any) -> NDArray:
    try:
        return np.from_dlpack(given, device="cpu")  # copied from where it is, by frameworks that can
    except (TypeError, BufferError, RuntimeError):  # numpy or a framework from before one could ask for that
        return np.asarray(given.get()) if hasattr(given, "get") else np.from_dlpack(given)


def _in_known_numbers(array: NDArray) -> NDArray:
    """Numbers that a framework taught numpy, such as bfloat16 of JAX and TensorFlow, in 64 bits."""
    is_taught = array.dtype.kind == "V" and array.dtype.names is None
    return array.astype(np.float64) if is_taught else array
