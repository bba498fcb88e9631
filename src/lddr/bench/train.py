"""`lddr bench train`: training steps of ours beside the usual way and beside what the device could do."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from torch.utils.flop_counter import FlopCounterMode

from lddr.bench.plain import PlainTraining
from lddr.bench.table import show
from lddr.bench.timing import Worker, interleaved
from lddr.config import configure
from lddr.data.load import load_dataset, warmed
from lddr.hardware import chosen_device, has_fast_bf16, keep_freed_memory, matmul_peak
from lddr.training.accelerator import batches_for, capture, trainer_on
from lddr.training.averages import LOG_EVERY, LossAverages

MODELS, DATASETS = ("dvae", "factor-dvae"), ("dsprites", "rooms")  # one channel and three
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
REPEATS = 7


@dataclass(frozen=True)
class Place:
    """Where it is measured: a device, and how many threads of the CPU."""

    device: str
    threads: int

    @property
    def precisions(self) -> list[str]:
        """Those that are fast there: else it would take hours."""
        return [name for name in PRECISIONS if name == "fp32" or has_fast_bf16(torch.device(self.device))]

    def limit(self, precision: str) -> float:
        """Operations per second."""
        size = 1024 if self.device == "cpu" else 4096
        return matmul_peak(PRECISIONS[precision], size, device=torch.device(self.device))

    def __str__(self) -> str:
        name = torch.cuda.get_device_name() if self.device.startswith("cuda") else self.device
        return f"{name}, {self.threads} thread(s)"


def run_bench(steps: int | None, threads: int, out: Path | None, device: str = "cpu", compiled: bool = False) -> None:
    """Measure, print the table and write it."""
    torch.set_num_threads(threads)
    place = Place(str(chosen_device(device)), threads)
    steps = steps or (5 if place.device == "cpu" else 2 * LOG_EVERY)  # whole lines of the log, which cost a wait
    cases = [(model, dataset) for model in MODELS for dataset in DATASETS]
    rows = [
        measure(*case, steps, place, compiled)
        for case in track(cases, "measuring", console=Console(stderr=True), transient=True)
    ]
    show(rows, f"one training step, batch 64, 64x64, {place}", out)
    if "bf16" not in place.precisions:
        print("bf16 was left out: this processor has no instructions for it")


def measure(model: str, dataset: str, steps: int, place: Place, compiled: bool = False) -> dict[str, Any]:
    """Milliseconds per step of each way, how many times faster ours are, the limit, and the peak memory.

    Each way has a process of its own, and they take turns: how ours keeps its memory would help the usual way too.
    """
    precisions = place.precisions
    ours = [*precisions, *(f"{name} compiled" for name in precisions if compiled)]
    arguments = (model, dataset, str(place.threads), place.device)
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(Worker("lddr.bench.train:prepared", name, *arguments))
            for name in ("usual", *ours)
        }
        seconds = interleaved({name: partial(side.run, steps) for name, side in sides.items()}, repeats=REPEATS)
        memory = {name: side.peak_megabytes() for name, side in sides.items()}
    work = operations(model, dataset)
    return {
        "model": model,
        "dataset": dataset,
        **{f"{name}, ms": 1000 * value for name, value in seconds.items()},
        **{f"{name}, times faster": seconds["usual"] / seconds[name] for name in ours},
        **{f"limit {name}, ms": 1000 * work / place.limit(name) for name in precisions},
        **{f"{name}, peak MB": value for name, value in memory.items()},
    }


def prepared(side: str, model: str, dataset: str, threads: str, device: str = "cpu") -> Callable[[], None]:
    """A training step of the usual way, or of ours in a precision, ready to be taken."""
    torch.set_num_threads(int(threads))
    if side == "usual":
        return PlainTraining(warmed(load_dataset(dataset)), model == "factor-dvae", torch.device(device)).step
    if device == "cpu":
        keep_freed_memory()
    precision, _, compiled = side.partition(" ")
    return _ours(model, dataset, precision, torch.device(device), bool(compiled))


def _ours(model: str, dataset: str, precision: str, device: torch.device, compiled: bool) -> Callable[[], None]:
    """A turn of the loop, but for checkpoints."""
    loaded = warmed(load_dataset(dataset))
    trainer = trainer_on(device, configure(model, dataset, precision=precision), loaded)
    if compiled:
        capture(trainer)
    batches, averages, steps = batches_for(trainer, loaded), LossAverages(0, None), count()

    def one_step() -> None:
        step = next(steps)
        averages.add(trainer.step(batches.batch(step)))
        if trainer.checks_every_step or (step + 1) % LOG_EVERY == 0:
            averages.read()

    return one_step


def operations(model: str, dataset: str) -> int:
    """Floating-point operations of a step in matmuls and convolutions, forward and backward."""
    training = PlainTraining(load_dataset(dataset), model == "factor-dvae")
    with FlopCounterMode(display=False) as counter:
        training.step()
    return counter.get_total_flops()
