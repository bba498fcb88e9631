"""Score a representation with many metrics from one encoding: any callable on a dataset, or the model of a run."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from lddr.console import TaskBars
from lddr.data.dataset import Dataset
from lddr.errors import UserError
from lddr.metrics.fitting import watched
from lddr.metrics.metric import Metric, ModelMetric, Result, UndefinedError, metrics
from lddr.metrics.plan import Represent, encoded, planned, scorable
from lddr.runs.folder import RunFolder

Chosen = Mapping[str, Metric]
Entries = dict[str, dict[str, Any]]  # metric → its score, what else it found, and its settings
Settings = Mapping[str, Mapping[str, Any]]  # metric → setting → value


def evaluate(
    dataset: Dataset,
    represent: Represent,
    names: Iterable[str] | None = None,
    *,
    settings: Settings | None = None,
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
        chosen = {name: metric for name, metric in chosen.items() if not isinstance(metric, ModelMetric)}
    with TaskBars(quiet) as bars, cores(jobs):
        return _evaluated(dataset, represent, chosen, seed, bins, bars, lambda metric: metric.score({}))


def evaluate_run(
    folder: Path,
    names: Iterable[str] | None = None,
    *,
    settings: Settings | None = None,
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
        found = _evaluated(
            images,
            trained.represent,
            missing,
            seed,
            bins,
            bars,
            lambda metric: metric.score_model(trained, images, seed),
        )
    return run.add_scores(found)


def _evaluated(
    dataset: Dataset,
    represent: Represent,
    chosen: Chosen,
    seed: int,
    bins: int | None,
    bars: TaskBars,
    score_model: Callable[[ModelMetric], Result],
) -> Entries:
    """Plan, encode, score."""
    space, left_out = scorable(dataset.space, bins)
    plan = planned(space, chosen, seed)
    encoding = f"encoding {len(plan.images):,} distinct images of {plan.drawn:,} drawn"
    with bars.task(encoding, len(plan.images)) as advance:
        table = encoded(dataset, space, plan.images, represent, seed, advance)

    def result(name: str, metric: Metric) -> Result:
        if name in plan.undefined:
            raise UndefinedError(plan.undefined[name])
        if isinstance(metric, ModelMetric):
            return score_model(metric)
        return metric.score(table.samples(plan.draws[name]))

    return entries_of(chosen, result, {"draw_seed": seed, "bins": bins}, left_out, bars)


def entries_of(
    chosen: Chosen,
    result: Callable[[str, Metric], Result],
    common: dict[str, Any],
    left_out: dict[str, str],
    bars: TaskBars,
) -> Entries:
    """The result of every metric as plain values with all settings, or the reason why it has none."""
    entries: Entries = {}
    for name, metric in chosen.items():
        settings = asdict(metric) | common
        with bars.task(name) as advance, watched(advance):
            try:
                entries[name] = result(name, metric).as_dict()
                entries[name]["settings"] = _plain(settings | entries[name]["settings"])
            except UndefinedError as reason:
                entries[name] = {"score": None, "reason": str(reason), "settings": _plain(settings)}
        if left_out and metric.labels:
            entries[name]["factors_left_out"] = left_out
    return entries


def configured(names: Iterable[str] | None, settings: Settings | None = None) -> dict[str, Metric]:
    """The metrics with these names, all when there are none, with changed settings."""
    changes = settings or {}
    wanted = list(metrics) if names is None else list(dict.fromkeys(names))
    strangers = [name for name in changes if name not in wanted]
    if strangers:
        raise UserError(f"settings for {strangers[0]}, which is not among the metrics: {', '.join(wanted)}")
    return {name: _with(name, changes.get(name, {})) for name in wanted}


def _with(name: str, changes: Mapping[str, Any]) -> Metric:
    kind = metrics[name]
    known = {setting.name: setting.type for setting in fields(kind)}
    for setting, value in changes.items():
        if setting not in known:
            raise UserError(f"{name} has no setting {setting!r}; it has: {', '.join(known) or 'none'}")
        choices = get_args(known[setting]) if get_origin(known[setting]) is Literal else ()
        if choices and value not in choices:
            raise UserError(f"{name}.{setting} must be one of {', '.join(choices)}, not {value!r}")
    return kind(**changes)


def is_scored(entry: Mapping[str, Any] | None, metric: Metric, seed: int = 0, bins: int | None = None) -> bool:
    """Whether an entry of scores.json is of this metric with these settings."""
    asked = _plain(asdict(metric) | {"draw_seed": seed, "bins": bins})
    return entry is not None and asked.items() <= entry.get("settings", {}).items()


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(settings))


def cores(jobs: int) -> AbstractContextManager:
    """Let fits run on this many cores, all for -1."""
    from joblib import parallel_config

    return nullcontext() if jobs == 1 else parallel_config(n_jobs=jobs)
