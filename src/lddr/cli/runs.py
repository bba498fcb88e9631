"""`lddr runs`, `lddr show`, `lddr compare`, `lddr report` and `lddr push`."""

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from lddr import console
from lddr.cli.app import (
    RUN_HELP,
    app,
    argument,
    chosen_runs,
    flag,
    folders,
    group,
    listed,
    nothing_matched,
    option,
    out_folder,
    runs_in,
    where,
    where_to_look,
)
from lddr.config import configure
from lddr.console import counted
from lddr.errors import UserError, check_installed
from lddr.runs.folder import RunFolder
from lddr.runs.index import Run, Value, code_rows, find_run, flat_settings, gather
from lddr.runs.tables import check_columns, harmless, known_columns, matching, ordered, print_runs, shown

runs = group("runs", "List runs with their settings and scores, or compare two of them.")


@runs.command()
@folders()
@where
@option(
    "--sort",
    metavar="COLUMN",
    help="Sort by a column: scores largest first, settings smallest first; -COLUMN and +COLUMN decide it.",
)
@flag("--reverse", "Reverse the order.")
@option(
    "--columns",
    metavar="NAME,NAME…",
    help="Settings and scores, also dci.completeness.  [default: settings that differ, and the scores]",
)
@option("--limit", type=int, help="List at most this many runs.")
@flag("--json", "Print JSON: every digit, and all columns unless --columns names some.")
@flag("--csv", "Print CSV, likewise.")
def ls(
    folders: tuple[Path, ...],
    where: tuple[str, ...],
    sort: str | None,
    reverse: bool,
    columns: str | None,
    limit: int | None,
    json: bool,
    csv: bool,
) -> None:
    """List runs with their settings and scores."""
    if limit is not None and limit < 1:
        raise UserError(f"--limit must be at least 1, not {limit}")
    found = gather(folders) if json or csv else runs_in(folders)  # for other programs, none is an empty list
    names = listed(columns)
    if found:
        check_columns(names, found)
    kept = ordered(matching(found, where), sort, reverse)[:limit]
    if json or csv:
        _print_plain(kept, names or known_columns(kept), as_json=json)
    elif kept:
        print_runs(kept, names, sort and sort.lstrip("+-"))
        if len(kept) < len(found):
            console.say(f"{len(kept)} of {counted(len(found), 'run')}")
        for run in islice((run for run in kept if run.state == "broken"), 10):
            console.say(f"{run.folder} is broken: {run.reason}")
    else:
        console.say(nothing_matched(found, where))


@runs.command()
@argument("first", "RUN", help=RUN_HELP)
@argument("second", "RUN", help="The other one.")
@where_to_look
def diff(first: str, second: str, folder: Path) -> None:
    """Print the settings and scores in which two runs differ."""
    one, other = find_run(first, folder), find_run(second, folder)
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


@app.command()
@argument("run", "RUN", help=f"{RUN_HELP[:-1]}; or a name from `lddr models --pretrained`.")
@where_to_look
@out_folder(None, "The folder for the page and its figures.  [default: RUN/card, or card/NAME]")
def show(run: str, folder: Path, out: Path | None) -> None:
    """Print the settings and scores of a run, and write its page."""
    found = find_run(run, folder)
    _print_run(found)
    check_installed("torch", "safetensors")
    from lddr.report.pages import write_card

    page, missing = write_card(found, out)
    for title, reason in missing.items():
        print(f"missing: {title}: {reason}")
    print(f"open {page}")


@app.command()
@argument("names", "RUN... [FOLDER]", nargs=-1, help=f"{RUN_HELP[:-1]}; last, where to look for them (runs).")
@out_folder("compare", "The folder for the page and its figures.")
def compare(names: tuple[str, ...], out: Path) -> None:
    """Write a page that compares models side by side."""
    from lddr.report.pages import write_comparison

    check_installed("torch", "safetensors")
    root = Path("runs")
    if len(names) > 1 and Path(names[-1]).is_dir() and not RunFolder(names[-1]).is_run:
        names, root = names[:-1], Path(names[-1])
    print(f"open {write_comparison([find_run(name, root) for name in names], out)}")


@app.command()
@folders()
@where
@out_folder("report", "The folder for index.html, tables/ and figures/.")
def report(folders: tuple[Path, ...], where: tuple[str, ...], out: Path) -> None:
    """Write a page with the paper's tables and figures from your runs.

    The paper's own numbers stand next to yours. Runs that cannot be compared are never mixed, and what the runs do not
    allow is listed with what it needs.
    """
    from lddr.report.pages import write_report

    chosen_runs(folders, where)
    page, summary = write_report(folders, out, where)
    print(*summary, f"open {page}", sep="\n")


@app.command()
@argument("run", "RUN", help=RUN_HELP)
@argument("repository", "OWNER/NAME", help="The repository, which is created if need be.")
@where_to_look
@flag("--private", "Make a repository that is created private.", default=None)
@option("--revision", metavar="NAME", help="A branch other than main.")
@option("--license", metavar="NAME", help="The licence for the model card, such as mit.")
@option("--samples", type=int, default=0, help="Upload this many images of the training set, too; at most 64.")
def push(run: str, repository: str, folder: Path, **options: Any) -> None:
    """Upload a trained model to the Hugging Face Hub.

    Without --samples, images of your own are not uploaded, and those who open the model start from none. It needs a
    login (hf auth login) or HF_TOKEN. In Python, lddr.Trained.from_pretrained("OWNER/NAME") downloads it.
    """
    from lddr.trained import Trained

    print(Trained.load(find_run(run, folder).folder).push_to_hub(repository, **options))


def _print_plain(found: Sequence[Run], columns: Sequence[str], as_json: bool) -> None:
    """Print every digit, for other programs."""
    rows = [{column: run.value(column) for column in columns} for run in found]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({column: harmless(value) for column, value in row.items()} for row in rows)


def _print_run(run: Run) -> None:
    """Print the state of a run, the settings that are not the defaults, and the scores."""
    state: str = run.state
    if state == "broken":
        state = f"broken: {run.reason}"
    if state == "training":
        state = f"not finished: step {run.files.last_step} of {run.value('steps')} or later"
    sections: dict[str, Mapping[str, Value]] = {
        "": {"folder": str(run.folder), "state": state, "dataset": run.value("dataset")},
        "settings that differ from the defaults": _unusual(run) or {"none": ""},
        "scores": run.scores or {"none": "yet; get them with: lddr evaluate"},
        "codes used by each latent": code_rows(run),
        "undefined scores": run.files.undefined,
    }
    table = console.table("", run.name)
    for title, values in sections.items():
        if title and values:
            table.add_row()
            table.add_row(title, style="bold")
        for name, value in values.items():
            table.add_row(name, shown(value))
    console.show(table)


def _unusual(run: Run) -> dict[str, Value]:
    """Return the settings that are not the paper's; all of them if this version does not know the model."""
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
