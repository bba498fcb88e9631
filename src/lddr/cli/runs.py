"""`lddr runs ls`, `lddr runs show` and `lddr runs diff`."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import arg
from tyro.extras import SubcommandApp

from lddr.cli.app import LEFT_OUT, ColumnNames, Conditions, Folder, Roots, RunName, Whole, app
from lddr.errors import UserError

if TYPE_CHECKING:
    from lddr.runs.index import Run, Value

runs = SubcommandApp()
app.command(runs, name="runs", help="List, show and compare run folders.")


@runs.command(name="ls")
def list_(
    folders: Roots = (Path("runs"),),
    where: Conditions = (),
    sort: Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint=LEFT_OUT)] = None,
    reverse: bool = False,
    columns: ColumnNames = (),
    limit: Whole = None,
    json: bool = False,
    csv: bool = False,
) -> None:
    """List runs with their settings and scores.

    Args:
        folders: Folders that hold runs, at any depth.
        where: Conditions that must all hold, such as model=dvae or "mig>0.3"; none stands for a missing value.
        sort: A column; scores largest first, settings smallest first, missing values last.
        reverse: The other way round.
        columns: Any setting or score, also dci.completeness; left out, what differs between the runs, and the scores.
        limit: At most so many runs.
        json: Print JSON: every digit, and all columns unless some are named.
        csv: Print CSV, likewise.
    """
    from lddr.runs.filters import check_columns, known_columns, matching, ordered
    from lddr.runs.index import gather

    if limit is not None and limit < 1:
        raise UserError(f"--limit must be at least 1, not {limit}")
    found = gather(folders)
    if found:
        check_columns(columns, found)
    chosen = ordered(matching(found, where), sort, reverse)
    kept = chosen[:limit]
    if json or csv:
        _print_plain(kept, columns or known_columns(kept), as_json=json)
    else:
        _print_table(kept, columns, sort)
        _print_notes(found, chosen, kept, folders)


@runs.command
def show(run: RunName, root: Folder = Path("runs")) -> None:
    """Show one run: settings that are not the defaults, scores, how far it is, and where.

    Args:
        run: A run's folder, or a part of its name or its fingerprint.
        root: Where to look for it.
    """
    from rich.console import Console
    from rich.markup import escape

    from lddr.console import table
    from lddr.runs.index import find_run

    found = find_run(run, root)
    facts = {"folder": str(found.folder), "state": _state(found), "dataset": found.value("dataset")}
    sections: dict[str, Mapping[str, Value]] = {
        "settings that differ from the defaults": _unusual(found) or {"none": ""},
        "scores": found.scores or {"none": "yet"},
        "undefined scores": found.files.undefined,
    }
    shown = table("", escape(found.name))
    for row in (*_rows(facts), *_sections(sections)):
        shown.add_row(*row)
    Console().print(shown)


@runs.command
def diff(first: RunName, second: RunName, root: Folder = Path("runs")) -> None:
    """Show in what two runs differ: settings and scores.

    Args:
        first: A run's folder, or a part of its name or its fingerprint.
        second: The other one.
        root: Where to look for them.
    """
    from rich.console import Console
    from rich.markup import escape

    from lddr.console import table
    from lddr.runs.filters import known_columns
    from lddr.runs.index import find_run
    from lddr.runs.tables import shown

    one, other = find_run(first, root), find_run(second, root)
    columns = [name for name in known_columns([one, other]) if name not in ("run", "name", "folder")]
    names = [name for name in columns if one.value(name) != other.value(name)]
    if not names:
        print("the two runs have the same settings and scores")
        return
    found = table("", escape(one.run), escape(other.run), "difference")
    for name in names:
        left, right = one.number(name), other.number(name)
        difference = "" if left is None or right is None else f"{right - left:+.4g}"
        found.add_row(name, *(escape(shown(run.value(name))) for run in (one, other)), difference)
    Console().print(found)


def _print_table(found: "Sequence[Run]", columns: Sequence[str], sort: str | None) -> None:
    from rich.console import Console

    from lddr.console import say
    from lddr.runs.tables import default_columns, print_runs

    if not found:
        return
    hidden = print_runs(found, columns or default_columns(found, sort), Console(), all_columns=bool(columns))
    if hidden:
        say(f"no room for {', '.join(hidden)}: name them in --columns, or use --csv or --json")


def _print_notes(found: "Sequence[Run]", chosen: "Sequence[Run]", kept: "Sequence[Run]", roots: Sequence[Path]) -> None:
    """How many there were, and what is wrong with the broken ones."""
    from lddr.console import say

    if not found:
        say(f"no runs below {', '.join(map(str, roots))}; train one with: lddr train")
    elif not chosen:
        say(f"none of the {len(found)} runs is like that")
    elif len(kept) < len(found):
        say(f"{len(kept)} of {len(found)} runs")
    for run in islice((run for run in kept if run.state == "broken"), 10):
        say(f"{run.folder} is broken: {run.reason}")


def _print_plain(found: "Sequence[Run]", columns: Sequence[str], as_json: bool) -> None:
    """Every digit, for other programs."""
    import csv
    import json
    import sys

    rows = [{column: run.value(column) for column in columns} for run in found]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _state(run: "Run") -> str:
    if run.state == "broken":
        return f"broken: {run.reason}"
    if run.state == "training":
        return f"not finished: step {run.files.last_step} of {run.value('steps')} or later"
    return run.state


def _unusual(run: "Run") -> "dict[str, Value]":
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


def _sections(sections: "Mapping[str, Mapping[str, Value]]") -> Iterator[tuple[str, ...]]:
    for title, values in sections.items():
        if values:
            yield from ((), (f"[bold]{title}[/bold]",), *_rows(values))


def _rows(values: "Mapping[str, Value]") -> list[tuple[str, ...]]:
    from rich.markup import escape

    from lddr.runs.tables import shown

    return [(escape(name), escape(shown(value))) for name, value in values.items()]
