"""`lddr select`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lddr import console
from lddr.cli.app import Command, app, chosen_runs, device, flag, folders, listed, option, out_file, quiet, where
from lddr.console import counted
from lddr.errors import UserError
from lddr.files import write_json
from lddr.runs.index import Run
from lddr.runs.tables import check_columns, shown

if TYPE_CHECKING:
    from lddr.selection.ranking import Correlation, Selected, Selection, SelectorReport

SHOWN = 10  # lines of the ranking that are printed
NAME_WIDTH, CELL_WIDTH = 16, 14  # characters, in the report's tables


class SelectCommand(Command):
    """Its help lists the selectors."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from lddr.selection.selector import selectors

        with formatter.section("Selectors"):
            formatter.write_dl([(name, selectors[name].summary) for name in selectors])


@app.command(cls=SelectCommand)
@folders()
@option(
    "--by",
    metavar="SELECTOR",
    help="A selector, or several joined by + for their mean rank; with --report, several separated by commas.  "
    "[default: gap; with --report all]",
)
@where
@flag("--report", "Measure how well the selectors agree with ground-truth scores instead, if the runs have some.")
@option("--metrics", metavar="NAME,NAME…", help="With --report: the scores to compare with.  [default: all]")
@option("--samples", type=int, default=1000, help="Images that each model encodes, for selectors that use images.")
@device
@out_file("Where to write the choice or the report.  [default: selection.json or selection-report.json in FOLDER]")
@flag("--json", "With --report: print JSON instead of tables.")
@quiet
def select(
    folders: tuple[Path, ...],
    by: str | None,
    where: tuple[str, ...],
    report: bool,
    metrics: str | None,
    samples: int,
    device: str,
    out: Path | None,
    json: bool,
    quiet: bool,
) -> None:
    """Select the best of several models without labels.

    With --report it prints the rank correlation of every selector with every metric, and the score of its choice next
    to the median, the best and a random one.
    """
    from lddr.selection import ranking
    from lddr.selection.selector import DEFAULT, selectors

    runs, encoder = chosen_runs(folders, where), ranking.RunEncoder(samples, device)
    name = "selection-report.json" if report else "selection.json"
    path = out or (folders[0] / name if len(folders) == 1 else Path(name))
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


def _metrics(runs: Sequence[Run], given: Sequence[str]) -> list[str]:
    """Return the scores to compare with: those that need ground truth and that some run has."""
    from lddr.metrics.metric import metrics

    if not runs:
        raise UserError("there are no finished runs to report on; give the folder that holds them")
    check_columns(given, runs)
    found = [name for name in metrics if metrics[name].labels and any(name in run.scores for run in runs)]
    if not given and not found:
        raise UserError("no run has ground-truth scores to compare with; get them with: lddr evaluate")
    return list(given) or found


def _print_selection(selection: "Selection", path: Path) -> None:
    """Print the top of the ranking, the excluded runs and the output path on stderr; stdout is for the choice."""
    table = console.table("rank", selection.selector, "run")
    for place in selection.ranking[:SHOWN]:
        table.add_row(str(place.rank), shown(place.value), Path(place.run).name)
    console.show(table, stderr=True)
    ranked = f"({selection.better} is better), {counted(len(selection.ranking), 'run')} ranked"
    console.say(f"{selection.summary} {ranked}, written to {path}")
    tied = sum(place.rank == 1 for place in selection.ranking)
    if tied > 1:
        console.say(f"{tied} runs share the first place; the first by name was chosen")
    for reason, names in selection.left_out.items():
        console.say(f"{len(names)} left out: {Path(names[0]).name} {reason}")


def _print_reports(
    reports: "Sequence[SelectorReport]", metrics: Sequence[str], path: Path, as_json: bool, quiet: bool
) -> None:
    content = [report.as_dict() for report in reports]
    write_json(path, content)
    if as_json:
        print(json.dumps(content, indent=1))
    elif not quiet:
        for report in reports:
            _print_report(report, metrics)
    if not quiet:
        console.say(f"written to {path}")


def _print_report(found: "SelectorReport", metrics: Sequence[str]) -> None:
    """Print two tables, split to fit the terminal: rank correlations with intervals, and the chosen models' scores."""
    console.show(f"\n{found.title}, {counted(found.runs, 'run')}", style="bold")
    correlations = {(entry.selector, entry.metric): entry for entry in found.correlations}
    choices = {(entry.selector, entry.metric): entry for entry in found.choices}
    fullest = {entry.metric: entry for entry in sorted(found.choices, key=lambda entry: entry.runs)}
    at_once = max(1, (console.width() - NAME_WIDTH) // CELL_WIDTH)
    for first in range(0, len(metrics), at_once):
        part = metrics[first : first + at_once]
        table = console.table(f"{'rank correlation':{NAME_WIDTH - 2}}", numbers=part)
        for name in dict.fromkeys(selector for selector, _ in correlations):
            table.add_row(name, *(_interval(correlations[name, metric]) for metric in part))
        console.show(table)
        table = console.table(f"{'score of choice':{NAME_WIDTH - 2}}", numbers=part)
        for name in dict.fromkeys(selector for selector, _ in choices):
            table.add_row(name, *(_score(choices.get((name, metric)), "selected") for metric in part))
        for name in ("random", "median", "best"):
            table.add_row(f"({name})", *(_score(fullest.get(metric), name) for metric in part), style="dim")
        console.show(table)
    for name, reasons in found.left_out.items():
        for reason, count in reasons.items():
            console.show(f"{name}: {count} of {found.runs} left out, the first {reason}", style="dim")


def _interval(entry: "Correlation") -> str:
    if entry.spearman is None:
        return "undefined"
    return f"{entry.spearman:+.2f}\n{entry.low:+.2f}…{entry.high:+.2f}"


def _score(entry: "Selected | None", name: str) -> str:
    return "" if entry is None else f"{getattr(entry, name):.3f}"
