"""What a training step costs, by models that are compared: milliseconds of one core, taken in turns."""

import csv
import time
from collections.abc import Sequence

import torch
from table import RESULTS, of, write

from lddr.bench.models import next_step
from lddr.bench.timing import interleaved
from lddr.hardware import keep_freed_memory
from lddr.runs.index import Run

FILE = RESULTS / "costs.csv"
DATASET, STEPS = "dsprites", 60


def measure(runs: Sequence[Run]) -> None:
    """Time a run of every model, without labels, that is not in the table yet, beside those that are."""
    torch.set_num_threads(1)
    keep_freed_memory()
    found = {str(run.value("model")): run for run in of(runs, DATASET)}
    if found.keys() <= read().keys():
        return
    seconds = interleaved({name: next_step(run.files.config) for name, run in found.items()}, STEPS, time.process_time)
    write(FILE, ("model", "ms"), [(name, f"{1000 * value:.1f}") for name, value in sorted(seconds.items())])


def read() -> dict[str, float]:
    """Model → milliseconds of a step."""
    if not FILE.exists():
        return {}
    with FILE.open(newline="", encoding="utf-8") as file:
        return {row["model"]: float(row["ms"]) for row in csv.DictReader(file)}
