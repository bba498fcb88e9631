"""What a training step costs, by models that are compared: milliseconds of one core, taken in turns."""

import csv
import time
from collections.abc import Iterable

import torch
from table import RESULTS, write

from lddr.bench import next_step
from lddr.config import Config
from lddr.hardware import keep_freed_memory
from lddr.timing import interleaved

FILE = RESULTS / "costs.csv"
DATASET, STEPS = "dsprites", 60


def measure(configs: Iterable[Config]) -> None:
    """Time a step of every model that is compared on the dataset, side by side, unless all are in the table."""
    found = {config.model: config for config in configs if config.dataset == DATASET and config.supervision is None}
    if found.keys() <= read().keys():
        return
    torch.set_num_threads(1)
    keep_freed_memory()
    seconds = interleaved({name: next_step(config) for name, config in found.items()}, STEPS, time.process_time)
    write(FILE, ("model", "ms"), [(name, f"{1000 * value:.1f}") for name, value in sorted(seconds.items())])


def read() -> dict[str, float]:
    """Model → milliseconds of a step."""
    if not FILE.exists():
        return {}
    with FILE.open(newline="", encoding="utf-8") as file:
        return {row["model"]: float(row["ms"]) for row in csv.DictReader(file)}
