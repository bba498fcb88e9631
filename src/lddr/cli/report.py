"""`lddr report`, `lddr show` and `lddr compare`."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from lddr.cli.app import Conditions, Folder, Roots, RunName, app

Out = Annotated[Path, arg(aliases=["-o"], metavar="FOLDER")]


@app.command
def report(folders: Roots = (Path("runs"),), out: Out = Path("report"), where: Conditions = ()) -> None:
    """Make a page of the paper's tables and figures from run folders, next to the paper's numbers.

    Tables and figures that the runs do not allow are listed with what they need. Runs that cannot be compared are never
    mixed.

    Args:
        folders: Folders that hold runs, at any depth.
        out: The folder for index.html, tables/ and figures/.
        where: Only runs like this, such as dataset=circles or "mig>0.3".
    """
    from lddr.report.pages import write_report

    page, summary = write_report(folders, out, where)
    print(*summary, f"open {page}", sep="\n")


@app.command
def show(
    run: RunName,
    out: Annotated[
        Path | None, arg(aliases=["-o"], metavar="FOLDER", help_behavior_hint="(default: RUN/card, or card/NAME)")
    ] = None,
    root: Folder = Path("runs"),
) -> None:
    """Show one model on a page: scores, curves, reconstructions, traversals, information.

    Args:
        run: A run's folder, a part of its name or its fingerprint, or a name from `lddr models --pretrained`.
        out: The folder for the page and its figures.
        root: Where to look for the run.
    """
    from lddr.errors import check_installed
    from lddr.report.pages import write_card
    from lddr.runs.index import find_run

    check_installed("torch", "safetensors")
    page, missing = write_card(find_run(run, root), out)
    for title, reason in missing.items():
        print(f"missing: {title}: {reason}")
    print(f"open {page}")


@app.command
def compare(
    runs: Annotated[Positional[tuple[str, ...]], arg(metavar="RUN...")],
    out: Out = Path("compare"),
    root: Folder = Path("runs"),
) -> None:
    """Put models side by side on a page: scores, the settings that differ, and figures.

    Args:
        runs: Folders of runs, or parts of their names.
        out: The folder for the page and its figures.
        root: Where to look for the runs.
    """
    from lddr.errors import check_installed
    from lddr.report.pages import write_comparison
    from lddr.runs.index import find_run

    check_installed("torch", "safetensors")
    print(f"open {write_comparison([find_run(name, root) for name in runs], out)}")
