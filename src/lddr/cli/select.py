"""`lddr select`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from lddr.cli.app import ColumnNames, Conditions, File, Roots, app
from lddr.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from lddr.runs.index import Run
    from lddr.selection.encoding import RunEncoder
    from lddr.selection.ranking import Selection
    from lddr.selection.report import Choice, Correlation, Judgement

SHOWN = 10  # of the ranking
NAME_WIDTH, CELL_WIDTH = 16, 14  # of the report's tables


@app.command
def select(
    folders: Roots = (Path("runs"),),
    by: Annotated[str | None, arg(metavar="SELECTOR", help_behavior_hint="(default: gap; with --report all)")] = None,
    where: Conditions = (),
    report: bool = False,
    metrics: ColumnNames = (),
    samples: int = 1000,
    out: File = None,
    json: bool = False,
    quiet: bool = False,
) -> None:
    """Choose the best model without labels, or, with --report, measure how well the selectors choose.

    Args:
        folders: Folders that hold runs, at any depth.
        by: A selector, or several joined by + for their mean rank; with --report, several separated by commas.
        where: Conditions that must all hold, such as model=dvae or steps=300000.
        report: For runs with ground-truth scores: rank correlation of every selector with every metric, and the
            score of its choice beside the median, the best and a random one.
        metrics: With --report: the scores to compare with; left out, all that the runs have.
        samples: Images every model encodes, for the selectors that look at images.
        out: Where the choice or the report goes, with its evidence; left out, selection.json or selection-report.json
            in the folder.
        json: With --report: print JSON instead of tables.
        quiet: Print nothing but the chosen folder.
    """
    from lddr.files import write_json
    from lddr.runs.filters import matching
    from lddr.runs.index import gather
    from lddr.selection.encoding import RunEncoder

    runs, encoder = matching(gather(folders), where), RunEncoder(samples)
    path = out or _beside(folders, "selection-report.json" if report else "selection.json")
    if report:
        judgements, scores = _judged(runs, by, metrics, encoder, quiet)
        write_json(path, [judgement.as_dict() for judgement in judgements])
        _print_report(judgements, scores, path, json, quiet)
    else:
        selection = _selected(runs, by or "gap", encoder, quiet)
        write_json(path, selection.as_dict())
        if not quiet:
            _print_selection(selection, path)
        print(selection.chosen)


def know_selectors() -> None:
    """Let the help name the selectors that are known by now."""
    from lddr.selection.selector import selectors

    known = "".join(f"    - {name}: {selectors[name].summary}\n" for name in selectors)
    first, _, arguments = (select.__doc__ or "").partition("    Args:\n")
    select.__doc__ = f"{first.splitlines()[0]}\n\n    Selectors:\n{known}\n    Args:\n{arguments}"


def _selected(runs: "Sequence[Run]", by: str, encoder: "RunEncoder", quiet: bool) -> "Selection":
    from lddr.selection.ranking import require_comparable, select
    from lddr.selection.selector import find_selector

    selector = find_selector(by)
    if selector.needs == "images":
        finished = [run for run in runs if run.state == "finished"]
        require_comparable(finished, selector)
        _encode(finished, encoder, quiet)
    return select(runs, by, encoder)


def _judged(
    runs: "Sequence[Run]", by: str | None, given: Sequence[str], encoder: "RunEncoder", quiet: bool
) -> "tuple[list[Judgement], list[str]]":
    """How every selector does on every kind of runs, and by which scores."""
    from lddr.selection.report import judged
    from lddr.selection.selector import find_selector, selectors

    names = by.split(",") if by else list(selectors)
    finished = [run for run in runs if run.state == "finished"]
    needs_images = any(find_selector(name).needs == "images" for name in names)
    scores = _metrics(finished, given)
    if needs_images:
        _encode(finished, encoder, quiet)
    return judged(finished, names, scores, encoder), scores


def _metrics(runs: "Sequence[Run]", given: Sequence[str]) -> list[str]:
    """The scores to compare with: those that need ground truth, as far as some run has them."""
    from lddr.metrics.metric import metrics
    from lddr.runs.filters import check_columns

    if not runs:
        raise UserError("there are no finished runs to report on; give the folder that holds them")
    if given:
        check_columns(given, runs)
        return list(given)
    found = [name for name in metrics if metrics[name].labels and any(name in run.scores for run in runs)]
    if not found:
        raise UserError("no run has ground-truth scores to compare with; get them with: lddr evaluate RUN")
    return found


def _encode(runs: "Sequence[Run]", encoder: "RunEncoder", quiet: bool) -> None:
    """Show the images to every model, with progress; the encoder remembers."""
    from lddr.console import watched

    for run in watched(runs, "encoding", quiet):
        encoder(run)


def _beside(roots: Sequence[Path], name: str) -> Path:
    return roots[0] / name if len(roots) == 1 else Path(name)


def _print_selection(selection: "Selection", path: Path) -> None:
    """The head of the ranking, who was left out, and where it is written; on stderr, stdout is for the choice."""
    from rich.console import Console
    from rich.markup import escape

    from lddr.console import say, table
    from lddr.runs.tables import shown

    ranking = table()
    for heading in ("rank", selection.selector, "run"):
        ranking.add_column(heading, overflow="fold", justify="left" if heading == "run" else "right")
    for place in selection.ranking[:SHOWN]:
        ranking.add_row(str(place.rank), shown(place.value), escape(Path(place.run).name))
    Console(stderr=True).print(ranking)
    say(f"{selection.summary} ({selection.better} is better), {len(selection.ranking)} runs ranked, written: {path}")
    tied = sum(place.rank == 1 for place in selection.ranking)
    if tied > 1:
        say(f"{tied} runs share the first place; the first by name was chosen")
    for reason, folders in selection.left_out.items():
        say(f"{len(folders)} left out: {Path(folders[0]).name} {reason}")


def _print_report(
    judgements: "Sequence[Judgement]", metrics: Sequence[str], path: Path, as_json: bool, quiet: bool
) -> None:
    import json

    from rich.console import Console

    from lddr.console import say

    if as_json:
        print(json.dumps([judgement.as_dict() for judgement in judgements], indent=1))
    elif not quiet:
        for judgement in judgements:
            _print_judgement(judgement, metrics, Console())
    say(f"written: {path}")


def _print_judgement(group: "Judgement", metrics: Sequence[str], console: "Console") -> None:
    """Two tables, in parts that fit: rank correlations with their intervals, and the scores of the chosen models."""
    from rich.markup import escape

    console.print(f"\n[bold]{escape(group.title)}[/bold], {group.runs} runs")
    at_once = max(1, (console.width - NAME_WIDTH) // CELL_WIDTH)
    for first in range(0, len(metrics), at_once):
        part = metrics[first : first + at_once]
        console.print(_correlation_table(group, part))
        console.print(_choice_table(group, part))
    for name, reasons in group.left_out.items():
        for reason, count in reasons.items():
            console.print(f"{name}: {count} of {group.runs} left out, the first {escape(reason)}", style="dim")


def _correlation_table(group: "Judgement", metrics: Sequence[str]) -> "Table":
    entries = {(entry.selector, entry.metric): entry for entry in group.correlations}
    table = _table("rank correlation", metrics)
    for name in dict.fromkeys(entry.selector for entry in group.correlations):
        table.add_row(name, *(_interval(entries[name, metric]) for metric in metrics))
    return table


def _choice_table(group: "Judgement", metrics: Sequence[str]) -> "Table":
    entries = {(entry.selector, entry.metric): entry for entry in group.choices}
    table = _table("score of choice", metrics)
    for name in dict.fromkeys(entry.selector for entry in group.choices):
        table.add_row(name, *(_score(entries.get((name, metric)), "selected") for metric in metrics))
    fullest = {entry.metric: entry for entry in sorted(group.choices, key=lambda entry: entry.runs)}
    for name in ("random", "median", "best"):
        table.add_row(f"({name})", *(_score(fullest.get(metric), name) for metric in metrics), style="dim")
    return table


def _table(title: str, metrics: Sequence[str]) -> "Table":
    from lddr.console import table as plain_table

    table = plain_table()
    table.add_column(title, min_width=NAME_WIDTH - 2)
    for metric in metrics:
        table.add_column(metric, justify="right", overflow="fold")
    return table


def _interval(entry: "Correlation") -> str:
    if entry.spearman is None:
        return "undefined"
    return f"{entry.spearman:+.2f}\n{entry.low:+.2f}…{entry.high:+.2f}"


def _score(entry: "Choice | None", name: str) -> str:
    return "" if entry is None else f"{getattr(entry, name):.3f}"
