"""Score the model of a run, and keep the scores in its folder."""

from pathlib import Path
from typing import Any

from lddr.console import TaskBars
from lddr.data.dataset import Dataset
from lddr.metrics.evaluate import Options, is_scored, score_images
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
) -> dict[str, Any]:
    """Score a finished run and keep every score in its scores.json as soon as it is computed.

    Scores that are there with the same settings are not computed again.
    """
    from lddr.trained import Trained

    run, options = RunFolder(folder), Options(seed, bins, bootstrap)
    scores, chosen = run.scores, choose_metrics(names, settings)
    known = {} if force else run.metrics
    missing = {name: metric for name, metric in chosen.items() if not is_scored(known.get(name), metric, options)}
    if not missing:
        return scores
    run.check_writable()
    trained = Trained.load(folder).to(device)
    if dataset is not None:
        run.check(dataset)
    with TaskBars(quiet) as bars, parallel_jobs(jobs):
        score_images(dataset or run.dataset, trained.represent, missing, options, bars, trained, keep=run.add_scores)
    return run.scores
