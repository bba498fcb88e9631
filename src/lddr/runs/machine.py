"""Where and how a run is carried out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lddr.errors import UserError

MOST_THREADS = 1024
OnLog = Callable[[int, Mapping[str, float]], object]  # of a step, and the means since the line before


@dataclass(frozen=True)
class Machine:
    """The device and what happens beside training; it does not change what comes of a run."""

    device: str = "auto"
    threads: int | None = None  # of torch; None for as many as this process has cores
    compile: bool = False
    quiet: bool = False
    tensorboard: bool = False
    checkpoint_seconds: float = 30.0  # between two checkpoints
    track: str | None = None  # the tracker that is told about it: wandb, mlflow or trackio
    on_log: OnLog | None = None  # called with every line of the log

    def __post_init__(self) -> None:
        if self.on_log is not None and not callable(self.on_log):
            raise UserError(f"on_log is called with a step and its values: give a function, not {self.on_log!r}")
        if self.threads is not None:
            check_threads(self.threads)


def check_threads(threads: int) -> None:
    """Refuse a number of threads that torch cannot use."""
    if not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        raise UserError(f"threads must be a whole number from 1 to {MOST_THREADS}, not {threads!r}")


def usable_cores() -> int:
    """How many cores this process may use, by its affinity and its share of a container; whether they are busy or not.

    The last bits of a result may depend on the number of threads, so that must not depend on what else is running.
    """
    import joblib

    return joblib.cpu_count()
