"""Add finished, scored runs to docs/presets.csv: the settings that were tried for the quick presets, MIG and minutes.

python tools/presets.py RUNS…   rows that are there already stay
"""

import csv
import sys
import time
from pathlib import Path
from typing import Any

import torch

from lddr.bench import next_step
from lddr.config import Config, configure
from lddr.hardware import keep_freed_memory
from lddr.runs.index import Run, finished_runs, read_run
from lddr.timing import interleaved

TABLE = Path(__file__).parents[1] / "docs" / "presets.csv"
COLUMNS = ("dataset", "model", "changed", "seed", "steps", "minutes", "mig", "modularity")
STEPS = 150  # that are timed
Row = dict[str, str]


def gather(folders: list[Path]) -> None:
    """Add finished, scored runs to the table; a run that is there already keeps its row."""
    torch.set_num_threads(1)
    keep_freed_memory()
    rows = {_key(row): row for row in read()}
    seconds = {_settings(row): 60 * float(row["minutes"]) / int(row["steps"]) for row in rows.values()}  # timed before
    for run in map(read_run, finished_runs(folders)):
        row = _row(run)
        if "mig" in run.scores and _key(row) not in rows:
            settings = _settings(row)
            seconds[settings] = seconds.get(settings) or step_time(run.files.config)
            rows[_key(row)] = row | {"minutes": f"{seconds[settings] * int(row['steps']) / 60:.2f}"}
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))


def read() -> list[Row]:
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _settings(row: Row) -> tuple[str, ...]:
    return row["dataset"], row["model"], row["changed"]


def _key(row: Row) -> tuple[str, ...]:
    return *_settings(row), row["steps"].zfill(7), row["seed"]


def _row(run: Run) -> Row:
    """Return the row of a run, without the minutes; "changed" are the settings that the quick preset does not have."""
    config = run.files.config
    usual = flat(configure(config.model, config.dataset, "quick", seed=config.training.seed))
    changed = {name: value for name, value in flat(config).items() if value != usual.get(name) and name != "steps"}
    numbers = {name: f"{run.scores[name]:.4f}" for name in ("mig", "modularity") if name in run.scores}
    words = ", ".join(f"{name} {value}" for name, value in changed.items())
    settings = {"dataset": config.dataset, "model": config.model, "changed": words}
    return settings | {"seed": str(config.training.seed), "steps": str(config.training.steps)} | numbers


def flat(config: Config) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in config.as_dict().items():
        found |= value if isinstance(value, dict) else {name: value}
    return found


def step_time(config: Config) -> float:
    """Return the seconds of processor time that a step takes on one core."""
    return interleaved({"step": next_step(config)}, STEPS, time.process_time)["step"]


if __name__ == "__main__":
    gather([Path(name) for name in sys.argv[1:]])
