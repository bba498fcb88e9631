"""Where and how a run is carried out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Machine:
    """The device and what happens beside training; it does not change what comes of a run."""

    device: str = "auto"
    threads: int | None = None
    compile: bool = False
    quiet: bool = False
    tensorboard: bool = False
    checkpoint_seconds: float = 30.0  # between two checkpoints
