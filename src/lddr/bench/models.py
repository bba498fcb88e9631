"""`lddr bench models`: training steps of several models in turns, beside the first of them."""

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import torch

from lddr.bench.table import show
from lddr.bench.timing import fair_clock, interleaved
from lddr.config import Config, configure
from lddr.data.load import load_dataset, warmed
from lddr.errors import UserError
from lddr.hardware import keep_freed_memory
from lddr.training.accelerator import batches_for, trainer_on

REPEATS = 7


def run_bench(models: Sequence[str], dataset: str, preset: str, threads: int, out: Path | None) -> None:
    """Measure, print the table and write it."""
    if not models:
        raise UserError("no model is named; give some with commas between them, such as dvae,tripod")
    torch.set_num_threads(threads)
    keep_freed_memory()
    show(
        measure(models, dataset, preset), f"one training step, batch 64, {dataset}, {preset}, {threads} thread(s)", out
    )


def measure(models: Sequence[str], dataset: str, preset: str, repeats: int = REPEATS, **settings: Any) -> list[dict]:
    """Milliseconds per step, and how many times those of the first model."""
    sides = {model: _step(model, dataset, preset, settings) for model in models}
    seconds = interleaved(sides, repeats, fair_clock(torch.get_num_threads()))
    return [
        {"model": model, "ms": 1000 * seconds[model], f"times {models[0]}": seconds[model] / seconds[models[0]]}
        for model in models
    ]


def _step(model: str, dataset: str, preset: str, settings: dict[str, Any]) -> Callable[[], int]:
    """The next step of a training, whatever its published batch is."""
    return next_step(configure(model, dataset, preset, batch_size=64, **settings))


def next_step(config: Config) -> Callable[[], int]:
    """Goes on by a step whenever it is called, and returns 1."""
    loaded = warmed(load_dataset(*config.images))
    trainer = trainer_on(torch.device("cpu"), config, loaded)
    batches, steps = batches_for(trainer, loaded), count()

    def one_step() -> int:
        trainer.step(batches.batch(next(steps)))
        return 1

    return one_step
