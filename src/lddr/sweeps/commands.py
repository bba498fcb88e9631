"""What `lddr sweep` does."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from lddr.config import Config
from lddr.errors import UserError
from lddr.runs.folder import RunFolder
from lddr.runs.tables import shown
from lddr.sweeps.cluster import Failure, Options, Outcome, sweep
from lddr.sweeps.study import Scale, Study, read_study

Row = dict[str, str]
WIDEST = 1000  # characters of the table: lines that the terminal breaks are better than numbers that are cut


def run_sweep(
    study: str,
    out: Path,
    scale: Scale,
    dataset: str | None,
    only: Sequence[str],
    dry_run: bool,
    options: Options,
) -> None:
    """Carry out a study and print its table; runs that failed are told about on stderr and are exit code 1."""
    chosen = read_study(study, scale, dataset, only)
    if dry_run:
        from lddr.sweeps.estimate import estimate, show_estimate

        show_estimate(estimate(chosen, out))
        return
    if options.address is None:
        _check_that_images_are_here(chosen)
    outcome = sweep(chosen, out, options)
    if outcome.stopped:
        print("lddr: stopped; start the same command again to go on", file=sys.stderr)
        sys.exit(130)
    _print(score_rows(chosen, out), chosen)
    print(_summary(outcome, out), file=sys.stderr)
    if outcome.failures:
        sys.exit(1)


def _check_that_images_are_here(study: Study) -> None:
    """Better one sentence now than one per run."""
    from lddr.sweeps.estimate import why_missing

    for name in sorted({config.dataset for config in study.configs}):
        if why := why_missing(name):
            raise UserError(why)


def _summary(outcome: Outcome, out: Path) -> str:
    """One sentence of counts, then the folder and the error of every failed run."""
    counts = f"{outcome.finished} runs finished, {outcome.there} were there already, {len(outcome.failures)} failed"
    return "\n".join([f"lddr: {counts}; they are in {out}", *map(_told, outcome.failures)])


def _told(failure: Failure) -> str:
    details = RunFolder(failure.folder).error_file
    return f"  {failure.folder}: {failure.error}" + (f" (more in {details})" if details.exists() else "")


def score_rows(study: Study, out: Path) -> list[Row]:
    """A row per point of the grid, with the median over its seeds of every score."""
    points: dict[Config, list[Config]] = {}
    for config in study.configs:
        points.setdefault(replace(config, training=replace(config.training, seed=0)), []).append(config)
    knobs = _varied([_flat(point) for point in points])
    return [_row(point, configs, knobs, study.metrics, out) for point, configs in points.items()]


def _row(point: Config, configs: list[Config], knobs: list[str], metrics: Sequence[str], out: Path) -> Row:
    settings = _flat(point)
    finished = [scores for config in configs if (scores := _scores(out / config.run_name))]
    row = {name: _word(settings.get(name)) for name in knobs} | {"runs": f"{len(finished)}/{len(configs)}"}
    for name in ("elbo", *metrics):
        values = [scores[name] for scores in finished if scores.get(name) is not None]
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
    return ["model"] + [name for name, found in values.items() if len(found) > 1 and name != "model"]


def _flat(config: Config) -> dict[str, Any]:
    """Every setting by its name on the command line."""
    settings = config.as_dict()
    supervision = settings.pop("supervision") or {"loss": None}
    flat = {"supervision": supervision.pop("loss"), **supervision}
    for name, value in settings.items():
        flat |= value if isinstance(value, dict) else {name: value}
    return flat


def _scores(folder: Path) -> dict[str, Any]:
    """The scores of a run by name, nothing when it is not finished."""
    try:
        scores = RunFolder(folder).scores
    except UserError:
        return {}
    return {**scores["training"], **{name: entry["score"] for name, entry in scores.get("metrics", {}).items()}}


def _print(rows: list[Row], study: Study) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False, title=f"{study.name}: median over seeds")
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "model" else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    Console(width=WIDEST).print(table)
