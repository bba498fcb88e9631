"""What `lddr evaluate`, `lddr score` and `lddr metrics` do."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lddr.errors import UserError
from lddr.files import write_json
from lddr.metrics.evaluate import Entries, evaluate_run, read_scores
from lddr.metrics.metric import metrics

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
    runs = list(folders)
    if not runs:
        raise UserError("name the folders of the runs to score, such as runs/*")
    for folder in runs:
        read_scores(folder)  # say at once what is wrong with any of them
    found = {}
    for folder in runs:
        scores = evaluate_run(
            folder, split(names), settings=parsed(changes), seed=seed, jobs=jobs, bins=bins, force=force
        )
        found[folder.name] = {name: scores["metrics"][name] for name in split(names) or metrics}
    show(found)
    for folder in runs:
        print(f"kept in {folder / 'scores.json'}")


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
