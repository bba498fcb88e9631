"""`lddr sweep`, `lddr runs …` and `lddr select`."""

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg
from tyro.extras import SubcommandApp

from lddr.cli.app import Conditions, File, Folder, Roots, RunName, Whole, app

Columns = Annotated[tuple[str, ...], arg(metavar="COLUMN...")]

runs = SubcommandApp()


@app.command
def sweep(
    study: Annotated[Positional[str], arg(metavar="STUDY")],
    out: Folder = Path("runs"),
    scale: Literal["full", "quick"] = "full",
    dataset: Annotated[str | None, arg(metavar="NAME")] = None,
    only: Conditions = (),
    dry_run: bool = False,
    address: Annotated[str | None, arg(metavar="ADDRESS")] = None,
    workers: Whole = None,
    cpus_per_run: int = 1,
    gpus_per_run: float = 0.0,
    retries: int = 3,
    checkpoint_seconds: float = 30.0,
    quiet: bool = False,
) -> None:
    """Train and score all runs of a study on Ray: on all cores of this machine, or on a cluster.

    Finished runs are skipped and half-finished ones go on, so the same command resumes a sweep.

    Args:
        study: The name of a shipped study (circles, unregularized …) or the path of a .toml.
        out: Where the run folders go; on a cluster, a path that all nodes see.
        scale: full is the paper's; quick fits 2 cores in an evening.
        dataset: Instead of the study's own datasets: a name, or your own images.
        only: Keep runs that meet this, such as model=dvae, gamma=10,20 or seed<5; several must all be met.
        dry_run: Say how many runs there are, what is done, and the core-hours left, from a few timed steps.
        address: The address of a Ray cluster, or auto for the one this machine belongs to; left out, only this machine.
        workers: At most so many runs at once; left out, as many as there is room for.
        cpus_per_run: Cores, and torch threads, of each run.
        gpus_per_run: GPUs of each run; 0.25 puts four runs on each.
        retries: How often a failed run is tried again, from its checkpoint.
        checkpoint_seconds: Seconds between two checkpoints of a run.
        quiet: Show no progress.
    """
    from lddr.sweeps.cluster import Options
    from lddr.sweeps.commands import run_sweep

    options = Options(address, workers, cpus_per_run, gpus_per_run, retries, checkpoint_seconds, quiet)
    run_sweep(study, out, scale, dataset, only, dry_run, options)


app.command(runs, name="runs", help="List, show and compare run folders.")


@runs.command(name="ls")
def list_(
    folders: Roots = (Path("runs"),),
    where: Conditions = (),
    sort: Annotated[str | None, arg(metavar="COLUMN")] = None,
    reverse: bool = False,
    columns: Columns = (),
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
    from lddr.runs.commands import list_runs_command

    style: Literal["table", "json", "csv"] = "json" if json else "csv" if csv else "table"
    list_runs_command(folders, where, sort, reverse, columns, limit, style)


@runs.command
def show(run: RunName, root: Folder = Path("runs")) -> None:
    """Show one run: settings that are not the defaults, scores, how far it is, and where.

    Args:
        run: A run's folder, or a part of its name or its fingerprint.
        root: Where to look for it.
    """
    from lddr.runs.commands import show_run

    show_run(run, root)


@runs.command
def diff(first: RunName, second: RunName, root: Folder = Path("runs")) -> None:
    """Show in what two runs differ: settings and scores.

    Args:
        first: A run's folder, or a part of its name or its fingerprint.
        second: The other one.
        root: Where to look for them.
    """
    from lddr.runs.commands import diff_runs

    diff_runs(first, second, root)


@app.command
def select(
    folders: Roots = (Path("runs"),),
    by: Annotated[str | None, arg(metavar="SELECTOR", help_behavior_hint="(default: gap; with --report all)")] = None,
    where: Conditions = (),
    report: bool = False,
    metrics: Columns = (),
    samples: int = 1000,
    out: File = None,
    json: bool = False,
    quiet: bool = False,
) -> None:
    """Choose the best model without labels, or, with --report, measure how well the selectors choose.

    Selectors: gap, relative, discreteness, crispness, agreement, udr, elbo, reconstruction, independence, combined need
    no labels; validation takes the risk on the few labels of semi-supervised runs. gap+udr is the mean rank by both.

    Args:
        folders: Folders that hold runs, at any depth.
        by: A selector, or several joined by + for their mean rank; with --report, several separated by commas.
        where: Conditions that must all hold, such as model=dvae or steps=300000.
        report: For runs with ground-truth scores: rank correlation of every selector with every metric, and the
            score of its choice beside the median, the best and a random one.
        metrics: With --report: the scores to compare with; left out, all that the runs have.
        samples: Images every model encodes, for udr, agreement and crispness.
        out: Where the choice or the report goes, with its evidence; left out, selection.json or selection-report.json
            in the folder.
        json: With --report: print JSON instead of tables.
        quiet: Print nothing but the chosen folder.
    """
    from lddr.sweeps.select_command import report_selection, select_models

    if report:
        selectors = tuple(by.split(",")) if by else ()
        report_selection(folders, selectors, metrics, where, out, json, samples, quiet)
    else:
        select_models(folders, by or "gap", where, out, samples, quiet)
