"""Where and how training runs: devices, threads, and how fast this machine multiplies."""

import ctypes
import timeit
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lddr.errors import UserError

if TYPE_CHECKING:
    import torch

MOST_THREADS = 1024
OnLog = Callable[[int, Mapping[str, float]], object]  # called with a step and the mean losses since the line before


@dataclass(frozen=True)
class Machine:
    """Where and how a run is trained; none of it changes the results.

    Parameters
    ----------
    device : str
        "cpu", "cuda", "cuda:1", "mps", or "auto" for the best that is available.
    threads : int, optional
        Threads of torch; by default as many as this process has cores.
    compile : bool
        Compile the training step, or capture it as a CUDA graph.
    quiet : bool
        Print no progress.
    tensorboard : bool
        Write event files for TensorBoard into the run folder.
    checkpoint_seconds : float
        Seconds between two checkpoints.
    track : str, optional
        The experiment tracker that receives the run: "wandb", "mlflow" or "trackio".
    on_log : callable, optional
        Called with the step and the logged values at every line of the log.

    Examples
    --------
    >>> Machine("cpu", threads=1, quiet=True).threads
    1
    """

    device: str = "auto"
    threads: int | None = None
    compile: bool = False
    quiet: bool = False
    tensorboard: bool = False
    checkpoint_seconds: float = 30.0
    track: str | None = None
    on_log: OnLog | None = None

    def __post_init__(self) -> None:
        if self.on_log is not None and not callable(self.on_log):
            raise UserError(f"on_log is called with a step and its values: give a function, not {self.on_log!r}")
        if self.threads is not None:
            check_threads(self.threads)


def check_threads(threads: int) -> None:
    """Raise UserError for a number of threads that torch cannot use."""
    if not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise UserError(f"threads must be a whole number from 1 to {MOST_THREADS}, not {threads!r}")


def usable_cores() -> int:
    """Return how many cores this process may use, by its affinity and its share of a container, busy or not.

    The last bits of a result may depend on the number of threads, so that must not depend on what else is running.
    """
    import joblib

    return joblib.cpu_count()


def chosen_device(name: str) -> "torch.device":
    """Return the device of that name if it works here; "auto" is CUDA, else MPS, else the CPU."""
    import torch

    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
        return torch.device(name)
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"the device {name!r} cannot be used here ({reason}); try --device cpu") from error
    return device


def keep_freed_memory() -> None:
    """Let the C library keep freed memory until the process ends, where that can be set (glibc).

    Every step frees and requests the same few large buffers. Returned to the system in between, they cost thousands of
    page faults a step. Since glibc cannot undo it, commands and workers of lddr, whose processes are their own, call
    this before they train on the CPU; `lddr.train` leaves it to its caller.
    """
    with suppress(AttributeError, OSError, TypeError):  # no glibc
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(-3, 1 << 30)  # M_MMAP_THRESHOLD
        mallopt(-1, 2**31 - 1)  # M_TRIM_THRESHOLD


def matmul_peak(dtype: "torch.dtype", size: int = 1024, repeats: int = 8, device: str = "cpu") -> float:
    """Return operations per second of the fastest of some square matmuls."""
    import torch

    left, right = (torch.randn(size, size, device=device).to(dtype) for _ in range(2))
    kind = device.partition(":")[0]
    wait = getattr(torch, kind).synchronize if kind in ("cuda", "mps") else lambda: None

    def multiply() -> None:
        left @ right
        wait()

    multiply()  # waits for the numbers, too
    return 2 * size**3 / min(timeit.repeat(multiply, number=1, repeat=repeats))


def has_fast_bf16(device: str = "cpu") -> bool:
    """Return whether a device multiplies faster in bfloat16 than in float32."""
    import torch

    size = 256 if device == "cpu" else 4096
    return matmul_peak(torch.bfloat16, size, 3, device) > matmul_peak(torch.float32, size, 3, device)
