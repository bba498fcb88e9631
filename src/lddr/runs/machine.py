"""Where and how a run is carried out."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from lddr.errors import UserError

LOOK = 0.1  # seconds
OnLog = Callable[[int, Mapping[str, float]], object]  # of a step, and the means since the line before


@dataclass(frozen=True)
class Machine:
    """The device and what happens beside training; it does not change what comes of a run."""

    device: str = "auto"
    threads: int | None = None  # those of the cores that are free
    compile: bool = False
    quiet: bool = False
    tensorboard: bool = False
    checkpoint_seconds: float = 30.0  # between two checkpoints
    track: str | None = None  # the tracker that is told about it: wandb, mlflow or trackio
    on_log: OnLog | None = None  # called with every line of the log

    def __post_init__(self) -> None:
        if self.on_log is not None and not callable(self.on_log):
            raise UserError(f"on_log is called with a step and its values: give a function, not {self.on_log!r}")


def free_cores() -> int:
    """How many cores nobody uses just now, at least one: two processes on one core are slow."""
    import joblib
    import psutil

    loads = psutil.cpu_percent(LOOK, percpu=True)
    process = psutil.Process()
    ours = process.cpu_affinity() if hasattr(process, "cpu_affinity") else range(len(loads))
    busy = round(sum(loads[core] for core in ours) / 100)
    return max(1, min(joblib.cpu_count(), len(ours) - busy))  # a share of a machine may be less than its free cores
