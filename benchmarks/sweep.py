"""The same runs in a plain loop and through the engine with one and two workers, in turns."""

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from rich.console import Console
from rich.progress import track

from lddr.config import Config, configure
from lddr.runs.run import Machine, run
from lddr.sweeps.cluster import SweepOptions, connected, run_study
from lddr.sweeps.study import Study
from lddr.timing import show

RUNS = 2  # in each turn
Turn = dict[str, float]  # seconds per run of each side, on the clock and of the processor


def run_bench(out: Path | None, steps: int = 1000, repeats: int = 5) -> None:
    """Measure, print the table and write it."""
    with TemporaryDirectory() as folder, connected(SweepOptions()):
        sides = prepared(Path(folder), steps)
        turns = [_turn(sides) for _ in track(range(repeats + 1), "measuring", console=Console(stderr=True))]
    show([summary(turns[1:], steps)], f"D-VAE on circles, {RUNS} runs a turn, median of {repeats} turns", out)


def prepared(folder: Path, steps: int) -> dict[str, Callable[[], object]]:
    """Each side trains runs of its own, never the same twice."""
    configs = (configure("dvae", "circles", "quick", steps=steps, seed=seed) for seed in count())

    def direct() -> None:
        machine = Machine("cpu", threads=1, quiet=True)
        for config in _some(configs):
            run(config, folder, machine)

    def engine(workers: int) -> None:
        outcome = run_study(Study("bench", _some(configs), ()), folder, SweepOptions(workers=workers, quiet=True))
        if outcome.trained < RUNS:
            raise RuntimeError(f"the benchmark's runs did not all finish: {outcome}")

    return {"direct": direct, "1 worker": lambda: engine(1), "2 workers": lambda: engine(2)}


def _some(configs: Iterator[Config]) -> tuple[Config, ...]:
    return tuple(next(configs) for _ in range(RUNS))


def _turn(sides: dict[str, Callable[[], object]]) -> Turn:
    turn: Turn = {}
    for name, side in sides.items():
        clock, processor = time.perf_counter(), _processor_seconds(with_ray=name != "direct")
        side()
        turn[name] = (time.perf_counter() - clock) / RUNS
        turn[f"{name}, processor"] = (_processor_seconds(with_ray=name != "direct") - processor) / RUNS
    return turn


def _processor_seconds(with_ray: bool) -> float:
    """What this process and, for the engine, all of Ray's have used: a plain loop does without those."""
    this = psutil.Process()
    times = [process.cpu_times() for process in [this, *(this.children(recursive=True) if with_ray else [])]]
    return sum(each.user + each.system for each in times)


def summary(turns: list[Turn], steps: int) -> dict[str, Any]:
    """Runs per hour, and medians of what is compared within a turn."""

    def ratio(one: str, other: str) -> float:
        return median(turn[one] / turn[other] for turn in turns)

    sides = ("direct", "1 worker", "2 workers")
    return {
        "run": f"{steps} steps",
        **{f"{side}, runs/h": 3600 / median(turn[side] for turn in turns) for side in sides},
        "2 workers, times": ratio("1 worker", "2 workers"),
        "overhead, %": 100 * ratio("1 worker", "direct") - 100,
        "of the processor, %": 100 * ratio("1 worker, processor", "direct, processor") - 100,
    }
