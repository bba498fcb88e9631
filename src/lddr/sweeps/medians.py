"""The scores of a study: medians over seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from lddr.config import Config
from lddr.runs.index import Run, common_elbo, read_run
from lddr.runs.tables import shown
from lddr.sweeps.study import Study

Row = dict[str, str]


def score_rows(study: Study, out: Path) -> list[Row]:
    """A row per point of the grid, with the median over its seeds of every score."""
    points: dict[Config, list[Config]] = {}
    for config in study.configs:
        points.setdefault(replace(config, training=replace(config.training, seed=0)), []).append(config)
    knobs = _varied([point.flat() for point in points])
    read = {config: read_run(out / config.run_name) for config in study.configs}
    finished = {config: run for config, run in read.items() if run.state == "finished"}
    scores = [common_elbo(finished.values()), *study.metrics]
    return [_row(point, configs, knobs, scores, finished) for point, configs in points.items()]


def _row(
    point: Config, configs: list[Config], knobs: list[str], scores: Sequence[str], finished: Mapping[Config, Run]
) -> Row:
    runs = [finished[config] for config in configs if config in finished]
    settings = point.flat()
    row = {name: _word(settings.get(name)) for name in knobs} | {"runs": f"{len(runs)}/{len(configs)}"}
    for name in scores:
        values = [run.scores[name] for run in runs if name in run.scores]
        row[name] = shown(float(median(values))) if values else "-"
    return row


def _word(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _varied(points: list[dict[str, Any]]) -> list[str]:
    """The model, and every setting with several values; one that only some models have counts where it is."""
    values: dict[str, set[str]] = {}
    for settings in points:
        for name, value in settings.items():
            values.setdefault(name, set()).add(str(value))
    told = ("model", "latent", "objective")  # the model says the others
    return ["model"] + [name for name, found in values.items() if len(found) > 1 and name not in told]
