"""Score representations with many metrics from one encoding: any callable, arrays of codes, or the model of a run."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.arrays import as_array
from lddr.console import LONG, TaskBars, clock
from lddr.data import as_resolution
from lddr.data.array_files import TEXT_KINDS, arrays_in, names_in
from lddr.data.columns import columns_of_arrays, factor_table, factor_table_of
from lddr.data.dataset import Dataset, Images, as_floats, stream
from lddr.data.factors import Factor, FactorSpace, FactorTable, Indices
from lddr.data.load import as_dataset, is_path
from lddr.errors import UserError
from lddr.files import in_one_line, named
from lddr.metrics.information import check_orientation, checked
from lddr.metrics.metric import (
    Draws,
    EncodedImages,
    FewSamplesWarning,
    Metric,
    MetricSettings,
    Names,
    Progress,
    Result,
    Samples,
    UndefinedError,
    choose_metrics,
    few_samples_warning,
    parallel_jobs,
    plain,
)
from lddr.metrics.probes import fit_in_parallel
from lddr.settings import Settings, setting
from lddr.statistics import centred_interval, resampled_rows

if TYPE_CHECKING:
    from lddr.trained import Trained

Encode = Callable[[Images], ArrayLike]  # → (count, latents)
Represent = Callable[[NDArray[np.float32]], ArrayLike]  # images (count, height, width, channels) → (count, latents)
Entries = dict[str, dict[str, Any]]  # metric → its score, its details, and its settings

BATCH = 512
BLOCK = 16  # images whose random colours and noise, in datasets that have them, come from one generator
CONFIDENCE = 0.9  # of the intervals
FEWEST_RESAMPLES = 20  # fewer do not resolve the tails of 5 %


@dataclass(frozen=True)
class Options(Settings):
    """What all metrics of an evaluation share."""

    seed: int = setting(0, "Decides which images are sampled.", at_least=0)
    bins: int | None = setting(None, "Bins of a continuous factor.", int, at_least=2, at_most=10_000)
    bootstrap: int = setting(0, "Resamples for intervals; 0 for none.", at_most=100_000)
    distribution: str = setting("uniform", "Which images are sampled.", choices=("uniform", "training"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.bootstrap != 0 and self.bootstrap < FEWEST_RESAMPLES:
            raise UserError(f"bootstrap must be at least {FEWEST_RESAMPLES}, not {self.bootstrap}")

    def settings_of(self, metric: Metric) -> dict[str, Any]:
        """Return all settings that a score depends on, as stored in its entry; a model's scores have no intervals."""
        resamples = {"bootstrap": self.bootstrap} if self.bootstrap and metric.needs != "model" else {}
        sampled = {} if self.distribution == "uniform" else {"distribution": self.distribution}
        return metric.settings | {"draw_seed": self.seed, "bins": self.bins} | resamples | sampled

    def stored_name(self, metric: str) -> str:
        """Return the name of a metric's entry in scores.json: "mig", or "mig@training"."""
        return metric if self.distribution == "uniform" else f"{metric}@{self.distribution}"


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
    """Score a trained model, or any callable from images to codes.

    Parameters
    ----------
    dataset : Dataset, array, tensor, path, …
        A dataset of lddr or anything that `lddr.train` takes, prepared like the images the model was trained on.
    represent : Trained or callable
        The model, or a function from images (count, height, width, channels) in [0, 1] to codes (count, latents).
    names : str or list of str, optional
        Metrics; by default those that take seconds, "all" for all.
    factors : array, table or True, optional
        The labels of the images, or True for those of a torch dataset.
    settings : dict, optional
        Settings that differ from the published ones: {"mig": {"num_bins": 30}}.
    seed : int
        Decides which images are sampled.
    jobs : int
        The number of cores to fit with; -1 for all.
    bins : int, optional
        Divide a continuous factor into this many bins; it is left out otherwise.
    bootstrap : int
        The number of resamples of the sampled images that give every score a 90 % interval, under "bootstrap" of its
        entry; 0 for none.
    quiet : bool
        Whether to print no progress.

    Returns
    -------
    dict
        For every metric its "score", details and "settings", or None as the score and the "reason".

    Examples
    --------
    >>> import lddr
    >>> circles = lddr.load_dataset("circles", 16)
    >>> def represent(images):  # the mean brightness of each half
    ...     return images.reshape(len(images), 2, -1).mean(axis=2)
    >>> entries = lddr.evaluate(circles, represent, ["mig"], quiet=True)
    >>> sorted(entries["mig"]["settings"])
    ['bin_edges', 'bins', 'draw_seed', 'num_bins', 'samples']
    """
    options, chosen = Options(seed, bins, bootstrap), choose_metrics(names, settings)
    trained: Any = represent if hasattr(represent, "represent") else None
    encode = trained.represent if trained else lambda images: represent(as_floats(images))  # type: ignore[operator]
    images = as_dataset(dataset, factors, **_preparation(trained, dataset), quiet=quiet)
    with TaskBars(quiet) as bars, parallel_jobs(jobs):
        entries = score_images(images, encode, chosen, options, bars, trained)
    _warn_of_few_samples(entries)
    return entries


def _preparation(trained: Any, dataset: Any) -> dict[str, Any]:
    """Return how to prepare images that are not a dataset of lddr yet: like those of the training."""
    made = getattr(trained, "preparation", None)
    if made is None:
        return {}
    size = {"resolution": as_resolution(*made.shape[:2])}
    if made.fit is None or (isinstance(dataset, str) and not is_path(dataset)):
        return size | {"fit": made.fit and "pad"}
    return size | {"fit": made.fit, "background": made.padding or "auto"}


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
    announce: bool = True,
) -> Entries:
    """Score codes from any source against factors; metrics that need more than codes report it as the reason.

    For metrics that train, the samples are split at random, in the proportion of the published sizes and never above
    them.

    Parameters
    ----------
    codes : array (samples, latents)
        Arrays and tensors of any framework.
    factors : array (samples, factors), DataFrame or dict of columns
        A value is unknown if it is NaN, None or "", or -1 in a column without other negative numbers; samples with an
        unknown value are left out where factors are needed.
    names, settings, seed, jobs, bins, bootstrap, quiet
        As for `lddr.evaluate`.
    announce : bool
        Whether to print each score as it arrives, too.

    Returns
    -------
    dict
        For every metric its "score", details and "settings", or None as the score and the "reason".

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import score_codes
    >>> factors = np.random.default_rng(0).integers(4, size=(2_000, 2))
    >>> entries = score_codes(factors * 0.5, factors, ["mig", "modularity"], quiet=True)
    >>> [round(entry["score"], 2) for entry in entries.values()]
    [1.0, 1.0]
    """
    options, chosen = Options(seed, bins, bootstrap), choose_metrics(names, settings)
    table = factors if isinstance(factors, FactorTable) else factor_table_of(factors)
    space, left_out = scorable(table, options.bins)
    values, _ = checked(codes, np.zeros((space.size, 1), np.int64))
    encoded = EncodedImages(space, np.arange(space.size), values)
    plan = plan_samples(space, chosen, options.seed, is_table=True)
    with TaskBars(quiet) as bars, parallel_jobs(jobs):
        few = _few_labels_note(space, "samples")
        entries = _score_samples(chosen, plan, encoded, options, bars, left_out, few, announce=announce)
    _warn_of_few_samples(entries)
    return entries


def score_images(
    dataset: Dataset,
    encode: Encode,
    chosen: Mapping[str, Metric],
    options: Options,
    bars: TaskBars,
    trained: "Trained | None" = None,
    keep: Callable[[Entries], object] | None = None,
) -> Entries:
    """Plan, encode and score; `keep` is called with every entry as soon as it is computed."""
    space, left_out = scorable(dataset.space, options.bins)
    plan = plan_samples(space, chosen, options.seed)
    encoding = f"encoding {len(plan.images):,} distinct images of {plan.drawn:,} drawn"
    with bars.task(encoding, len(plan.images)) as advance:
        encoded = encode_images(dataset, space, plan.images, encode, options.seed, advance)
    is_supervised = trained is not None and trained.config.supervision is not None
    note = _few_labels_note(space, "images", is_supervised)
    model = None if trained is None else (trained, dataset, options.seed)
    return _score_samples(chosen, plan, encoded, options, bars, left_out, note, model, keep)


def _score_samples(
    chosen: Mapping[str, Metric],
    plan: "Plan",
    encoded: EncodedImages,
    options: Options,
    bars: TaskBars,
    left_out: dict[str, str],
    few_labels: dict[str, Any],
    model: "tuple[Trained, Dataset, int] | None" = None,
    keep: Callable[[Entries], object] | None = None,
    announce: bool = True,
) -> Entries:
    """Return every metric's result as plain values with all settings, or why it has none; quick metrics come first.

    `left_out` and `few_labels` are added to the entries of metrics that need factors.
    """
    entries: Entries = {}
    for metric in sorted(chosen.values(), key=lambda metric: metric.seconds):
        settings = options.settings_of(metric)
        with bars.task(metric.name) as progress:
            try:
                if metric.name in plan.undefined:
                    raise UndefinedError(plan.undefined[metric.name])
                if metric.needs == "model" and model is not None:
                    result = metric.compute(model, progress)
                else:
                    samples = encoded.samples(plan.draws[metric.name])
                    result = score_with_intervals(metric, samples, options, progress, bars.line)
                entry = replace(result, settings=settings | result.settings).as_dict()
                few = few_samples_warning(entry["settings"])
                entry |= {"warning": few} if few else {}
            except UndefinedError as reason:
                entry = {"score": None, "reason": str(reason), "settings": plain(settings)}
        if metric.labels:
            entry |= {"factors_left_out": left_out} if left_out else {}
            entry |= few_labels if entry["score"] is not None else {}
        entries[metric.name] = entry
        if keep is not None:  # before it is shown: a printed score is not lost if the next metric is interrupted
            keep({metric.name: entry})
        if announce:
            bars.line(f"{metric.name:20} {score_text(entry):>8}   {len(entries)} of {len(chosen)}")
    return {name: entries[name] for name in chosen}


def score_text(entry: Mapping[str, Any]) -> str:
    """Format the score of an entry, with its interval if it has one."""
    score = "-" if entry["score"] is None else f"{entry['score']:.4f}"
    limits = entry.get("bootstrap", {}).get("intervals", {}).get("score")
    return score if limits is None else f"{score} [{limits[0]:.4f}, {limits[1]:.4f}]"


def _warn_of_few_samples(entries: Entries) -> None:
    """Warn once about all scores from few samples, at the line that called `evaluate` or `score_codes`."""
    few = {name: entry["warning"] for name, entry in entries.items() if "warning" in entry}
    if few:
        warnings.warn(f"{', '.join(few)}: {next(iter(few.values()))}", FewSamplesWarning, stacklevel=3)


def _few_labels_note(space: FactorSpace, what: str, is_supervised: bool = False) -> dict[str, Any]:
    """Return the note for a score that needs factors if only some images are fully labelled; empty otherwise."""
    images = _fully_labelled(space)[1]
    if images is None:
        return {}
    taught = ", most of which supervised the training" if is_supervised else ""
    about = f"scored on the {len(images):,} of {space.size:,} {what} with all factors labelled{taught}"
    warning = few_samples_warning({"samples": len(images)})
    return {"labelled_images": len(images), "scored_on": about} | ({"warning": warning} if warning else {})


def is_scored(entry: Mapping[str, Any] | None, metric: Metric, options: Options | None = None) -> bool:
    """Return whether an entry of scores.json is of this metric with these settings."""
    if entry is None:
        return False
    options = options or Options()
    wanted = options.settings_of(metric)
    few = entry.get("labelled_images")
    if metric.needs == "codes" and isinstance(few, int):  # divided among the parts, which are smaller then
        sizes = {part: len(rows) for part, rows in divide_rows(metric, few, options.seed).items()}
        wanted |= {part: size for part, size in sizes.items() if part in wanted}
    return plain(wanted).items() <= entry.get("settings", {}).items()


# which images


@dataclass(frozen=True)
class Plan:
    """The images that every metric samples, and why some metrics cannot."""

    draws: dict[str, Draws]
    undefined: dict[str, str]

    @property
    def drawn(self) -> int:
        """The number of sampled images."""
        return sum(indices.size for draws in self.draws.values() for indices in draws.values())

    @cached_property
    def images(self) -> Indices:
        """The distinct images of all samples, sorted."""
        indices = [array.ravel() for draws in self.draws.values() for array in draws.values()]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *indices]))


def plan_samples(space: FactorSpace, chosen: Mapping[str, Metric], seed: int, is_table: bool = False) -> Plan:
    """Sample the images of all metrics; each metric has its own random stream, so the other metrics change nothing.

    The rows of a given table of codes are divided among the parts of a metric, not sampled with replacement. So are
    the fully labelled images if there are others, because they may be few; metrics that need no factors use all images.
    """
    draws, undefined = {}, {}
    known, labelled = _fully_labelled(space)
    for name, metric in chosen.items():
        rows = labelled if metric.labels else None  # None: all of them
        here = known if metric.labels else space
        try:
            if is_table and metric.needs == "interventions":
                raise UndefinedError(
                    f"{metric.title} looks at images with one factor held: it needs the dataset and a way to encode "
                    "it, with lddr evaluate RUN or lddr.evaluate(dataset, represent)"
                )
            if metric.labels and space.factors and not known.size:
                raise UndefinedError(f"no image has all of its factors labelled: {', '.join(space.names)}")
            if metric.labels and not any(size > 1 for size in known.sizes):
                raise UndefinedError(
                    "there are no ground-truth factors with at least two values to compare the codes with"
                )
            if metric.needs == "codes" and (is_table or rows is not None):
                drawn = divide_rows(metric, here.size, seed)
            else:
                drawn = metric.draw(here, stream(seed, f"metric {name}"))
            draws[name] = drawn if rows is None else {part: rows[indices] for part, indices in drawn.items()}
        except UndefinedError as reason:
            undefined[name] = str(reason)
    return Plan(draws, undefined)


def divide_rows(metric: Metric, count: int, seed: int) -> Draws:
    """Divide rows 0 … count - 1 among the parts of the metric, in the proportion of the parts' sizes."""
    sizes = metric.parts
    if not sizes:
        return {}
    share = min(1.0, count / sum(sizes.values()))
    order: Indices = stream(seed, f"metric {metric.name}").permutation(count)
    ends = np.cumsum([round(share * size) for size in sizes.values()])
    if share < 1:
        ends[-1] = count
    return {part: order[first:last] for part, first, last in zip(sizes, [0, *ends], ends, strict=False)}


def _fully_labelled(space: FactorSpace) -> tuple[FactorSpace, Indices | None]:
    """Return the factor space of the fully labelled images, and their indices; None if that is all of them."""
    if space.is_complete or not isinstance(space, FactorTable):
        return space, None
    images = space.fully_labelled()
    return space.subset(images), images


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
        is_numeric = factor.values is not None and not any(isinstance(value, str) for value in factor.values)
        if is_numeric and factor.size > max(2, images / 2):
            if bins is None:
                reason = f"continuous: {factor.size} different numbers in {images} images; --bins 20 puts it into bins"
                left_out[factor.name] = reason
                continue
            numbers, column = np.asarray(factor.values)[column[known]], column.copy()
            column[known] = np.digitize(numbers, np.histogram_bin_edges(numbers, bins)[1:-1])
            factor = Factor(factor.name, bins)
        factors.append(factor)
        columns.append(column)
    rows = np.stack(columns, axis=1) if columns else np.zeros((space.size, 0), np.int64)
    return FactorTable(factors, rows), left_out


# their codes


def encode_images(
    dataset: Dataset,
    space: FactorSpace,
    images: Indices,
    encode: Encode,
    seed: int,
    progress: Callable[[float], None] = lambda count: None,
) -> EncodedImages:
    """Return the codes of these images, each encoded once; `progress` is called with the number of encoded images."""
    parts: list[NDArray[np.float32]] = []
    for batch in _batches(dataset, images, seed):
        found = as_array(encode(batch))
        if found.ndim != 2 or len(found) != len(batch):
            shape = f"({len(batch)}, latents) for {len(batch)} images, not {found.shape}"
            raise UserError(f"represent must give codes of shape {shape}")
        if not np.isfinite(found).all():
            raise UserError("represent gave NaN or infinite codes; fix the model before it is scored")
        if parts and found.shape[1] != parts[0].shape[1]:
            one, other = parts[0].shape[1], found.shape[1]
            raise UserError(f"represent gave {one} latents for one batch and {other} for another")
        parts.append(found.astype(np.float32))
        progress(len(found))
    codes = np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)
    return EncodedImages(space, images, codes)


def _batches(dataset: Dataset, images: Indices, seed: int) -> Iterator[Images]:
    """Iterate over images in batches; random parts of an image depend only on its index and the seed."""
    for first in range(0, len(images), BATCH):
        indices = images[first : first + BATCH]
        if dataset.is_fixed:
            yield dataset.images(indices)
            continue
        parts = []
        for block in np.unique(indices // BLOCK):  # each whole block of neighbours has its own generator
            members = np.arange(block * BLOCK, min((block + 1) * BLOCK, len(dataset)))
            drawn = dataset.images(members, stream(seed, "metric images", int(block)))
            parts.append(drawn[np.isin(members, indices)])
        yield np.concatenate(parts)


HOW = "save it with numpy.savez(path, codes=codes, factors=factors)"


def read_codes(path: Path) -> tuple[NDArray, FactorTable]:
    """Read the arrays `codes` (samples, latents), `factors` (samples, factors) and `factor_names` of an .npz file."""
    found = arrays_in(path, ("codes", "factors", "factor_names"), HOW)
    with named(path):
        codes = found.get("codes")
        if codes is None:
            names = in_one_line(", ".join(names_in(path, HOW))) or "nothing"
            raise UserError(f"there is no array 'codes', only: {names}; {HOW}")
        if codes.ndim != 2 or codes.dtype.kind in TEXT_KINDS or not codes.size:
            raise UserError(f"'codes' is {codes.dtype} of shape {codes.shape}; save numbers (samples, latents)")
        check_orientation(codes.shape, len(np.atleast_1d(found.get("factors", codes))))
        return codes, factor_table(columns_of_arrays(found, len(codes), "samples"), len(codes))


# intervals


def score_with_intervals(
    metric: Metric, samples: Samples, options: Options, progress: Progress, say: Callable[[str], None]
) -> Result:
    """Return a metric's result, with intervals if requested; `say` is called with the expected duration."""
    if not options.bootstrap or metric.needs == "model":
        return metric.score(samples, progress)
    for part, sample in samples.items():
        if metric.needs == "codes" and len(sample) < 2:
            raise UserError(
                f"an interval of {metric.name} comes from resampled rows, and its {part!r} has {len(sample)} row; "
                "give more rows, or leave bootstrap out"
            )
    rest = options.bootstrap - 1
    result = metric.score(samples, lambda share: progress(share / (2 + rest)))
    begun = perf_counter()
    found = resampled_scores(metric, samples, options.seed, range(1))
    seconds = perf_counter() - begun
    if seconds * rest > LONG:
        say(f"{metric.name}: {options.bootstrap} resamples, ETA {clock(seconds * rest)}")
    size = 1 + min(rest // 8, int(0.5 / max(seconds, 1e-6)))  # in half a second; dispatching one takes longer than MIG
    chunks = [range(start, min(start + size, rest + 1)) for start in range(1, rest + 1, size)]
    tasks, costs = [(metric, samples, options.seed, chunk) for chunk in chunks], [float(len(chunk)) for chunk in chunks]
    for others in fit_in_parallel(resampled_scores, tasks, costs, lambda share: progress(share * rest / (2 + rest))):
        found += others
    return replace(result, bootstrap=_intervals(result, found, metric.labels))


def resampled_scores(metric: Metric, samples: Samples, seed: int, numbers: range) -> list[dict[str, float]]:
    """Return the scores of the resamples for which the metric is defined; it may not be, e.g. if no factor varies.

    The rows of each part are resampled; they never move between parts.
    """
    found = []
    for number in numbers:
        generator = stream(seed, f"bootstrap {metric.name}", number)
        drawn = {part: sample[resampled_rows(len(sample), generator)] for part, sample in samples.items()}
        with suppress(UndefinedError):
            found.append(_scalars(metric.score(drawn)))
    return found


def _scalars(result: Result) -> dict[str, float]:
    """Return the score and the other floats of a result."""
    return {name: value for name, value in vars(result).items() if isinstance(value, float)}


def _intervals(result: Result, resamples: list[dict[str, float]], is_share: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"share": CONFIDENCE, "resamples": len(resamples), "intervals": {}, "shifts": {}}
    for name, value in _scalars(result).items():
        found = np.array([one[name] for one in resamples if name in one])
        if len(found) >= FEWEST_RESAMPLES:
            facts["intervals"][name], facts["shifts"][name] = centred_interval(value, found, CONFIDENCE, is_share)
    if not facts["intervals"]:
        facts["reason"] = (
            f"only {len(resamples)} of the resamples have a score: too few rows, or factors with too little variation"
        )
    return facts
