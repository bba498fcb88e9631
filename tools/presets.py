"""What the quick presets were chosen by: every setting tried, MIG against the minutes it takes.

python tools/presets.py runs ...   gather finished runs into docs/presets.csv (those there already stay), then draw
python tools/presets.py            draw docs/images/presets.png from it
"""

import csv
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import torch

from lddr.bench import next_step
from lddr.config import Config, configure
from lddr.hardware import keep_freed_memory
from lddr.report.style import HIGHLIGHT, INK, Axes, colour, house_style, model_title, paneled, rendered
from lddr.runs.index import Run, finished_runs, read_run
from lddr.timing import interleaved

DOCS = Path(__file__).parent.parent / "docs"
TABLE, PICTURE = DOCS / "presets.csv", DOCS / "images" / "presets.png"
COLUMNS = ("dataset", "model", "changed", "seed", "steps", "minutes", "mig", "modularity")
STEPS = 150  # that are timed
OFFSET: Any = {"textcoords": "offset points"}
Row = dict[str, str]


def gather(folders: list[Path]) -> None:
    """Add finished, scored runs to the table; a run that is there already keeps its line."""
    torch.set_num_threads(1)
    keep_freed_memory()
    rows = {_key(row): row for row in read()}
    seconds = {_kind(row): 60 * float(row["minutes"]) / int(row["steps"]) for row in rows.values()}  # timed before
    for run in map(read_run, finished_runs(folders)):
        row = _row(run)
        if "mig" in run.scores and _key(row) not in rows:
            kind = _kind(row)
            seconds[kind] = seconds.get(kind) or step_time(run.files.config)
            rows[_key(row)] = row | {"minutes": f"{seconds[kind] * int(row['steps']) / 60:.2f}"}
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[key] for key in sorted(rows))


def read() -> list[Row]:
    if not TABLE.exists():
        return []
    with TABLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _kind(row: Row) -> tuple[str, ...]:
    return row["dataset"], row["model"], row["changed"]


def _key(row: Row) -> tuple[str, ...]:
    return *_kind(row), row["steps"].zfill(7), row["seed"]


def _row(run: Run) -> Row:
    """Its line, without the minutes; "changed" is what differs from the quick preset of today, but for the steps."""
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
    """Seconds of one core that a step takes, by the processor's own clock."""
    return interleaved({"step": next_step(config)}, STEPS, time.process_time)["step"]


@house_style()
def draw() -> bytes:
    """A panel for each dataset: the median of every setting over its minutes, a line through its seeds."""
    groups: dict[str, dict[tuple[str, str, int], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in read():
        groups[row["dataset"]][row["model"], row["changed"], int(row["steps"])].append(row)
    figure, panels = paneled(len(groups), len(groups), (4.2, 3.6))
    for axes, (dataset, settings) in zip(panels, sorted(groups.items()), strict=True):
        draw_settings(axes, settings)
        axes.set(title=dataset, xlabel="minutes of one core")
    panels[0].set_ylabel("MIG")
    return rendered(figure)


def draw_settings(axes: Axes, settings: dict[tuple[str, str, int], list[Row]]) -> None:
    named: set[str] = set()
    for (model, changed, steps), rows in settings.items():
        scores, minutes = [float(row["mig"]) for row in rows], median(float(row["minutes"]) for row in rows)
        is_chosen = not changed and steps == configure(model, rows[0]["dataset"], "quick").training.steps
        label = None if model in named else model_title(model)
        named.add(model)
        axes.plot([minutes] * len(scores), scores, "-", color=colour(model), linewidth=0.8)
        axes.plot([minutes] * len(scores), scores, "_", color=colour(model), markersize=5)
        axes.plot(minutes, median(scores), "o", color=colour(model), markersize=5, label=label)
        if is_chosen:
            axes.plot(minutes, median(scores), "o", color=HIGHLIGHT, markersize=10, fillstyle="none")
        words = changed.replace("_", " ").replace(".0", "") or (f"{steps} steps" if not is_chosen else "")
        told = f"  {len(scores)}{' · ' if words else ''}{words}"
        place = minutes, median(scores) if is_chosen else max(scores)
        axes.annotate(told, place, fontsize=6, color=INK, va="center", xytext=(4, 0), **OFFSET)
    latest = max(float(row["minutes"]) for rows in settings.values() for row in rows)
    axes.set(xlim=(0, 1.5 * latest), ylim=(0, None))
    axes.legend(loc="upper left")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        gather([Path(name) for name in sys.argv[1:]])
    PICTURE.write_bytes(draw())
