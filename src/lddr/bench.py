"""How fast is this machine? Training steps of several models; the benchmarks of developers are in benchmarks/."""

from collections.abc import Callable, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch

from lddr.config import Config, configure
from lddr.console import watched
from lddr.data.load import load_dataset, warmed
from lddr.errors import UserError
from lddr.hardware import chosen_device, has_fast_bf16, keep_freed_memory
from lddr.timing import fair_clock, interleaved, show
from lddr.training.accelerator import batches_for, capture, trainer_on
from lddr.training.trainer import LOG_EVERY, LossAverages

MODELS, DATASETS = ("dvae", "factor-dvae"), ("dsprites", "rooms")  # one channel and three
REPEATS = 7
PAPER_STEPS = 300_000


def run_train(steps: int | None, threads: int, out: Path | None, device: str = "cpu", compiled: bool = False) -> None:
    """Time training steps of the paper's networks, print the table and write it."""
    torch.set_num_threads(threads)
    device = str(chosen_device(device))
    if device == "cpu":
        keep_freed_memory()
    steps = steps or (5 if device == "cpu" else 2 * LOG_EVERY)  # whole lines of the log, which wait for the device
    precisions = ["fp32", "bf16"] if has_fast_bf16(device) else ["fp32"]  # others would take hours
    cases = [(model, dataset) for model in MODELS for dataset in DATASETS]
    rows = []
    for model, dataset in watched(cases, "measuring"):
        sides = {
            f"{name}{' compiled' * is_compiled}": next_step(
                configure(model, dataset, precision=name), device, is_compiled, steps
            )
            for name in precisions
            for is_compiled in (False, True)[: 1 + compiled]
        }
        seconds = interleaved(sides, REPEATS)
        times = {f"{name}, ms": 1000 * value for name, value in seconds.items()}
        hours = {"hours for the paper's 300,000 steps": PAPER_STEPS * min(seconds.values()) / 3600}
        rows.append({"model": model, "dataset": dataset, **times, **hours})
    name = torch.cuda.get_device_name() if device.startswith("cuda") else device
    show(rows, f"one training step, batch 64, 64x64, {name}, {threads} thread(s)", out)
    if "bf16" not in precisions:
        print("bf16 was left out: this processor has no instructions for it")


def next_step(config: Config, device: str = "cpu", compiled: bool = False, times: int = 1) -> Callable[[], int]:
    """Return a function that takes the next training steps, as the loop does except for checkpoints, and counts them.

    It takes `times` steps whenever it is called, and returns how many these are.
    """
    dataset = warmed(load_dataset(*config.images))
    trainer = trainer_on(torch.device(device), config, dataset)
    if compiled:
        capture(trainer)
    batches, averages, steps = batches_for(trainer, dataset), LossAverages(0, None), count()

    def take_steps() -> int:
        for step in islice(steps, times):
            averages.add(trainer.step(batches.batch(step)))
            if trainer.checks_every_step or (step + 1) % LOG_EVERY == 0:
                averages.read()
        return times

    return take_steps


def run_models(models: Sequence[str], dataset: str, preset: str, threads: int, out: Path | None) -> None:
    """Time training steps of several models, print the table and write it."""
    if not models:
        raise UserError("no model is named; give some with commas between them, such as dvae,tripod")
    torch.set_num_threads(threads)
    keep_freed_memory()
    title = f"one training step, batch 64, {dataset}, {preset}, {threads} thread(s)"
    show(measure_models(models, dataset, preset), title, out)


def measure_models(
    models: Sequence[str], dataset: str, preset: str, repeats: int = REPEATS, **settings: Any
) -> list[dict[str, Any]]:
    """Return milliseconds per step at a batch size of 64, and how many times those of the first model."""
    sides = {model: next_step(configure(model, dataset, preset, batch_size=64, **settings)) for model in models}
    seconds = interleaved(sides, repeats, fair_clock(torch.get_num_threads()))
    return [
        {"model": model, "ms": 1000 * seconds[model], f"times {models[0]}": seconds[model] / seconds[models[0]]}
        for model in models
    ]
