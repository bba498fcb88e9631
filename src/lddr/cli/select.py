"""`lddr select`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg

from lddr import console
from lddr.cli.app import Columns, Conditions, File, Roots, app, listed
from lddr.errors import UserError
from lddr.files import write_json
from lddr.runs.index import Run, gather
from lddr.runs.tables import check_columns, matching, shown
from lddr.selection.selector import DEFAULT, selectors

if TYPE_CHECKING:
    from rich.table import Table

    from lddr.selection.ranking import Choice, Correlation, Selection, SelectorReport

SHOWN = 10  # lines of the ranking that are printed
NAME_WIDTH, CELL_WIDTH = 16, 14  # characters, in the report's tables


@app.command
def select(
    folders: Roots = (Path("runs"),),
    by: Annotated[
        str | None, arg(metavar="SELECTOR", help_behavior_hint=f"(default: {DEFAULT}; with --report all)")
    ] = None,
    where: Conditions = (),
    report: bool = False,
    metrics: Columns = "",
    samples: int = 1000,
    device: str = "auto",
    out: File = None,
    json: bool = False,
    quiet: bool = False,
) -> None:
    """Choose the best model without labels, or, with --report, measure how well the selectors choose.

    Args:
        folders: Folders that hold runs, at any depth.
        by: A selector, or several joined by + for their mean rank; with --report, several separated by commas.
        where: A condition such as model=dvae or steps=300000, given once or several times.
        report: For runs with ground-truth scores: rank correlation of every selector with every metric, and the
            score of its choice beside the median, the best and a random one.
        metrics: With --report: the scores to compare with; left out, all that the runs have.
        samples: Images every model encodes, for the selectors that look at images.
        device: Where they encode them: cpu, cuda, mps, or auto for the best there is.
        out: Where the choice or the report goes, with its evidence; left out, selection.json or selection-report.json
            in the folder.
        json: With --report: print JSON instead of tables.
        quiet: Print nothing but the chosen folder; with --report, nothing but the JSON that --json asks for.
    """
    from lddr.selection import ranking

    runs, encoder = matching(gather(folders), where), ranking.RunEncoder(samples, device)
    path = out or _beside(folders, "selection-report.json" if report else "selection.json")
    if report:
        columns = _metrics([run for run in runs if run.state == "finished"], listed(metrics))
        reports = ranking.report_selectors(runs, by.split(",") if by else list(selectors), columns, encoder, quiet)
        _print_reports(reports, columns, path, json, quiet)
    else:
        selection = ranking.select(runs, by or DEFAULT, encoder, quiet)
        write_json(path, selection.as_dict())
        if not quiet:
            _print_selection(selection, path)
        print(selection.chosen)


def know_selectors() -> None:
    """Add the registered selectors to the help text."""
    known = "".join(f"    - {name}: {selectors[name].summary}\n" for name in selectors)
    first, _, arguments = (select.__doc__ or "").partition("    Args:\n")
    select.__doc__ = f"{first.splitlines()[0]}\n\n    Selectors:\n{known}\n    Args:\n{arguments}"


def _metrics(runs: Sequence[Run], given: Sequence[str]) -> list[str]:
    """Return the scores to compare with: those that need ground truth and that some run has."""
    from lddr.metrics.metric import metrics

    if not runs:
        raise UserError("there are no finished runs to report on; give the folder that holds them")
    check_columns(given, runs)
    found = [name for name in metrics if metrics[name].labels and any(name in run.scores for run in runs)]
    if not given and not found:
        raise UserError("no run has ground-truth scores to compare with; get them with: lddr evaluate RUN")
    return list(given) or found


def _beside(roots: Sequence[Path], name: str) -> Path:
    return roots[0] / name if len(roots) == 1 else Path(name)


def _print_selection(selection: "Selection", path: Path) -> None:
    """Print the top of the ranking, the excluded runs and the output path on stderr; stdout is for the choice."""
    table = console.table("rank", selection.selector, "run")
    for place in selection.ranking[:SHOWN]:
        table.add_row(str(place.rank), shown(place.value), Path(place.run).name)
    console.show(table, stderr=True)
    counted = f"({selection.better} is better), {len(selection.ranking)} runs ranked"
    console.say(f"{selection.summary} {counted}, written: {path}")
    tied = sum(place.rank == 1 for place in selection.ranking)
    if tied > 1:
        console.say(f"{tied} runs share the first place; the first by name was chosen")
    for reason, folders in selection.left_out.items():
        console.say(f"{len(folders)} left out: {Path(folders[0]).name} {reason}")


def _print_reports(
    reports: "Sequence[SelectorReport]", metrics: Sequence[str], path: Path, as_json: bool, quiet: bool
) -> None:
    import json

    content = [report.as_dict() for report in reports]
    write_json(path, content)
    if as_json:
        print(json.dumps(content, indent=1))
    elif not quiet:
        for report in reports:
            _print_report(report, metrics)
    if not quiet:
        console.say(f"written: {path}")


def _print_report(found: "SelectorReport", metrics: Sequence[str]) -> None:
    """Print two tables, split to fit the terminal: rank correlations with intervals, and the chosen models' scores."""
    console.show(f"\n{found.title}, {found.runs} runs", style="bold")
    at_once = max(1, (console.width() - NAME_WIDTH) // CELL_WIDTH)
    for first in range(0, len(metrics), at_once):
        part = metrics[first : first + at_once]
        console.show(_correlation_table(found, part))
        console.show(_choice_table(found, part))
    for name, reasons in found.left_out.items():
        for reason, count in reasons.items():
            console.show(f"{name}: {count} of {found.runs} left out, the first {reason}", style="dim")


def _correlation_table(found: "SelectorReport", metrics: Sequence[str]) -> "Table":
    entries = {(entry.selector, entry.metric): entry for entry in found.correlations}
    table = console.table(f"{'rank correlation':{NAME_WIDTH - 2}}", numbers=metrics)
    for name in dict.fromkeys(entry.selector for entry in found.correlations):
        table.add_row(name, *(_interval(entries[name, metric]) for metric in metrics))
    return table


def _choice_table(found: "SelectorReport", metrics: Sequence[str]) -> "Table":
    entries = {(entry.selector, entry.metric): entry for entry in found.choices}
    table = console.table(f"{'score of choice':{NAME_WIDTH - 2}}", numbers=metrics)
    for name in dict.fromkeys(entry.selector for entry in found.choices):
        table.add_row(name, *(_score(entries.get((name, metric)), "selected") for metric in metrics))
    fullest = {entry.metric: entry for entry in sorted(found.choices, key=lambda entry: entry.runs)}
    for name in ("random", "median", "best"):
        table.add_row(f"({name})", *(_score(fullest.get(metric), name) for metric in metrics), style="dim")
    return table


def _interval(entry: "Correlation") -> str:
    if entry.spearman is None:
        return "undefined"
    return f"{entry.spearman:+.2f}\n{entry.low:+.2f}…{entry.high:+.2f}"


def _score(entry: "Choice | None", name: str) -> str:
    return "" if entry is None else f"{getattr(entry, name):.3f}"
