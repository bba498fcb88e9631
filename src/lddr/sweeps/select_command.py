"""What `lddr select` does: choose a model and say why, or report how well each way to choose would have done."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import track
from rich.table import Table

from lddr.errors import UserError
from lddr.files import write_json
from lddr.runs.filters import check_columns, matching
from lddr.runs.index import Run, gather
from lddr.runs.tables import shown
from lddr.sweeps.encoding import SAMPLES, Encoder
from lddr.sweeps.selection import Selection, require_comparable, select
from lddr.sweeps.selection_report import Choice, Correlation, Group, report
from lddr.sweeps.selectors import find_selector, selectors

SHOWN = 10  # of the ranking
NAME_WIDTH, CELL_WIDTH = 16, 14  # of the report's tables


def select_models(
    roots: Sequence[Path],
    by: str = "gap",
    where: Sequence[str] = (),
    out: Path | None = None,
    samples: int = SAMPLES,
    quiet: bool = False,
) -> None:
    """Rank the runs, write the choice with its evidence, and print the chosen folder on stdout."""
    selector = find_selector(by)
    runs = matching(gather(roots), where)
    encoder = Encoder(samples)
    if selector.needs == "images":
        finished = [run for run in runs if run.state == "finished"]
        require_comparable(finished, selector)
        _encode(finished, encoder, quiet)
    selection = select(runs, by, encoder)
    path = out or _beside(roots, "selection.json")
    write_json(path, selection.as_dict())
    if not quiet:
        _print_selection(selection, path)
    print(selection.chosen)


def report_selection(
    roots: Sequence[Path],
    by: Sequence[str] = (),
    metrics: Sequence[str] = (),
    where: Sequence[str] = (),
    out: Path | None = None,
    as_json: bool = False,
    samples: int = SAMPLES,
    quiet: bool = False,
) -> None:
    """Measure every selector against every metric, write it all, and print it as tables or as JSON."""
    names = list(by) or list(selectors)
    needs_images = any(find_selector(name).needs == "images" for name in names)
    runs = [run for run in matching(gather(roots), where) if run.state == "finished"]
    columns = _metrics(runs, metrics)
    encoder = Encoder(samples)
    if needs_images:
        _encode(runs, encoder, quiet)
    groups = report(runs, names, columns, encoder)
    path = out or _beside(roots, "selection-report.json")
    content = [group.as_dict() for group in groups]
    write_json(path, content)
    if as_json:
        print(json.dumps(content, indent=1))
    elif not quiet:
        for group in groups:
            _print_group(group, columns, Console())
    _say(f"written: {path}")


def _metrics(runs: Sequence[Run], given: Sequence[str]) -> list[str]:
    """The scores to compare with: those that need ground truth, as far as some run has them."""
    if not runs:
        raise UserError("there are no finished runs to report on; give the folder that holds them")
    if given:
        check_columns(given, runs)
        return list(given)
    from lddr.metrics.metric import metrics

    found = [name for name in metrics if metrics[name].labels and any(name in run.scores for run in runs)]
    if not found:
        raise UserError("no run has ground-truth scores to compare with; get them with: lddr evaluate RUN")
    return found


def _encode(runs: Sequence[Run], encoder: Encoder, quiet: bool) -> None:
    """Show the images to every model, with progress; the encoder remembers."""
    for run in track(runs, "encoding", console=Console(stderr=True), transient=True, disable=quiet):
        encoder(run)


def _beside(roots: Sequence[Path], name: str) -> Path:
    return roots[0] / name if len(roots) == 1 else Path(name)


def _print_selection(selection: Selection, path: Path) -> None:
    """The head of the ranking, who was left out, and where it is written; on stderr, stdout is for the choice."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("rank", selection.selector, "run"):
        table.add_column(heading, overflow="fold", justify="left" if heading == "run" else "right")
    for place in selection.ranking[:SHOWN]:
        table.add_row(str(place.rank), shown(place.value), escape(Path(place.run).name))
    Console(stderr=True).print(table)
    _say(f"{selection.summary} ({selection.better} is better), {len(selection.ranking)} runs ranked, written: {path}")
    tied = sum(place.rank == 1 for place in selection.ranking)
    if tied > 1:
        _say(f"{tied} runs share the first place; the first by name was chosen")
    for reason, folders in selection.left_out.items():
        _say(f"{len(folders)} left out: {Path(folders[0]).name} {reason}")


def _print_group(group: Group, metrics: Sequence[str], console: Console) -> None:
    """Two tables, in parts that fit: rank correlations with their intervals, and the scores of the chosen models."""
    console.print(f"\n[bold]{escape(group.title)}[/bold], {group.runs} runs")
    at_once = max(1, (console.width - NAME_WIDTH) // CELL_WIDTH)
    for first in range(0, len(metrics), at_once):
        part = metrics[first : first + at_once]
        console.print(_correlation_table(group, part))
        console.print(_choice_table(group, part))
    for name, reasons in group.left_out.items():
        for reason, count in reasons.items():
            console.print(f"{name}: {count} of {group.runs} left out, the first {escape(reason)}", style="dim")


def _correlation_table(group: Group, metrics: Sequence[str]) -> Table:
    entries = {(entry.selector, entry.metric): entry for entry in group.correlations}
    table = _table("rank correlation", metrics)
    for name in dict.fromkeys(entry.selector for entry in group.correlations):
        table.add_row(name, *(_interval(entries[name, metric]) for metric in metrics))
    return table


def _choice_table(group: Group, metrics: Sequence[str]) -> Table:
    entries = {(entry.selector, entry.metric): entry for entry in group.choices}
    table = _table("score of choice", metrics)
    for name in dict.fromkeys(entry.selector for entry in group.choices):
        table.add_row(name, *(_score(entries.get((name, metric)), "selected") for metric in metrics))
    fullest = {entry.metric: entry for entry in sorted(group.choices, key=lambda entry: entry.runs)}
    for name in ("random", "median", "best"):
        table.add_row(f"({name})", *(_score(fullest.get(metric), name) for metric in metrics), style="dim")
    return table


def _table(title: str, metrics: Sequence[str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column(title, min_width=NAME_WIDTH - 2)
    for metric in metrics:
        table.add_column(metric, justify="right", overflow="fold")
    return table


def _interval(entry: Correlation) -> str:
    if entry.spearman is None:
        return "undefined"
    return f"{entry.spearman:+.2f}\n{entry.low:+.2f}…{entry.high:+.2f}"


def _score(entry: Choice | None, name: str) -> str:
    return "" if entry is None else f"{getattr(entry, name):.3f}"


def _say(sentence: str) -> None:
    print(f"lddr: {sentence}", file=sys.stderr)
