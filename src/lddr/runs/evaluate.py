"""Score the model of a run, and keep the scores in its folder."""

from pathlib import Path
from typing import Any

from lddr.console import TaskBars
from lddr.data.dataset import Dataset
from lddr.metrics.evaluate import Bootstrap, is_scored, scored
from lddr.metrics.metric import MetricSettings, Names, configured, cores
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
) -> dict[str, Any]:
    """Score a finished run and keep every score in its scores.json as soon as it is known.

    What is there with the same settings is not computed again.
    """
    from lddr.trained import Trained

    run = RunFolder(folder)
    there = run.scores
    chosen, resampling = configured(names, settings), Bootstrap(bootstrap, seed)
    known = {} if force else run.metrics
    missing = {
        name: metric
        for name, metric in chosen.items()
        if not is_scored(known.get(name), metric, seed, bins, resampling.settings_of(metric))
    }
    if not missing:
        return there
    run.check_writable()
    trained = Trained.load(folder).to(device)
    if dataset is not None:
        run.check(dataset)
    images = dataset or run.dataset
    with TaskBars(quiet) as bars, cores(jobs):
        scored(images, trained.represent, missing, bins, bars, resampling, trained, keep=run.add_scores)
    return run.scores
