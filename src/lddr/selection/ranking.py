"""Choosing a model without ground truth: which runs can be compared, their ranking, and how well selectors choose."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lddr.data.dataset import Dataset, Images, stream
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole
from lddr.runs.index import Run, Value
from lddr.selection.selector import DEFAULT, Candidates, Selector, Verdict, find_selector
from lddr.statistics import bootstrap_interval, spearman

SAMPLES = 1000
ACTIVE_VARIANCE = 0.01  # of a latent that is in use, as for UDR


@dataclass(frozen=True)
class Encoded:
    """The images that all models of a dataset are shown, as one model encodes them."""

    codes: Floats  # (samples, latents)
    categories: Whole | None = None  # (samples, latents), of a discrete model
    confidence: Floats | None = None  # (latents,): the mean over the images of the largest probability

    @property
    def active(self) -> NDArray[np.bool_]:
        """Which latents are in use: (latents,)."""
        return self.codes.var(axis=0) > ACTIVE_VARIANCE


class RunEncoder:
    """Encode each run once; return the reason if that fails.

    The images are those of the given dataset if there is one, else of each run's own, loaded by name.
    """

    def __init__(self, samples: int = SAMPLES, device: str = "auto", dataset: Dataset | None = None) -> None:
        self._samples, self._device, self._dataset = samples, device, dataset
        self._known: dict[Path, Encoded | str] = {}

    def __call__(self, run: Run) -> Encoded | str:
        if run.folder not in self._known:
            try:
                self._known[run.folder] = encode(run, self._samples, self._device, self._dataset)
            except UserError as error:
                self._known[run.folder] = f"cannot be encoded: {error}"
        return self._known[run.folder]


def encode(run: Run, samples: int = SAMPLES, device: str = "auto", dataset: Dataset | None = None) -> Encoded:
    """Encode images of the dataset with the model of a run; the images are the same for every run of the dataset."""
    from lddr.trained import Trained

    images = _sampled_images(run.files.dataset if dataset is None else dataset, samples)
    model = Trained.load(run.folder).to(device)
    codes = model.represent(images).astype(np.float64)
    if not model.is_discrete:
        return Encoded(codes)
    posterior = model.posterior(images)  # (samples, latents, categories)
    return Encoded(codes, posterior.argmax(axis=2), posterior.max(axis=2).mean(axis=0, dtype=np.float64))


@lru_cache(maxsize=4)
def _sampled_images(dataset: Dataset, samples: int) -> Images:
    return dataset.draw(stream(0, "selection"), samples)


STATES = {
    "training": "is not finished",
    "broken": "is broken",
    "collapsed": "has learned nothing: its reconstructions are no better than the mean image",
}
COMPARABLE = ("dataset", "resolution", "checksum", "steps", "latent")  # else the numbers mean different things


@dataclass(frozen=True)
class Place:
    """A run in the ranking; those with the same value share a rank."""

    rank: int
    run: str
    value: float


@dataclass(frozen=True)
class Selection:
    """The chosen run and why: by which selector, among which runs, and who was left out for what reason."""

    chosen: str
    selector: str
    summary: str
    better: str
    value: float
    compared: dict[str, Value]  # what the ranked runs have in common
    varied: dict[str, list[Value]]  # what differs between them
    left_out: dict[str, list[str]]  # reason → runs
    ranking: tuple[Place, ...]  # best first

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for a file."""
        return asdict(self)


def select(
    runs: Sequence[Run], by: str = DEFAULT, encode: Callable[[Run], Encoded | str] | None = None, quiet: bool = True
) -> Selection:
    """Rank comparable runs by a selector (or "gap+udr", the mean rank by several); the first one is the choice."""
    selector = find_selector(by)
    candidates = Candidates([run for run in runs if run.value("state") == "finished"], encode or RunEncoder())
    if selector.needs == "images":
        require_comparable(candidates.runs, selector)  # before minutes are spent on encoding
        candidates.encode_all(quiet)
    verdicts, finished = selector.measure(candidates), candidates.runs
    left_out = _left_out(runs, finished, verdicts)
    values = {str(run.folder): float(v) for run, v in zip(finished, verdicts, strict=True) if not isinstance(v, str)}
    ranked = [run for run in finished if str(run.folder) in values]
    if not ranked:
        raise UserError(_nothing(by, left_out))
    require_comparable(ranked, selector)
    ordered = sorted(values.items(), key=lambda item: (-selector.sign * item[1], item[0]))  # equal values by name
    numbers = [value for _, value in ordered]
    ranking = tuple(Place(numbers.index(value) + 1, run, value) for run, value in ordered)
    return Selection(
        chosen=ranking[0].run,
        selector=by,
        summary=selector.summary,
        better=selector.better,
        value=ranking[0].value,
        compared={name: ranked[0].value(name) for name in dict.fromkeys(COMPARABLE + selector.same)},
        varied=_varied(ranked),
        left_out=left_out,
        ranking=ranking,
    )


def require_comparable(runs: Sequence[Run], selector: Selector) -> None:
    """Refuse to rank together what differs in more than what a sweep varies."""
    for name in dict.fromkeys(COMPARABLE + selector.same):
        counts = Counter(run.value(name) for run in runs)
        if len(counts) > 1:
            most = [("none" if value is None else value, count) for value, count in counts.most_common(4)]
            found = " or ".join(f"{value} ({count} runs)" for value, count in most)
            raise UserError(
                f"these runs cannot be ranked together: {name} is {found}; "
                f'choose comparable ones, for example with --where "{name}={most[0][0]}"'
            )


def _varied(runs: Sequence[Run]) -> dict[str, list[Value]]:
    names = dict.fromkeys(name for run in runs for name in run.settings)
    values = {name: list(dict.fromkeys(run.value(name) for run in runs)) for name in names}
    return {name: found for name, found in values.items() if len(found) > 1}


def _left_out(runs: Sequence[Run], finished: Sequence[Run], verdicts: Sequence[float | str]) -> dict[str, list[str]]:
    why = [(STATES[str(run.value("state"))], run) for run in runs if run.value("state") != "finished"]
    why += [(verdict, run) for run, verdict in zip(finished, verdicts, strict=True) if isinstance(verdict, str)]
    reasons: dict[str, list[str]] = {}
    for reason, run in why:
        reasons.setdefault(reason, []).append(str(run.folder))
    return reasons


def _nothing(by: str, left_out: dict[str, list[str]]) -> str:
    if not left_out:
        return "there are no runs to choose from; train some, or give the folder that holds them"
    reason, folders = max(left_out.items(), key=lambda item: len(item[1]))
    others = f" (and so on for {len(folders)} runs)" if len(folders) > 1 else ""
    return f"nothing can be chosen by {by}: {folders[0]} {reason}{others}"


# how good the selectors are, on runs with ground-truth scores

FEWEST = 3  # runs; two are always perfectly correlated
GROUPED_BY = (*COMPARABLE, "supervision", "labels", "label_seed")  # runs that differ in these are reported apart


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation with its bootstrap interval; 1 if what the selector prefers is always better."""

    selector: str
    metric: str
    runs: int
    spearman: float | None  # None if it is undefined: too few runs, or all alike
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Selected:
    """The metric of the model that a selector chooses (mean over ties), compared with all candidates."""

    selector: str
    metric: str
    runs: int
    selected: float
    median: float
    best: float
    random: float  # what choosing at random gives on average


@dataclass(frozen=True)
class SelectorReport:
    """Runs that can be compared, and how well each selector does on them."""

    title: str
    models: tuple[str, ...]
    runs: int
    compared: dict[str, Value]
    correlations: tuple[Correlation, ...]
    choices: tuple[Selected, ...]
    left_out: dict[str, dict[str, int]]  # selector → reason → runs

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for a file."""
        return asdict(self)


def report_selectors(
    runs: Sequence[Run],
    by: Sequence[str],
    metrics: Sequence[str],
    encode: Callable[[Run], Encoded | str],
    quiet: bool = True,
) -> list[SelectorReport]:
    """Compare every selector with every metric, in each group of comparable runs."""
    finished = [run for run in runs if run.state == "finished"]
    if any(find_selector(name).needs == "images" for name in by):
        Candidates(finished, encode).encode_all(quiet)
    return [_report(members, by, metrics, encode) for members in comparable_groups(finished)]


def comparable_groups(runs: Iterable[Run]) -> list[list[Run]]:
    """Group comparable runs: those of each model, and those of all models of a family if there are several."""
    families: dict[tuple[Value, ...], dict[Value, list[Run]]] = {}
    for run in runs:
        family = families.setdefault(tuple(run.value(name) for name in GROUPED_BY), {})
        family.setdefault(run.value("model"), []).append(run)
    found = []
    for family in families.values():
        alone = list(family.values())
        found += [*alone, [run for members in alone for run in members]] if len(alone) > 1 else alone
    return found


def _report(
    runs: Sequence[Run], by: Sequence[str], metrics: Sequence[str], encode: Callable[[Run], Encoded | str]
) -> SelectorReport:
    """Return correlations and choices in one group of runs."""
    verdicts = {name: _measured(find_selector(name), Candidates(runs, encode)) for name in by}
    pairs = [(name, metric, *_both(runs, verdicts[name], metric)) for name in by for metric in metrics]
    signs = {name: find_selector(name).sign for name in by}
    left_out = {name: dict(Counter(v for v in found if isinstance(v, str))) for name, found in verdicts.items()}
    return SelectorReport(
        title=_title(runs),
        models=tuple(dict.fromkeys(str(run.value("model")) for run in runs)),
        runs=len(runs),
        compared={name: runs[0].value(name) for name in GROUPED_BY},
        correlations=tuple(correlation(name, metric, signs[name] * x, y) for name, metric, x, y in pairs),
        choices=tuple(score_of_choice(name, metric, signs[name] * x, y) for name, metric, x, y in pairs if len(x)),
        left_out={name: counts for name, counts in left_out.items() if counts},
    )


def correlation(selector: str, metric: str, preference: Floats, truth: Floats) -> Correlation:
    """Correlate preferences, of which larger is better, with scores, both (runs,)."""
    runs = len(preference)
    if runs < FEWEST or np.ptp(preference) == 0 or np.ptp(truth) == 0:
        return Correlation(selector, metric, runs, None)
    low, high = bootstrap_interval(lambda rows: spearman(preference[rows], truth[rows]), np.arange(runs))
    return Correlation(selector, metric, runs, float(spearman(preference, truth)), low, high)


def score_of_choice(selector: str, metric: str, preference: Floats, truth: Floats) -> Selected:
    """Return the score of the preferred run."""
    selected = truth[preference == preference.max()].mean()
    facts = (selected, np.median(truth), truth.max(), truth.mean())
    return Selected(selector, metric, len(truth), *map(float, facts))


def _measured(selector: Selector, candidates: Candidates) -> list[Verdict]:
    """Return the selector's numbers, or why they cannot be compared."""
    for name in selector.same:
        if len({run.value(name) for run in candidates.runs}) > 1:
            return [f"differs from other runs in {name}"] * len(candidates.runs)
    return selector.measure(candidates)


def _both(runs: Sequence[Run], verdicts: Sequence[Verdict], metric: str) -> tuple[Floats, Floats]:
    """Return selector and metric of the runs that have both."""
    pairs = [(v, run.number(metric)) for run, v in zip(runs, verdicts, strict=True) if not isinstance(v, str)]
    both = np.array([pair for pair in pairs if pair[1] is not None], np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _title(runs: Sequence[Run]) -> str:
    """Return dataset, models and supervision in words."""
    models = dict.fromkeys(str(run.value("model")) for run in runs)
    words = [str(runs[0].value("dataset")), " + ".join(models), f"{runs[0].value('steps')} steps"]
    if runs[0].value("supervision") is not None:
        words.append(f"{runs[0].value('supervision')} with {runs[0].value('labels')} labels")
    return ", ".join(words)
