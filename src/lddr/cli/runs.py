"""`lddr runs ls`, `lddr runs show` and `lddr runs diff`."""

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import arg
from tyro.extras import SubcommandApp

from lddr import console
from lddr.cli.app import LEFT_OUT, Columns, Conditions, Folder, Roots, RunName, Whole, app, listed
from lddr.errors import UserError
from lddr.runs.index import Run, Value, code_rows, find_run, flat_settings, gather
from lddr.runs.tables import check_columns, known_columns, matching, ordered, print_runs, shown

runs = SubcommandApp()
app.command(runs, name="runs", help="List, show and compare run folders.")


@runs.command(name="ls")
def list_(
    folders: Roots = (Path("runs"),),
    where: Conditions = (),
    sort: Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint=LEFT_OUT)] = None,
    reverse: bool = False,
    columns: Columns = "",
    limit: Whole = None,
    json: bool = False,
    csv: bool = False,
) -> None:
    """List runs with their settings and scores.

    Args:
        folders: Folders that hold runs, at any depth.
        where: A condition such as model=vae,dvae or "mig>0.3", given once or several times; none stands for a missing
            value.
        sort: A column: scores largest first, settings smallest first, missing values last. -COLUMN is the largest first
            and +COLUMN the smallest.
        reverse: The other way round.
        columns: Any setting or score, also dci.completeness; left out, what differs between the runs, and the scores.
        limit: At most so many runs.
        json: Print JSON: every digit, and all columns unless some are named.
        csv: Print CSV, likewise.
    """
    if limit is not None and limit < 1:
        raise UserError(f"--limit must be at least 1, not {limit}")
    found, names = gather(folders), listed(columns)
    if found:
        check_columns(names, found)
    chosen = ordered(matching(found, where), sort, reverse)
    kept = chosen[:limit]
    if json or csv:
        _print_plain(kept, names or known_columns(kept), as_json=json)
    else:
        if kept:
            print_runs(kept, names, sort and sort.lstrip("+-"))
        _print_notes(found, chosen, kept, folders)


@runs.command
def show(run: RunName, root: Folder = Path("runs")) -> None:
    """Show one run: settings that are not the defaults, scores, how far it is, and where.

    Args:
        run: A run's folder, or a part of its name or its fingerprint.
        root: Where to look for it.
    """
    found = find_run(run, root)
    table = console.table("", found.name)
    _add_rows(table, {"folder": str(found.folder), "state": _state(found), "dataset": found.value("dataset")})
    _add_section(table, "settings that differ from the defaults", _unusual(found) or {"none": ""})
    _add_section(table, "scores", found.scores or {"none": "yet"})
    _add_section(table, "codes used by each latent", code_rows(found))
    _add_section(table, "undefined scores", found.files.undefined)
    console.show(table)


@runs.command
def diff(first: RunName, second: RunName, root: Folder = Path("runs")) -> None:
    """Show in what two runs differ: settings and scores.

    Args:
        first: A run's folder, or a part of its name or its fingerprint.
        second: The other one.
        root: Where to look for them.
    """
    one, other = find_run(first, root), find_run(second, root)
    columns = [name for name in known_columns([one, other]) if name not in ("run", "name", "folder")]
    names = [name for name in columns if one.value(name) != other.value(name)]
    if not names:
        print("the two runs have the same settings and scores")
        return
    table = console.table("", one.run, other.run, "difference")
    for name in names:
        left, right = one.number(name), other.number(name)
        difference = "" if left is None or right is None else f"{right - left:+.4g}"
        table.add_row(name, *(shown(run.value(name)) for run in (one, other)), difference)
    console.show(table)


def _print_notes(found: Sequence[Run], chosen: Sequence[Run], kept: Sequence[Run], roots: Sequence[Path]) -> None:
    """Print how many runs there are, and why some are broken."""
    if not found:
        console.say(f"no runs below {', '.join(map(str, roots))}; train one with: lddr train")
    elif not chosen:
        console.say(f"none of the {len(found)} runs is like that")
    elif len(kept) < len(found):
        console.say(f"{len(kept)} of {len(found)} runs")
    for run in islice((run for run in kept if run.state == "broken"), 10):
        console.say(f"{run.folder} is broken: {run.reason}")


def _print_plain(found: Sequence[Run], columns: Sequence[str], as_json: bool) -> None:
    """Print every digit, for other programs."""
    import csv
    import json
    import sys

    from lddr.runs.tables import harmless

    rows = [{column: run.value(column) for column in columns} for run in found]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({column: harmless(value) for column, value in row.items()} for row in rows)


def _state(run: Run) -> str:
    if run.state == "broken":
        return f"broken: {run.reason}"
    if run.state == "training":
        return f"not finished: step {run.files.last_step} of {run.value('steps')} or later"
    return run.state


def _unusual(run: Run) -> dict[str, Value]:
    """Return the settings that are not the paper's; all of them if this version does not know the model."""
    from lddr.config import configure

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


def _add_section(table: Any, title: str, values: Mapping[str, Value]) -> None:
    if values:
        table.add_row()
        table.add_row(title, style="bold")
        _add_rows(table, values)


def _add_rows(table: Any, values: Mapping[str, Value]) -> None:
    for name, value in values.items():
        table.add_row(name, shown(value))
