"""`lddr sweep`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from lddr import console
from lddr.cli.app import LEFT_OUT, Conditions, Folder, Tracker, Whole, app
from lddr.errors import UserError
from lddr.hardware import Machine
from lddr.runs.folder import RunFolder

if TYPE_CHECKING:
    from lddr.sweeps.cluster import Failure, Outcome
    from lddr.sweeps.progress import Estimate
    from lddr.sweeps.study import Study

WIDEST = 1000  # characters of a table: wrapped lines are better than truncated numbers


@app.command
def sweep(
    study: Annotated[Positional[str], arg(metavar="STUDY")],
    out: Folder = Path("runs"),
    scale: Literal["full", "quick"] = "full",
    dataset: Annotated[str | None, arg(metavar="NAME", help_behavior_hint=LEFT_OUT)] = None,
    only: Conditions = (),
    dry_run: bool = False,
    address: Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint=LEFT_OUT)] = None,
    workers: Whole = None,
    cpus_per_run: int = 1,
    gpus_per_run: float = 0.0,
    retries: int = 3,
    checkpoint_seconds: float = Machine.checkpoint_seconds,
    track: Tracker = None,
    quiet: bool = False,
) -> None:
    """Train and score all runs of a study on Ray: on all cores of this machine, or on a cluster.

    Finished runs are skipped and half-finished ones resume, so the same command resumes a sweep.

    Args:
        study: The name of a shipped study (circles, unregularized …) or the path of a .toml.
        out: Where the run folders go; on a cluster, a path that all nodes see.
        scale: full is the paper's; quick fits 2 cores in an evening.
        dataset: Instead of the study's own datasets: a name, or your own images.
        only: Keep runs that meet this, such as model=dvae, gamma=10,20 or "seed<5"; given several times, all of them.
        dry_run: Print how many runs there are, what is done, and the core-hours left, from a few timed steps.
        address: The address of a Ray cluster, or auto for the one this machine belongs to; left out, only this machine.
        workers: At most so many runs at once; left out, as many as there is room for.
        cpus_per_run: Cores, and torch threads, of each run.
        gpus_per_run: GPUs of each run; 0.25 puts four runs on each.
        retries: How often a failed run is tried again, from its checkpoint.
        checkpoint_seconds: Seconds between two checkpoints of a run.
        track: Send every run to this tracker: its settings, log and scores.
        quiet: Show no progress.
    """
    from lddr.sweeps.cluster import Options, run_study
    from lddr.sweeps.study import read_study

    options = Options(address, workers, cpus_per_run, gpus_per_run, retries, checkpoint_seconds, quiet, track)
    chosen = read_study(study, scale, dataset, only)
    if dry_run:
        from lddr.hardware import keep_freed_memory
        from lddr.sweeps.progress import estimate

        keep_freed_memory()  # as in the workers
        _print_estimate(estimate(chosen, out))
        return
    if address is None:
        _check_that_images_are_here(chosen)
    outcome = run_study(chosen, out, options)
    if outcome.stopped:
        console.say("stopped; start the same command again to resume")
        sys.exit(130)
    _print_scores(chosen, out)
    console.say(_summary(outcome, out))
    if outcome.failures:
        sys.exit(1)


def _check_that_images_are_here(study: "Study") -> None:
    from lddr.data.load import load_dataset, why_missing

    for images in dict.fromkeys(config.images for config in study.configs):
        if why := why_missing(images[0]):
            raise UserError(why)
        load_dataset(*images)  # refuses an unavailable size before any run starts


def _summary(outcome: "Outcome", out: Path) -> str:
    """Return one sentence of counts, then the folder and the error of every failed run."""
    counts = f"{outcome.finished} runs finished, {outcome.there} were there already, {len(outcome.failures)} failed"
    return "\n".join([f"{counts}; they are in {out}", *map(_failure_line, outcome.failures)])


def _failure_line(failure: "Failure") -> str:
    details = RunFolder(failure.folder).error_file
    return f"  {failure.folder}: {failure.error}" + (f" (more in {details})" if details.exists() else "")


def _print_scores(study: "Study", out: Path) -> None:
    from lddr.sweeps.progress import score_rows

    rows = score_rows(study, out)
    model, *others = rows[0]
    table = console.table(model, numbers=others, title=f"{study.name}: median over seeds")
    for row in rows:
        table.add_row(*row.values())
    console.show(table, width=WIDEST)


def _print_estimate(estimate: "Estimate") -> None:
    """Print how many runs are done, how many are left, and what they cost."""
    table = console.table("model", "on", numbers=("runs left", "ms per step", "core-hours"))
    for share in estimate.shares:
        table.add_row(*share.cells())
    if estimate.shares:
        console.show(table)
    for sentence in estimate.sentences():
        print(sentence)
