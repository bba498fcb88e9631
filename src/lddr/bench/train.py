"""`lddr bench train`: training steps of ours beside the usual way and beside what the processor could do."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
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
from lddr.data.load import load_dataset
from lddr.hardware import has_fast_bf16, keep_freed_memory, matmul_peak
from lddr.training.feed import Feed
from lddr.training.learner import Learner

MODELS, DATASETS = ("dvae", "factor-dvae"), ("dsprites", "rooms")  # one channel and three
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def run_bench(steps: int, threads: int, out: Path | None) -> None:
    """Measure, print the table and write it."""
    torch.set_num_threads(threads)
    cases = [(model, dataset) for model in MODELS for dataset in DATASETS]
    rows = [
        measure(*case, steps, threads)
        for case in track(cases, "measuring", console=Console(stderr=True), transient=True)
    ]
    show(rows, f"one training step, batch 64, 64x64, {threads} thread(s)", out)
    if not has_fast_bf16():
        print("bf16 was left out: this processor has no instructions for it")


def measure(model: str, dataset: str, steps: int, threads: int) -> dict[str, Any]:
    """Milliseconds per step of each way, how many times faster ours are, the limit, and the peak memory.

    Each way has a process of its own, and they take turns: how ours keeps its memory would help the usual way too.
    """
    precisions = [name for name in PRECISIONS if name == "fp32" or has_fast_bf16()]  # else it would take hours
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(Worker("lddr.bench.train:prepared", name, model, dataset, str(threads)))
            for name in ("usual", *precisions)
        }
        seconds = interleaved({name: partial(side.run, steps) for name, side in sides.items()}, repeats=7)
        memory = {name: side.peak_megabytes() for name, side in sides.items()}
    work = operations(model, dataset)
    return {
        "model": model,
        "dataset": dataset,
        **{f"{name}, ms": 1000 * value for name, value in seconds.items()},
        **{f"{name}, times faster": seconds["usual"] / seconds[name] for name in precisions},
        **{f"limit {name}, ms": 1000 * work / matmul_peak(PRECISIONS[name]) for name in precisions},
        **{f"{name}, peak MB": value for name, value in memory.items()},
    }


def prepared(side: str, model: str, dataset: str, threads: str) -> Callable[[], None]:
    """A training step of the usual way, or of ours in a precision, ready to be taken."""
    torch.set_num_threads(int(threads))
    if side == "usual":
        return PlainTraining(load_dataset(dataset), factor=model == "factor-dvae").step
    keep_freed_memory()
    return _ours(model, dataset, side)


def _ours(model: str, dataset: str, precision: str) -> Callable[[], None]:
    loaded, device = load_dataset(dataset), torch.device("cpu")
    learner = Learner(configure(model, dataset, precision=precision), loaded, device)
    feed = Feed(learner, loaded)
    steps = iter(range(10**9))

    def one_step() -> None:
        learner.step(feed.inputs(next(steps)))

    return one_step


def operations(model: str, dataset: str) -> int:
    """Floating-point operations of a step in matmuls and convolutions, forward and backward."""
    training = PlainTraining(load_dataset(dataset), factor=model == "factor-dvae")
    with FlopCounterMode(display=False) as counter:
        training.step()
    return counter.get_total_flops()
