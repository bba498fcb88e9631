"""`lddr sweep`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lddr import console
from lddr.cli.app import (
    DATASET,
    app,
    argument,
    checkpoint_seconds,
    flag,
    one_of,
    option,
    out_folder,
    quiet,
    track,
    where,
)
from lddr.console import counted
from lddr.errors import UserError
from lddr.hardware import keep_freed_memory
from lddr.runs.folder import RunFolder

if TYPE_CHECKING:
    from lddr.sweeps.progress import Estimate
    from lddr.sweeps.study import Study

WIDEST = 1000  # characters of a table: wrapped lines are better than truncated numbers


@app.command()
@argument("study", "STUDY", help="A shipped study (circles, unregularized, …) or the path of a .toml file.")
@option(
    "--preset",
    **one_of("paper", "quick"),
    default="paper",
    help="paper for the full study, or quick for the smaller one that its [quick] table describes.",
)
@option("--dataset", metavar="NAME", help=f"Instead of the study's datasets: {DATASET[0].lower()}{DATASET[1:]}")
@where
@flag("--dry-run", "Print how many runs are left and their core-hours, estimated from a few timed steps.")
@out_folder("runs", "Where to put the run folders; on a cluster, a path that all nodes see.")
@option("--address", metavar="ADDRESS", help="A Ray cluster, or auto for this machine's.  [default: this machine only]")
@option("--workers", type=int, help="Runs at once at most.  [default: as many as there is room for]")
@option("--cpus-per-run", type=int, default=1, help="Cores, and torch threads, of each run.")
@option("--gpus-per-run", type=float, default=0.0, help="GPUs of each run; 0.25 puts four runs on each.")
@option("--retries", type=int, default=3, help="How often a failed run is tried again, from its checkpoint.")
@checkpoint_seconds
@track
@quiet
def sweep(
    study: str, preset: str, dataset: str | None, where: tuple[str, ...], dry_run: bool, out: Path, **options: Any
) -> None:
    """Train and score all runs of a study in parallel.

    They run on all cores of this machine, or on a Ray cluster. Finished runs are skipped and interrupted ones resume,
    so rerun the same command to resume a sweep.
    """
    from lddr.data.load import load_dataset, why_missing
    from lddr.sweeps.cluster import SweepOptions, run_study
    from lddr.sweeps.progress import estimate
    from lddr.sweeps.study import read_study

    sweep_options = SweepOptions(**options)
    chosen = read_study(study, "quick" if preset == "quick" else "full", dataset, where)
    if dry_run:
        keep_freed_memory()  # as in the workers
        print_estimate(estimate(chosen, out))
        return
    if sweep_options.address is None:  # a cluster may have images that are not here
        for images in dict.fromkeys(config.images for config in chosen.configs):
            if why := why_missing(images[0]):
                raise UserError(why)
            load_dataset(*images)  # refuses an unavailable size before any run starts
    outcome = run_study(chosen, out, sweep_options)
    if outcome.stopped:
        console.say("stopped; rerun the same command to resume")
        sys.exit(130)
    print_scores(chosen, out)
    finished = f"{counted(outcome.finished, 'run')} finished, {outcome.there} existed, {len(outcome.failures)} failed"
    lines = [f"{finished}; see {out}"]
    for failure in outcome.failures:
        details = RunFolder(failure.folder).error_file
        lines.append(f"  {failure.folder}: {failure.error}" + (f" (more in {details})" if details.exists() else ""))
    console.say("\n".join(lines))
    if outcome.failures:
        sys.exit(1)


def print_scores(study: "Study", out: Path) -> None:
    """Print the median scores of each point of the study."""
    from lddr.sweeps.progress import score_rows

    rows = score_rows(study, out)
    model, *others = rows[0]
    table = console.table(model, numbers=others, title=f"{study.name}: median over seeds")
    for row in rows:
        table.add_row(*row.values())
    console.show(table, width=WIDEST)


def print_estimate(estimate: "Estimate") -> None:
    """Print how many runs are done, how many are left, and what they cost."""
    if estimate.shares:
        table = console.table("model", "on", numbers=("runs left", "ms per step", "core-hours"))
        for share in estimate.shares:
            table.add_row(*share.cells())
        console.show(table)
    print(*estimate.sentences(), sep="\n")
