"""What `lddr evaluate`, `lddr score` and `lddr metrics` do."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lddr.errors import UserError
from lddr.files import write_json
from lddr.metrics.evaluate import Entries, evaluate_run
from lddr.metrics.metric import metrics
from lddr.runs.commands import list_runs_command
from lddr.runs.folder import RunFolder
from lddr.runs.index import list_runs

SIDE_BY_SIDE = 3  # runs that fit beside each other; more are listed below each other
NEEDS = {"codes": "codes and factors", "interventions": "the dataset", "model": "the model"}


def list_metrics() -> None:
    """Print a table of all metrics."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("needs", no_wrap=True)
    table.add_column("what it is, and its settings")
    for name in metrics:
        kind = metrics[name]
        needs = NEEDS[kind.needs] if kind.labels or kind.needs == "model" else "codes"
        settings = ", ".join(f"{setting.name} {setting.default}" for setting in fields(kind))
        table.add_row(name, needs, f"{(kind.__doc__ or '').splitlines()[0]}\n[dim]{settings}[/]")
    Console().print(table)


def evaluate_runs(
    folders: Iterable[Path],
    names: str | None,
    changes: Iterable[str],
    force: bool,
    seed: int,
    jobs: int,
    bins: int | None,
) -> None:
    """Score runs, keep the scores in their folders, and print them side by side."""
    runs = finished_runs(folders)
    wanted, settings = split(names), parsed(changes)
    found = {}
    for number, folder in enumerate(runs, 1):
        print(f"{folder.name} ({number} of {len(runs)})", file=sys.stderr)
        scores = evaluate_run(folder, wanted, settings=settings, seed=seed, jobs=jobs, bins=bins, force=force)
        found[folder.name] = {name: scores["metrics"][name] for name in wanted or metrics}
    if len(found) <= SIDE_BY_SIDE:
        show(found)
    else:
        list_runs_command(runs, columns=["run", "dataset", "model", "seed", *(wanted or metrics)])
    print("kept in scores.json of each run")


def finished_runs(folders: Iterable[Path]) -> list[Path]:
    """Runs, and all finished runs below folders that hold runs."""
    found: dict[Path, None] = {}
    for folder in folders:
        if (run := RunFolder(folder)).is_run:
            _ = run.scores  # says what is wrong with it
            found[folder] = None
        else:
            found |= {run.folder: None for run in list_runs(folder) if run.state == "finished"}
    if not found:
        raise UserError("there is no finished run in these folders; train one first with: lddr train")
    return list(found)


def score_file(
    path: Path, names: str | None, changes: Iterable[str], seed: int, jobs: int, bins: int | None, out: Path | None
) -> None:
    """Score the codes of a file and print the scores."""
    from lddr.metrics.score import read_codes, score_codes

    codes, factors = read_codes(path)
    entries = score_codes(codes, factors, split(names), settings=parsed(changes), seed=seed, jobs=jobs, bins=bins)
    show({path.name: entries})
    if out is not None:
        write_json(out, entries)
        print(f"kept in {out}")


def show(found: Mapping[str, Entries]) -> None:
    """A row for each metric and a column for each run; below, why some have no score."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("metric", no_wrap=True)
    for name in found:
        table.add_column(name, justify="right", overflow="fold")
    reasons: dict[str, None] = {}
    for metric in dict.fromkeys(name for entries in found.values() for name in entries):
        entries = [by_metric.get(metric, {"score": None}) for by_metric in found.values()]
        table.add_row(metric, *(_shown(entry["score"]) for entry in entries))
        reasons |= {f"{metric}: {entry['reason']}": None for entry in entries if "reason" in entry}
        left_out = [entry["factors_left_out"] for entry in entries if "factors_left_out" in entry]
        reasons |= {f"left out, {name} is {why}": None for which in left_out for name, why in which.items()}
    console = Console()
    console.print(table)
    for reason in reasons:
        console.print(reason, highlight=False, soft_wrap=True)


def _shown(score: float | None) -> str:
    return "-" if score is None else f"{score:.4f}"


def split(names: str | None) -> list[str] | None:
    """Names between commas, None for all."""
    if names is None or names.strip() == "all":
        return None
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise UserError(f"no metric is named; choose some of: {', '.join(metrics)}")
    for name in wanted:
        metrics[name]  # says what is there when it is not
    return wanted


def parsed(changes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """METRIC.SETTING=VALUE as nested dictionaries; the value in the type of the setting's default."""
    settings: dict[str, dict[str, Any]] = {}
    for change in changes:
        where, equals, value = change.partition("=")
        metric, dot, setting = where.partition(".")
        if not equals or not dot:
            raise UserError(f"expected METRIC.SETTING=VALUE, such as dci.estimator=fast, not {change!r}")
        settings.setdefault(metric, {})[setting] = _value(metric, setting, value)
    return settings


def _value(metric: str, setting: str, value: str) -> Any:
    known: dict[str, Any] = {entry.name: entry.default for entry in fields(metrics[metric])}
    if setting not in known:
        raise UserError(f"{metric} has no setting {setting!r}; it has: {', '.join(known) or 'none'}")
    kind = type(known[setting])
    try:
        return tuple(int(part) for part in value.split(",")) if kind is tuple else kind(value)
    except ValueError:
        raise UserError(f"{metric}.{setting} must be a {kind.__name__}, not {value!r}") from None
