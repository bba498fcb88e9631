"""Score a representation with many metrics from one encoding: any callable on a dataset, or the model of a run."""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.console import TaskBars
from lddr.data import as_resolution
from lddr.data.dataset import Dataset, as_floats
from lddr.data.factors import FactorSpace
from lddr.data.load import as_dataset, is_path
from lddr.metrics.bootstrap import Bootstrap
from lddr.metrics.choice import Chosen, MetricSettings, Names, configured
from lddr.metrics.fitting import cores
from lddr.metrics.metric import Metric, Result, Tell, UndefinedError, plain
from lddr.metrics.plan import Encode, divided, encoded, labelled, planned, scorable
from lddr.metrics.signature import FewSamplesWarning, of_few_samples
from lddr.runs.folder import RunFolder
from lddr.settings import Rule

if TYPE_CHECKING:
    from lddr.trained import Trained

Represent = Callable[[NDArray[np.float32]], ArrayLike]  # images (count, height, width, channels) → (count, latents)
MANY_BINS = 10_000
Entries = dict[str, dict[str, Any]]  # metric → its score, what else it found, and its settings


def evaluate(
    dataset: Any,
    represent: "Represent | Trained",
    names: Names = None,
    *,
    factors: Any = None,
    settings: MetricSettings | None = None,
    seed: int = 0,
    jobs: int = -1,
    bins: int | None = None,
    bootstrap: int = 0,
    quiet: bool = False,
) -> Entries:
    """Scores of a trained model, or of any callable from images in [0, 1] to codes (count, latents).

    The dataset is one of lddr or whatever `lddr.train` takes, which is prepared as the images a model was trained on;
    `factors` are its labels, or True for those of a torch dataset. The images are floats (count, height, width,
    channels). `names` are metrics (when left out, those that take seconds;
    "all" for all), `settings` change theirs, `jobs` is the number of cores to fit with (-1: all), and `bins` how many
    bins a continuous factor is put into (None: it is left out). `bootstrap` is how many resamples of what was drawn
    give every score a 90 % interval, under "bootstrap" of its entry (0: none).
    """
    resampling = Bootstrap(bootstrap, seed)
    trained: Any = represent if hasattr(represent, "represent") else None
    encode = trained.represent if trained else _in_floats(represent)
    chosen = configured(names, settings)
    images = as_dataset(dataset, factors, **_prepared_for(trained, dataset), quiet=quiet)
    with TaskBars(quiet) as bars, cores(jobs):
        entries = _evaluated(images, encode, chosen, bins, bars, resampling, trained)
    warn_of_few(entries)
    return entries


def _prepared_for(trained: Any, dataset: Any) -> dict[str, Any]:
    """How to prepare images that are no dataset of lddr yet: as those of the training."""
    made = getattr(trained, "preparation", None)
    if made is None:
        return {}
    size = {"resolution": as_resolution(*made.shape[:2])}
    if made.fit is None or (isinstance(dataset, str) and not is_path(dataset)):
        return size | {"fit": made.fit and "pad"}
    return size | {"fit": made.fit, "background": made.padding or "auto"}


def _in_floats(represent: Any) -> Encode:
    return lambda images: represent(as_floats(images))


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
        _evaluated(images, trained.represent, missing, bins, bars, resampling, trained, keep=run.add_scores)
    return run.scores


def _evaluated(
    dataset: Dataset,
    encode: Encode,
    chosen: Chosen,
    bins: int | None,
    bars: TaskBars,
    resampling: Bootstrap,
    trained: "Trained | None" = None,
    keep: Callable[[Entries], object] | None = None,
) -> Entries:
    """Plan, encode, score; `keep` is called with every entry as soon as it is there."""
    seed = resampling.seed
    common = draw_settings(seed, bins)
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
        return resampling.scored(metric, table.samples(plan.draws[metric.name]), told, bars.line)

    is_supervised = trained is not None and trained.config.supervision is not None
    few = of_few_labels(space, "images", is_supervised)
    return entries_of(chosen, result, common, left_out, bars, resampling, few, keep)


def of_few_labels(space: FactorSpace, what: str, is_supervised: bool = False) -> dict[str, Any]:
    """What to add to a score that needs factors where only some images have all of them; nothing where all do."""
    _, images = labelled(space)
    if images is None:
        return {}
    taught = ", most of which supervised the training" if is_supervised else ""
    about = f"scored on the {len(images):,} of {space.size:,} {what} with all factors labelled{taught}"
    warning = of_few_samples({"samples": len(images)})
    return {"labelled_images": len(images), "scored_on": about} | ({"warning": warning} if warning else {})


def draw_settings(seed: int, bins: int | None) -> dict[str, Any]:
    """What all metrics are drawn with, as it stands in their settings."""
    fitting = None if bins is None else Rule(20, "", int, at_least=2, at_most=MANY_BINS).fitting("bins", bins)
    return {"draw_seed": Rule(0, "", int, at_least=0).fitting("seed", seed), "bins": fitting}


def entries_of(
    chosen: Chosen,
    result: Callable[[Metric, Tell], Result],
    common: dict[str, Any],
    left_out: dict[str, str],
    bars: TaskBars,
    resampling: Bootstrap | None = None,
    few: Mapping[str, Any] = MappingProxyType({}),
    keep: Callable[[Entries], object] | None = None,
) -> Entries:
    """The result of every metric as plain values with all settings, or the reason why it has none; quick ones first.

    `left_out` and `few` are added to the entries of metrics that need factors.
    """
    entries: Entries = {}
    for metric in sorted(chosen.values(), key=lambda metric: metric.seconds):
        with bars.task(metric.name) as advance:
            entry = _entry(metric, result, advance)
        resamples = resampling.settings_of(metric) if resampling else {}
        entries[metric.name] = entry | {"settings": plain(metric.settings | common | resamples | entry["settings"])}
        if left_out and metric.labels:
            entries[metric.name]["factors_left_out"] = left_out
        if metric.labels and entry["score"] is not None:
            entries[metric.name] |= few
        if keep is not None:  # before it is shown: what was printed is not lost if the next metric is interrupted
            keep({metric.name: entries[metric.name]})
        bars.line(f"{metric.name:20} {in_words(entry):>8}   {len(entries)} of {len(chosen)}")
    return {name: entries[name] for name in chosen}


def in_words(entry: Mapping[str, Any]) -> str:
    """The score of an entry with its interval, where it has one."""
    score = "-" if entry["score"] is None else f"{entry['score']:.4f}"
    limits = entry.get("bootstrap", {}).get("intervals", {}).get("score")
    return score if limits is None else f"{score} [{limits[0]:.4f}, {limits[1]:.4f}]"


def _entry(metric: Metric, result: Callable[[Metric, Tell], Result], told: Tell) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewSamplesWarning)  # it is in the entry
            found = result(metric, told).as_dict()
    except UndefinedError as reason:
        return {"score": None, "reason": str(reason), "settings": metric.settings}
    few = of_few_samples(found["settings"])
    return found | ({"warning": few} if few else {})


def warn_of_few(entries: Entries) -> None:
    """Warn once of all scores of few samples, in the name of who called."""
    few = {name: entry["warning"] for name, entry in entries.items() if "warning" in entry}
    if few:
        warnings.warn(f"{', '.join(few)}: {next(iter(few.values()))}", FewSamplesWarning, stacklevel=3)


def is_scored(
    entry: Mapping[str, Any] | None,
    metric: Metric,
    seed: int = 0,
    bins: int | None = None,
    others: Mapping[str, Any] | None = None,
) -> bool:
    """Whether an entry of scores.json is of this metric with these settings."""
    if entry is None:
        return False
    asked = metric.settings | draw_settings(seed, bins) | dict(others or {})
    few = entry.get("labelled_images")
    if metric.needs == "codes" and isinstance(few, int):  # divided among the parts, which are smaller then
        sizes = {part: len(numbers) for part, numbers in divided(metric, few, seed).items()}
        asked |= {part: size for part, size in sizes.items() if part in asked}
    return plain(asked).items() <= entry.get("settings", {}).items()
