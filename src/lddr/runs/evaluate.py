"""Score the model of a run, and keep the scores in its folder."""

from copy import copy
from pathlib import Path
from typing import Any

from lddr.console import TaskBars
from lddr.data.correlated import Correlated
from lddr.data.dataset import Dataset
from lddr.errors import UserError
from lddr.metrics.evaluate import Entries, Options, is_scored, score_images
from lddr.metrics.metric import MetricSettings, Names, choose_metrics, parallel_jobs
from lddr.runs.folder import RunFolder


def evaluate_run(
    folder: Path,
    names: Names = None,
    *,
    settings: MetricSettings | None = None,
    seed: int = 0,
    jobs: int = 1,
    bins: int | None = None,
    bootstrap: int = 0,
    force: bool = False,
    quiet: bool = False,
    dataset: Dataset | None = None,
    device: str = "auto",
    distribution: str = "uniform",
) -> dict[str, Any]:
    """Score a finished run and keep every score in its scores.json as soon as it is computed.

    Existing scores with the same settings are reused. The distribution "training" samples images with the correlated
    factors that the run was trained on; these scores are kept apart, as "mig@training".
    """
    from lddr.trained import Trained

    run, options = RunFolder(folder), Options(seed, bins, bootstrap, distribution)
    scores, chosen = run.scores, choose_metrics(names, settings)
    known = {} if force else run.metrics
    missing = {
        name: metric
        for name, metric in chosen.items()
        if not is_scored(known.get(options.stored_name(name)), metric, options)
    }
    if not missing:
        return scores
    run.check_writable()
    trained = Trained.load(folder).to(device)
    if dataset is not None:
        run.check(dataset)
    images = dataset or run.dataset
    if distribution == "training":
        rule = run.config.training.correlate
        if rule == "none":
            raise UserError(f"{run} was trained without correlations, so only its uniform distribution can be scored")
        images = copy(images)
        images.space = Correlated(images.space, rule)

    def keep(entries: Entries) -> None:
        run.add_scores({options.stored_name(name): entry for name, entry in entries.items()})

    with TaskBars(quiet) as bars, parallel_jobs(jobs):
        score_images(images, trained.represent, missing, options, bars, trained, keep)
    return run.scores
