"""Score representations with many metrics from one encoding: any callable, arrays of codes, or the model of a run."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from time import perf_counter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.arrays import as_array
from lddr.console import LONG, TaskBars, clock
from lddr.data import as_resolution
from lddr.data.array_files import WORDS, arrays_in, names_in
from lddr.data.columns import columns_of_arrays, factor_table, factor_table_of
from lddr.data.dataset import Dataset, Images, as_floats, stream
from lddr.data.factors import Factor, FactorSpace, FactorTable, Indices
from lddr.data.load import as_dataset, is_path
from lddr.errors import UserError
from lddr.files import in_one_line, named
from lddr.metrics.information import checked
from lddr.metrics.metric import (
    Chosen,
    Draws,
    EncodedImages,
    FewSamplesWarning,
    Metric,
    MetricSettings,
    Names,
    Result,
    Samples,
    Tell,
    UndefinedError,
    configured,
    cores,
    of_few_samples,
    plain,
    side_by_side,
)
from lddr.settings import Rule

if TYPE_CHECKING:
    from lddr.trained import Trained

Encode = Callable[[Images], ArrayLike]  # → (count, latents)

BATCH = 512
BLOCK = 16  # images whose random colours and noise, in datasets that have them, come from one generator


@dataclass(frozen=True)
class Plan:
    """The images that every metric samples, why some metrics cannot, and the distinct images of all samples."""

    draws: dict[str, Draws]
    undefined: dict[str, str]
    images: Indices  # (distinct,), sorted

    @property
    def drawn(self) -> int:
        return sum(numbers.size for parts in self.draws.values() for numbers in parts.values())


def planned(space: FactorSpace, metrics: Mapping[str, Metric], seed: int) -> Plan:
    """Sample the images of all metrics; each metric has its own random stream, so the other metrics change nothing.

    If only some images are labelled, a metric that needs factors uses the images whose factors are all known: as
    there may be few, they are divided among its parts, not sampled with replacement. Other metrics use all images.
    """
    draws, undefined = {}, {}
    known, images = labelled(space)
    for name, metric in metrics.items():
        try:
            check_factors(metric, known)
            if metric.labels and images is not None:
                draws[name] = {part: images[numbers] for part, numbers in _of_few(known, metric, seed).items()}
            else:
                draws[name] = metric.draw(space, stream(seed, f"metric {name}"))
        except UndefinedError as reason:
            undefined[name] = str(reason)
    numbers = [array.ravel() for parts in draws.values() for array in parts.values()]
    return Plan(draws, undefined, np.unique(np.concatenate([np.zeros(0, np.int64), *numbers])))


def _of_few(space: FactorSpace, metric: Metric, seed: int) -> Draws:
    if metric.needs == "codes":
        return divided(metric, space.size, seed)
    return metric.draw(space, stream(seed, f"metric {metric.name}"))


def divided(metric: Metric, count: int, seed: int) -> Draws:
    """Divide samples 0 … count - 1 among the parts of the metric, in the proportion of the parts' sizes."""
    wanted = metric.parts
    if not wanted:
        return {}
    share = min(1.0, count / sum(wanted.values()))
    order: Indices = stream(seed, f"metric {metric.name}").permutation(count)
    ends = np.cumsum([round(share * size) for size in wanted.values()])
    if share < 1:
        ends[-1] = count
    return {part: order[first:last] for part, first, last in zip(wanted, [0, *ends], ends, strict=False)}


def labelled(space: FactorSpace) -> tuple[FactorSpace, Indices | None]:
    """Return the factor space of the fully labelled images, and their indices; None if that is all of them."""
    if space.is_complete or not isinstance(space, FactorTable):
        return space, None
    images = space.fully_labelled()
    return space.subset(images), images


def check_factors(metric: Metric, space: FactorSpace) -> None:
    """Refuse a metric that needs factors if none of them varies, or if no image is fully labelled."""
    if metric.labels and space.factors and not space.size:
        raise UndefinedError(f"no image has all of its factors labelled: {', '.join(space.names)}")
    if metric.labels and not any(size > 1 for size in space.sizes):
        raise UndefinedError("there are no ground-truth factors with at least two values to compare the codes with")


def encoded(
    dataset: Dataset,
    space: FactorSpace,
    images: Indices,
    encode: Encode,
    seed: int,
    tell: Callable[[float], None] = lambda count: None,
) -> EncodedImages:
    """Return the codes of these images, each encoded once; `tell` is called with the number of encoded images.

    It takes 4 bytes per image and latent, and only one batch of images is in memory at a time.
    """
    codes: NDArray[np.float32] | None = None
    done = 0
    for pictures in pictures_of(dataset, images, seed):
        part = _checked(encode(pictures), len(pictures))
        codes = np.empty((len(images), part.shape[1]), np.float32) if codes is None else codes
        if part.shape[1] != codes.shape[1]:
            raise UserError(f"represent gave {codes.shape[1]} latents for one batch and {part.shape[1]} for another")
        codes[done : done + len(part)] = part
        done += len(part)
        tell(len(part))
    return EncodedImages(space, images, np.zeros((0, 0), np.float32) if codes is None else codes)


def pictures_of(dataset: Dataset, images: Indices, seed: int) -> Iterator[Images]:
    """Iterate over images in batches; random parts of an image depend only on its index and the seed."""
    for first in range(0, len(images), BATCH):
        numbers = images[first : first + BATCH]
        yield dataset.images(numbers) if dataset.is_fixed else _by_blocks(dataset, numbers, seed)


def _by_blocks(dataset: Dataset, numbers: Indices, seed: int) -> Images:
    """Render whole blocks of neighbouring indices, each with its own generator, and select the requested images."""
    blocks = np.unique(numbers // BLOCK)
    parts = []
    for block in blocks:
        members = np.arange(block * BLOCK, min((block + 1) * BLOCK, len(dataset)))
        drawn = dataset.images(members, stream(seed, "metric images", int(block)))
        parts.append(drawn[np.isin(members, numbers)])
    return np.concatenate(parts)


def _checked(codes: ArrayLike, count: int) -> NDArray[np.float32]:
    array = as_array(codes)
    if array.ndim != 2 or len(array) != count:
        raise UserError(f"represent must give codes of shape ({count}, latents) for {count} images, not {array.shape}")
    if not np.isfinite(array).all():
        raise UserError("represent gave codes that are not finite; mend the model before it is scored")
    return array.astype(np.float32)


def scorable(space: FactorSpace, bins: int | None = None) -> tuple[FactorSpace, dict[str, str]]:
    """Return the same images with the factors that can be scored, and why the others cannot.

    A numeric column whose values mostly occur once is continuous: it is divided into `bins` equal bins, or left out.
    Unknown values stay unknown.
    """
    if not isinstance(space, FactorTable):
        return space, {}
    factors, columns, left_out = [], [], {}
    for factor, column, known in zip(space.factors, space.rows.T, space.known.T, strict=True):
        images = int(known.sum())
        if not _is_continuous(factor, images):
            factors.append(factor)
            columns.append(column)
        elif bins is None:
            reason = f"continuous: {factor.size} different numbers in {images} images; --bins 20 puts it into bins"
            left_out[factor.name] = reason
        else:
            numbers = np.asarray(factor.values)[column[known]]
            edges = np.histogram_bin_edges(numbers, bins)
            factors.append(Factor(factor.name, bins))
            binned = column.copy()
            binned[known] = np.digitize(numbers, edges[1:-1])
            columns.append(binned)
    rows = np.stack(columns, axis=1) if columns else np.zeros((space.size, 0), np.int64)
    return FactorTable(factors, rows), left_out


def _is_continuous(factor: Factor, images: int) -> bool:
    numeric = factor.values is not None and not any(isinstance(value, str) for value in factor.values)
    return numeric and factor.size > max(2, images / 2)


SHARE = 0.9  # of the resamples, in the interval
FEWEST, MOST = 20, 100_000  # resamples; fewer do not resolve the tails of 5 %


@dataclass(frozen=True)
class Bootstrap:
    """The number of resamples (0 for none), and their seed."""

    resamples: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples != 0:
            Rule(0, "", int, at_least=FEWEST, at_most=MOST).fitting("bootstrap", self.resamples)

    def applies_to(self, metric: Metric) -> bool:
        """Return whether a metric gets intervals: all metrics that are computed from codes do."""
        return self.resamples > 0 and metric.needs != "model"

    def settings_of(self, metric: Metric) -> dict[str, int]:
        """Return what is stored in the settings of an entry."""
        return {"bootstrap": self.resamples} if self.applies_to(metric) else {}

    def scored(self, metric: Metric, samples: Samples, told: Tell, say: Callable[[str], None]) -> Result:
        """Return a metric's result, with intervals if requested; `say` is called with the expected duration."""
        if not self.applies_to(metric):
            return metric.score(samples, told)
        _check_rows(metric, samples)
        rest = self.resamples - 1
        result = metric.score(samples, lambda part: told(part / (2 + rest)))
        begun, first = perf_counter(), _numbers_of_resamples(metric, samples, self.seed, range(1))
        seconds = perf_counter() - begun
        if seconds * rest > LONG:
            say(f"{metric.name}: {self.resamples} resamples, ETA {clock(seconds * rest)}")
        chunks = _chunks(range(1, self.resamples), seconds)
        tasks, costs = (
            [(metric, samples, self.seed, chunk) for chunk in chunks],
            [float(len(chunk)) for chunk in chunks],
        )
        others = side_by_side(_numbers_of_resamples, tasks, costs, lambda part: told(part * rest / (2 + rest)))
        found = [*first, *chain.from_iterable(others)]
        return replace(result, bootstrap=_summary(_numbers(result), found, metric.labels))


def _check_rows(metric: Metric, samples: Samples) -> None:
    for part, sample in samples.items():
        if metric.needs == "codes" and len(sample) < 2:
            raise UserError(
                f"an interval of {metric.name} comes from resampled rows, and its {part!r} has {len(sample)} row; "
                "give more rows, or leave bootstrap out"
            )


def resampled(samples: Samples, generator: np.random.Generator) -> Samples:
    """Resample the rows of each part with replacement; rows never move between parts."""
    return {part: sample[drawn_rows(len(sample), generator)] for part, sample in samples.items()}


def drawn_rows(count: int, generator: np.random.Generator) -> Indices:
    """Return rows sampled with replacement, in random order, except that copies of a row stay together.

    The copies are then in the same fold if training rows are divided into folds.
    """
    times = np.bincount(generator.integers(count, size=count), minlength=count)
    order = generator.permutation(count)
    return np.repeat(order, times[order])


def _chunks(numbers: range, seconds: float) -> list[range]:
    """Group resamples into tasks of about half a second: dispatching them individually takes longer than a MIG."""
    size = 1 + min(len(numbers) // 8, int(0.5 / max(seconds, 1e-6)))
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]


def _numbers_of_resamples(metric: Metric, samples: Samples, seed: int, numbers: range) -> list[dict[str, float]]:
    """Return the scores of the resamples for which the metric is defined; it may not be, e.g. if no factor varies."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewSamplesWarning)  # reported for the score itself
        for number in numbers:
            with suppress(UndefinedError):
                drawn = resampled(samples, stream(seed, f"bootstrap {metric.name}", number))
                found.append(_numbers(metric.score(drawn)))
    return found


def _numbers(result: Result) -> dict[str, float]:
    """Return the score and the other scalars of a result."""
    values = {entry.name: getattr(result, entry.name) for entry in fields(result)}
    return {name: value for name, value in values.items() if isinstance(value, float)}


def _summary(score: dict[str, float], resamples: list[dict[str, float]], is_share: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"share": SHARE, "resamples": len(resamples), "intervals": {}, "shifts": {}}
    for name, value in score.items():
        found = np.array([one[name] for one in resamples if name in one])
        if len(found) >= FEWEST:
            facts["intervals"][name], facts["shifts"][name] = interval(value, found, is_share)
    if not facts["intervals"]:
        facts["reason"] = (
            f"only {len(resamples)} of the resamples have a score: too few rows, or factors that hardly vary"
        )
    return facts


def interval(value: float, resamples: NDArray[np.float64], is_share: bool) -> tuple[tuple[float, float], float]:
    """Return the middle 90 % of the resamples, shifted so that their median is the value, and the size of that shift.

    A resample has 63 % of the distinct rows, which biases it: information is overestimated, classifiers learn less.
    Scores in [0, 1] are clipped to that range.
    """
    low, middle, high = np.quantile(resamples, [(1 - SHARE) / 2, 0.5, (1 + SHARE) / 2])
    shift = middle - value
    least = 0.0 if min(resamples.min(), value) >= 0 else -np.inf
    most = 1.0 if is_share and max(resamples.max(), value) <= 1 else np.inf
    return (float(max(low - shift, least)), float(min(high - shift, most))), float(shift)


HOW = "save it with numpy.savez(path, codes=codes, factors=factors)"


def read_codes(path: Path) -> tuple[NDArray, FactorTable]:
    """Read the arrays `codes` (samples, latents), `factors` (samples, factors) and `factor_names` of an .npz file."""
    found = arrays_in(path, ("codes", "factors", "factor_names"), HOW)
    with named(path):
        codes = _codes(found.get("codes"), names_in(path, HOW))
        return codes, factor_table(columns_of_arrays(found, len(codes), "samples"), len(codes))


def _codes(codes: NDArray | None, names: list[str]) -> NDArray:
    if codes is None:
        raise UserError(f"there is no array 'codes', only: {in_one_line(', '.join(names)) or 'nothing'}; {HOW}")
    if codes.ndim != 2 or codes.dtype.kind in WORDS or not codes.size:
        raise UserError(f"'codes' is {codes.dtype} of shape {codes.shape}; save numbers (samples, latents)")
    return codes


Represent = Callable[[NDArray[np.float32]], ArrayLike]  # images (count, height, width, channels) → (count, latents)
MANY_BINS = 10_000
Entries = dict[str, dict[str, Any]]  # metric → its score, its details, and its settings


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
    """Score a trained model, or any callable from images in [0, 1] to codes (count, latents).

    The dataset is one of lddr or anything that `lddr.train` takes, prepared like the images a model was trained on;
    `factors` are its labels, or True for those of a torch dataset. The images are floats (count, height, width,
    channels). `names` are metrics (by default, those that take seconds; "all" for all), `settings` change their
    settings, `jobs` is the number of cores to fit with (-1: all), and `bins` is the number of bins for a continuous
    factor (None: it is left out). `bootstrap` is the number of resamples of the drawn images that give every score
    a 90 % interval, under "bootstrap" of its entry (0: none).
    """
    resampling = Bootstrap(bootstrap, seed)
    trained: Any = represent if hasattr(represent, "represent") else None
    encode = trained.represent if trained else _in_floats(represent)
    chosen = configured(names, settings)
    images = as_dataset(dataset, factors, **_prepared_for(trained, dataset), quiet=quiet)
    with TaskBars(quiet) as bars, cores(jobs):
        entries = scored(images, encode, chosen, bins, bars, resampling, trained)
    warn_of_few(entries)
    return entries


def _prepared_for(trained: Any, dataset: Any) -> dict[str, Any]:
    """Return how to prepare images that are not a dataset of lddr yet: like those of the training."""
    made = getattr(trained, "preparation", None)
    if made is None:
        return {}
    size = {"resolution": as_resolution(*made.shape[:2])}
    if made.fit is None or (isinstance(dataset, str) and not is_path(dataset)):
        return size | {"fit": made.fit and "pad"}
    return size | {"fit": made.fit, "background": made.padding or "auto"}


def _in_floats(represent: Any) -> Encode:
    return lambda images: represent(as_floats(images))


def scored(
    dataset: Dataset,
    encode: Encode,
    chosen: Chosen,
    bins: int | None,
    bars: TaskBars,
    resampling: Bootstrap,
    trained: "Trained | None" = None,
    keep: Callable[[Entries], object] | None = None,
) -> Entries:
    """Plan, encode and score; `keep` is called with every entry as soon as it is computed."""
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
    """Return the note for a score that needs factors if only some images are fully labelled; empty otherwise."""
    _, images = labelled(space)
    if images is None:
        return {}
    taught = ", most of which supervised the training" if is_supervised else ""
    about = f"scored on the {len(images):,} of {space.size:,} {what} with all factors labelled{taught}"
    warning = of_few_samples({"samples": len(images)})
    return {"labelled_images": len(images), "scored_on": about} | ({"warning": warning} if warning else {})


def draw_settings(seed: int, bins: int | None) -> dict[str, Any]:
    """Return the settings that all metrics are sampled with, as stored in their entries."""
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
    """Return every metric's result as plain values with all settings, or why it has none; quick metrics come first.

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
        if keep is not None:  # before it is shown: a printed score is not lost if the next metric is interrupted
            keep({metric.name: entries[metric.name]})
        bars.line(f"{metric.name:20} {in_words(entry):>8}   {len(entries)} of {len(chosen)}")
    return {name: entries[name] for name in chosen}


def in_words(entry: Mapping[str, Any]) -> str:
    """Format the score of an entry, with its interval if it has one."""
    score = "-" if entry["score"] is None else f"{entry['score']:.4f}"
    limits = entry.get("bootstrap", {}).get("intervals", {}).get("score")
    return score if limits is None else f"{score} [{limits[0]:.4f}, {limits[1]:.4f}]"


def _entry(metric: Metric, result: Callable[[Metric, Tell], Result], told: Tell) -> dict[str, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewSamplesWarning)  # the warning is in the entry
            found = result(metric, told).as_dict()
    except UndefinedError as reason:
        return {"score": None, "reason": str(reason), "settings": metric.settings}
    few = of_few_samples(found["settings"])
    return found | ({"warning": few} if few else {})


def warn_of_few(entries: Entries) -> None:
    """Warn once about all scores from few samples, at the caller's line."""
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
    """Return whether an entry of scores.json is of this metric with these settings."""
    if entry is None:
        return False
    asked = metric.settings | draw_settings(seed, bins) | dict(others or {})
    few = entry.get("labelled_images")
    if metric.needs == "codes" and isinstance(few, int):  # divided among the parts, which are smaller then
        sizes = {part: len(numbers) for part, numbers in divided(metric, few, seed).items()}
        asked |= {part: size for part, size in sizes.items() if part in asked}
    return plain(asked).items() <= entry.get("settings", {}).items()


def score_codes(
    codes: ArrayLike,
    factors: Any,
    names: Names = None,
    *,
    settings: MetricSettings | None = None,
    seed: int = 0,
    jobs: int = -1,
    bins: int | None = None,
    bootstrap: int = 0,
    quiet: bool = False,
) -> Entries:
    """Score codes (samples, latents) against factors (samples, factors); other metrics report why they have no score.

    `factors` may also be a DataFrame or a dict of columns. A value is unknown if it is NaN, None or "", or -1 in a
    column without other negative numbers; samples with an unknown value are left out where factors are needed.

    For metrics that train, the samples are split at random, in the proportion of the published sizes and never above
    them. `bins` is the number of bins for a continuous factor (None: it is left out); `bootstrap` is the number of
    resamples of the rows that give every score a 90 % interval, under "bootstrap" of its entry (0: none).
    """
    common, resampling = draw_settings(seed, bins), Bootstrap(bootstrap, seed)
    table = factors if isinstance(factors, FactorTable) else factor_table_of(factors)
    space, left_out = scorable(table, bins)
    values, _ = checked(codes, np.zeros((space.size, 1), np.int64))
    encoded = EncodedImages(space, np.arange(space.size), values)
    known, rows = labelled(space)

    def result(metric: Metric, told: Tell) -> Result:
        if metric.needs == "interventions":
            raise UndefinedError(
                f"{metric.title} looks at images with one factor held: it needs the dataset and a way to encode it, "
                "with lddr evaluate RUN or lddr.evaluate(dataset, represent)"
            )
        check_factors(metric, known)
        if metric.labels and rows is not None:
            draws = {part: rows[numbers] for part, numbers in divided(metric, len(rows), seed).items()}
        else:
            draws = divided(metric, space.size, seed)
        return resampling.scored(metric, encoded.samples(draws), told, bars.line)

    few = of_few_labels(space, "samples")
    with TaskBars(quiet) as bars, cores(jobs):
        entries = entries_of(configured(names, settings), result, common, left_out, bars, resampling, few)
    warn_of_few(entries)
    return entries
