"""`lddr metrics`, `lddr evaluate` and `lddr score`."""

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from lddr.cli.app import Changes, File, Roots, Whole, app


@app.command(name="metrics")
def metrics_() -> None:
    """List the metrics: what each needs, its settings with the published values, and what it is."""
    from lddr.metrics.commands import list_metrics

    list_metrics()


@app.command
def evaluate(
    folders: Roots = (Path("runs"),),
    metrics: str = "all",
    dci: Literal["published", "fast"] = "published",
    gap: Literal["paper", "authors"] = "paper",
    set: Changes = (),  # noqa: A002
    seed: int = 0,
    jobs: int = -1,
    bins: Whole = None,
    force: bool = False,
) -> None:
    """Score finished runs: each distinct image is encoded once, and the scores are kept in the run's scores.json.

    What is there already with the same settings is not computed again.

    Args:
        folders: Finished runs, or folders that hold runs, at any depth.
        metrics: Names from `lddr metrics`, with commas between them, or all.
        dci: The published gradient boosting, or the same on codes sorted once, ten times as fast; see docs/metrics.md.
        gap: The straight-through gap of the ELBO, or of the training loss as in the authors' code.
        set: Other settings, such as mig.num_bins=30 (not comparable with published scores then).
        seed: Decides which images are drawn.
        jobs: Cores to fit with; -1 for all.
        bins: Put continuous factors into this many equal bins; they are left out otherwise.
        force: Compute anew what is there already.
    """
    from lddr.metrics.commands import evaluate_runs

    changes = [*set, *([f"dci.estimator={dci}"] * (dci != "published")), *([f"gap.variant={gap}"] * (gap != "paper"))]
    evaluate_runs(folders, metrics, changes, force, seed, jobs, bins)


@app.command
def score(
    codes: Annotated[Positional[Path], arg(metavar="FILE")],
    metrics: str = "all",
    dci: Literal["published", "fast"] = "published",
    set: Changes = (),  # noqa: A002
    seed: int = 0,
    jobs: int = -1,
    bins: Whole = None,
    out: File = None,
) -> None:
    """Score codes from any framework: an .npz file with `codes` (samples, latents) and `factors` (samples, factors).

    `factor_names` in the file is optional. What needs images or a model is named with the reason.

    Args:
        codes: The .npz file.
        metrics: Names from `lddr metrics`, with commas between them, or all.
        dci: The published gradient boosting, or the same on codes sorted once, ten times as fast; see docs/metrics.md.
        set: Other settings, such as mig.num_bins=30 (not comparable with published scores then).
        seed: Decides how samples are divided for metrics that train.
        jobs: Cores to fit with; -1 for all.
        bins: Put continuous factors into this many equal bins; they are left out otherwise.
        out: Also write the scores, with all details, as JSON here.
    """
    from lddr.metrics.commands import score_file

    changes = [*set, *([f"dci.estimator={dci}"] * (dci != "published"))]
    score_file(codes, metrics, changes, seed, jobs, bins, out)
