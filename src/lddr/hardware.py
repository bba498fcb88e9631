"""What this machine can do: its devices, and how fast its processor multiplies."""

import ctypes
import time

import torch

from lddr.errors import UserError


def chosen_device(name: str) -> torch.device:
    """The device of that name if it works here; "auto" is CUDA, else MPS, else the CPU."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"the device {name!r} cannot be used here ({reason}); try --device cpu") from error
    return device


def keep_freed_memory() -> None:
    """Let the C library keep memory that was freed, where that can be set (glibc), until the process ends.

    Every step frees and wants the same few large buffers. Given back to the system in between, they cost thousands of
    page faults a step. Since glibc cannot go back to what it did before, commands and workers of lddr, whose processes
    are their own, call this before they train on the CPU; `lddr.train` leaves it to its caller.
    """
    threshold_for_own_mapping, threshold_for_giving_back = -3, -1  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(threshold_for_own_mapping, 1 << 30)
    mallopt(threshold_for_giving_back, 2**31 - 1)


CPU = torch.device("cpu")


def synchronise(device: torch.device) -> None:
    """Wait until a device has done all it was asked; the CPU always has."""
    if device.type in ("cuda", "mps"):
        getattr(torch, device.type).synchronize()


def matmul_peak(dtype: torch.dtype, size: int = 1024, repeats: int = 8, device: torch.device = CPU) -> float:
    """Operations per second of the fastest of some square matmuls."""
    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    times = []
    for _ in range(repeats):
        synchronise(device)
        start = time.perf_counter()
        left @ right
        synchronise(device)
        times.append(time.perf_counter() - start)
    return 2 * size**3 / min(times)


def has_fast_bf16(device: torch.device = CPU) -> bool:
    """Whether a device multiplies faster in bfloat16 than in float32; without instructions for it, it does not."""
    size = 256 if device.type == "cpu" else 4096
    return matmul_peak(torch.bfloat16, size, 3, device) > matmul_peak(torch.float32, size, 3, device)
