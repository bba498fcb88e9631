"""How good the selectors are, on runs that do have ground-truth scores: correlations, and what the choice is worth."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lddr.metrics.information import Floats
from lddr.runs.index import Run, Value
from lddr.selection.ranking import COMPARABLE, Encoded
from lddr.selection.selector import Candidates, Selector, Verdict, find_selector
from lddr.statistics import bootstrap_interval, spearman

FEWEST = 3  # runs; two are always perfectly correlated
KINDS = (*COMPARABLE, "supervision", "labels", "label_seed")  # runs that differ in these are reported apart


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
class Choice:
    """The metric of the model a selector chooses (mean over ties), beside what there was to choose from."""

    selector: str
    metric: str
    runs: int
    selected: float
    median: float
    best: float
    random: float  # what choosing at random gives on average


@dataclass(frozen=True)
class Judgement:
    """Runs that can be compared, and how well each selector does on them."""

    title: str
    models: tuple[str, ...]
    runs: int
    compared: dict[str, Value]
    correlations: tuple[Correlation, ...]
    choices: tuple[Choice, ...]
    left_out: dict[str, dict[str, int]]  # selector → reason → runs

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return asdict(self)


def judged(
    runs: Sequence[Run],
    by: Sequence[str],
    metrics: Sequence[str],
    encode: Callable[[Run], Encoded | str],
    quiet: bool = True,
) -> list[Judgement]:
    """Every selector against every metric, for each kind of run: every model alone, and all of a family together."""
    finished = [run for run in runs if run.state == "finished"]
    if any(find_selector(name).needs == "images" for name in by):
        Candidates(finished, encode).look(quiet)
    return [judgement(members, by, metrics, encode) for members in kinds(finished)]


def kinds(runs: Iterable[Run]) -> list[list[Run]]:
    """Comparable runs: of each model, and of all models of a family where there are several."""
    families: dict[tuple[Value, ...], dict[Value, list[Run]]] = {}
    for run in runs:
        family = families.setdefault(tuple(run.value(name) for name in KINDS), {})
        family.setdefault(run.value("model"), []).append(run)
    found = []
    for family in families.values():
        alone = list(family.values())
        found += [*alone, [run for members in alone for run in members]] if len(alone) > 1 else alone
    return found


def judgement(
    runs: Sequence[Run], by: Sequence[str], metrics: Sequence[str], encode: Callable[[Run], Encoded | str]
) -> Judgement:
    """Correlations and choices of one kind of runs."""
    verdicts = {name: _measured(find_selector(name), Candidates(runs, encode)) for name in by}
    pairs = [(name, metric, *_both(runs, verdicts[name], metric)) for name in by for metric in metrics]
    signs = {name: find_selector(name).sign for name in by}
    return Judgement(
        title=_title(runs),
        models=tuple(dict.fromkeys(str(run.value("model")) for run in runs)),
        runs=len(runs),
        compared={name: runs[0].value(name) for name in KINDS},
        correlations=tuple(correlation(name, metric, signs[name] * x, y) for name, metric, x, y in pairs),
        choices=tuple(choice(name, metric, signs[name] * x, y) for name, metric, x, y in pairs if len(x)),
        left_out={name: counted for name in by if (counted := dict(_reasons(verdicts[name])))},
    )


def correlation(selector: str, metric: str, preference: Floats, truth: Floats) -> Correlation:
    """Of preferences, larger is better, and scores, both (runs,); percentiles of resampled runs make the interval."""
    runs = len(preference)
    if runs < FEWEST or np.ptp(preference) == 0 or np.ptp(truth) == 0:
        return Correlation(selector, metric, runs, None)
    low, high = bootstrap_interval(lambda rows: spearman(preference[rows], truth[rows]), np.arange(runs))
    return Correlation(selector, metric, runs, float(spearman(preference, truth)), low, high)


def choice(selector: str, metric: str, preference: Floats, truth: Floats) -> Choice:
    """What the preferred run scores."""
    selected = truth[preference == preference.max()].mean()
    facts = (selected, np.median(truth), truth.max(), truth.mean())
    return Choice(selector, metric, len(truth), *map(float, facts))


def _measured(selector: Selector, candidates: Candidates) -> list[Verdict]:
    """The selector's numbers, or why there are none that could be compared."""
    for name in selector.same:
        if len({run.value(name) for run in candidates.runs}) > 1:
            return [f"differs from other runs in {name}"] * len(candidates.runs)
    return selector.measure(candidates)


def _both(runs: Sequence[Run], verdicts: Sequence[Verdict], metric: str) -> tuple[Floats, Floats]:
    """Selector and metric of the runs that have both."""
    pairs = [(v, run.number(metric)) for run, v in zip(runs, verdicts, strict=True) if not isinstance(v, str)]
    both = np.array([pair for pair in pairs if pair[1] is not None], np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]


def _reasons(verdicts: Sequence[Verdict]) -> Counter[str]:
    return Counter(verdict for verdict in verdicts if isinstance(verdict, str))


def _title(runs: Sequence[Run]) -> str:
    """Dataset, models and supervision, in words."""
    models = dict.fromkeys(str(run.value("model")) for run in runs)
    words = [str(runs[0].value("dataset")), " + ".join(models), f"{runs[0].value('steps')} steps"]
    if runs[0].value("supervision") is not None:
        words.append(f"{runs[0].value('supervision')} with {runs[0].value('labels')} labels")
    return ", ".join(words)
