"""What `lddr runs ls`, `lddr runs show` and `lddr runs diff` do."""

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lddr.errors import UserError
from lddr.runs.filters import check_columns, known_columns, matching, ordered
from lddr.runs.folder import RunFolder
from lddr.runs.index import Run, Value, gather, list_runs, read_run
from lddr.runs.tables import default_columns, print_runs, shown

Style = Literal["table", "json", "csv"]


def list_runs_command(
    roots: Sequence[Path],
    where: Sequence[str] = (),
    sort: str | None = None,
    reverse: bool = False,
    columns: Sequence[str] = (),
    limit: int | None = None,
    style: Style = "table",
) -> None:
    """Print the runs below some folders, as a table, as JSON or as CSV."""
    if limit is not None and limit < 1:
        raise UserError(f"--limit must be at least 1, not {limit}")
    runs = gather(roots)
    if runs:
        check_columns(columns, runs)
    chosen = ordered(matching(runs, where), sort, reverse)
    kept = chosen[:limit]
    if style == "table":
        _print_table(kept, columns, sort)
        _print_notes(runs, chosen, kept, roots)
    else:
        _print_plain(kept, columns or known_columns(kept), style)


def show_run(text: str, root: Path = Path("runs")) -> None:
    """Print where a run is, how far it got, the settings that differ from the defaults, and its scores."""
    run = find_run(text, root)
    facts = {"folder": str(run.folder), "state": _state(run), "dataset": run.value("dataset")}
    table = _grid("", escape(run.name))
    _rows(table, facts)
    _section(table, "settings that differ from the defaults", _unusual(run) or {"none": ""})
    _section(table, "scores", run.scores or {"none": "yet"})
    _section(table, "undefined scores", _undefined(run))
    Console().print(table)


def diff_runs(first: str, second: str, root: Path = Path("runs")) -> None:
    """Print the settings and scores in which two runs differ."""
    one, other = find_run(first, root), find_run(second, root)
    columns = [name for name in known_columns([one, other]) if name not in ("run", "name", "folder")]
    names = [name for name in columns if one.value(name) != other.value(name)]
    if not names:
        print("the two runs have the same settings and scores")
        return
    table = _grid("", escape(one.run), escape(other.run), "difference")
    for name in names:
        left, right = one.number(name), other.number(name)
        difference = "" if left is None or right is None else f"{right - left:+.4g}"
        table.add_row(name, *(escape(shown(run.value(name))) for run in (one, other)), difference)
    Console().print(table)


def find_run(text: str, root: Path) -> Run:
    """The run of a folder, or the one below the root with this in its name."""
    if RunFolder(text).is_run:
        return read_run(Path(text))
    if Path(text).is_dir():
        raise UserError(f"{text} is no run: it has no config.json; list the runs in it with: lddr runs ls {text}")
    runs = list_runs(root)
    exact = [run for run in runs if text in (run.name, run.run)]
    found = exact or [run for run in runs if text in run.name]
    if not found:
        raise UserError(f"no run below {root} has {text!r} in its name; see them with: lddr runs ls {root}")
    if len(found) > 1:
        some = ", ".join(str(run.folder) for run in found[:3]) + (", …" if len(found) > 3 else "")
        raise UserError(f"{text!r} could be any of {len(found)} runs ({some}); give more of the name, or the folder")
    return found[0]


def _print_table(runs: Sequence[Run], columns: Sequence[str], sort: str | None) -> None:
    if not runs:
        return
    hidden = print_runs(runs, columns or default_columns(runs, sort), Console(), all_columns=bool(columns))
    if hidden:
        _say(f"no room for {', '.join(hidden)}: name them in --columns, or use --csv or --json")


def _print_notes(runs: Sequence[Run], chosen: Sequence[Run], kept: Sequence[Run], roots: Sequence[Path]) -> None:
    """How many there were, and what is wrong with the broken ones."""
    if not runs:
        _say(f"no runs below {', '.join(map(str, roots))}; train one with: lddr train")
    elif not chosen:
        _say(f"none of the {len(runs)} runs is like that")
    elif len(kept) < len(runs):
        _say(f"{len(kept)} of {len(runs)} runs")
    for run in islice((run for run in kept if run.state == "broken"), 10):
        _say(f"{run.folder} is broken: {run.reason}")


def _print_plain(runs: Sequence[Run], columns: Sequence[str], style: Style) -> None:
    """Every digit, for other programs."""
    rows = [{column: run.value(column) for column in columns} for run in runs]
    if style == "json":
        print(json.dumps(rows, indent=1))
        return
    writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _state(run: Run) -> str:
    if run.state == "broken":
        return f"broken: {run.reason}"
    if run.state == "training":
        return f"not finished: step {run.files.last_step} of {run.value('steps')} or later"
    return run.state


def _unusual(run: Run) -> dict[str, Value]:
    """The settings that are not the paper's; all of them if this version does not know the model."""
    from lddr.config import configure
    from lddr.runs.index import flat_settings

    try:
        usual = flat_settings(configure(str(run.value("model")), str(run.value("dataset"))).as_dict())
    except UserError:
        usual = {}
    identity = ("dataset", "checksum", "latent", "objective")
    return {
        name: value
        for name, value in run.settings.items()
        if name == "model" or (name not in identity and (name not in usual or usual[name] != value))
    }


def _undefined(run: Run) -> dict[str, Value]:
    """The metrics that have no score here, and why."""
    entries = run.files.metrics.items()
    return {name: str(entry.get("reason")) for name, entry in entries if entry.get("score") is None}


def _grid(*headings: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _section(table: Table, title: str, values: Mapping[str, Value]) -> None:
    if values:
        table.add_row()
        table.add_row(f"[bold]{title}[/bold]")
    _rows(table, values)


def _rows(table: Table, values: Mapping[str, Value]) -> None:
    for name, value in values.items():
        table.add_row(escape(name), escape(shown(value)))


def _say(sentence: str) -> None:
    print(f"lddr: {sentence}", file=sys.stderr)
