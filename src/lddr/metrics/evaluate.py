"""Score a representation with many metrics from one encoding: any callable on a dataset, or the model of a run."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.console import TaskBars
from lddr.data.dataset import Dataset, as_floats
from lddr.metrics.choice import Chosen, MetricSettings, configured
from lddr.metrics.fitting import cores
from lddr.metrics.metric import Metric, Result, Tell, UndefinedError, plain
from lddr.metrics.plan import Encode, encoded, planned, scorable
from lddr.runs.folder import RunFolder

if TYPE_CHECKING:
    from lddr.trained import Trained

Represent = Callable[[NDArray[np.float32]], ArrayLike]  # images (count, height, width, channels) → (count, latents)
Entries = dict[str, dict[str, Any]]  # metric → its score, what else it found, and its settings


def evaluate(
    dataset: Dataset,
    represent: Represent,
    names: Iterable[str] | None = None,
    *,
    settings: MetricSettings | None = None,
    seed: int = 0,
    jobs: int = -1,
    bins: int | None = None,
    quiet: bool = False,
) -> Entries:
    """Scores of any callable from images, floats in [0, 1] (count, height, width, channels), to codes (count, latents).

    `names` are metrics (when left out, all that need no model), `settings` change theirs, `jobs` is the number of
    cores to fit with (-1: all), and `bins` how many bins a continuous factor is put into (None: it is left out).
    """
    chosen = configured(names, settings)
    if names is None:
        chosen = {name: metric for name, metric in chosen.items() if metric.needs != "model"}
    with TaskBars(quiet) as bars, cores(jobs):
        return _evaluated(dataset, lambda images: represent(as_floats(images)), chosen, seed, bins, bars)


def evaluate_run(
    folder: Path,
    names: Iterable[str] | None = None,
    *,
    settings: MetricSettings | None = None,
    seed: int = 0,
    jobs: int = 1,
    bins: int | None = None,
    force: bool = False,
    quiet: bool = False,
    dataset: Dataset | None = None,
) -> dict[str, Any]:
    """Score a finished run and keep the scores in its scores.json; what is there with the same settings is kept."""
    from lddr.trained import Trained

    run = RunFolder(folder)
    there = run.scores
    chosen = configured(names, settings)
    known = {} if force else run.metrics
    missing = {name: metric for name, metric in chosen.items() if not is_scored(known.get(name), metric, seed, bins)}
    if not missing:
        return there
    trained = Trained.load(folder)
    if dataset is not None:
        run.check(dataset)
    images = dataset or run.dataset
    with TaskBars(quiet) as bars, cores(jobs):
        found = _evaluated(images, trained.represent, missing, seed, bins, bars, trained)
    return run.add_scores(found)


def _evaluated(
    dataset: Dataset,
    encode: Encode,
    chosen: Chosen,
    seed: int,
    bins: int | None,
    bars: TaskBars,
    trained: "Trained | None" = None,
) -> Entries:
    """Plan, encode, score."""
    space, left_out = scorable(dataset.space, bins)
    plan = planned(space, chosen, seed)
    encoding = f"encoding {len(plan.images):,} distinct images of {plan.drawn:,} drawn"
    with bars.task(encoding, len(plan.images)) as advance:
        table = encoded(dataset, space, plan.images, encode, seed, advance)

    def result(metric: Metric, told: Tell) -> Result:
        if metric.name in plan.undefined:
            raise UndefinedError(plan.undefined[metric.name])
        if metric.needs == "model" and trained is not None:
            return metric((trained, dataset, seed), told)
        return metric.score(table.samples(plan.draws[metric.name]), told)

    return entries_of(chosen, result, {"draw_seed": seed, "bins": bins}, left_out, bars)


def entries_of(
    chosen: Chosen,
    result: Callable[[Metric, Tell], Result],
    common: dict[str, Any],
    left_out: dict[str, str],
    bars: TaskBars,
) -> Entries:
    """The result of every metric as plain values with all settings, or the reason why it has none."""
    entries: Entries = {}
    for name, metric in chosen.items():
        with bars.task(name) as advance:
            try:
                entries[name] = result(metric, advance).as_dict()
            except UndefinedError as reason:
                entries[name] = {"score": None, "reason": str(reason), "settings": metric.settings}
        entries[name]["settings"] = plain(metric.settings | common | entries[name]["settings"])
        if left_out and metric.labels:
            entries[name]["factors_left_out"] = left_out
    return entries


def is_scored(entry: Mapping[str, Any] | None, metric: Metric, seed: int = 0, bins: int | None = None) -> bool:
    """Whether an entry of scores.json is of this metric with these settings."""
    asked = plain(metric.settings | {"draw_seed": seed, "bins": bins})
    return entry is not None and asked.items() <= entry.get("settings", {}).items()
