"""The claim engine: which runs a claim compares, by which statistic, and by which rule `judge` decides it.

The runs come from run folders (`lddr report`) or from the tables below results/ (`python -m lddr_paper.results`).
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median

import numpy as np
from numpy.typing import ArrayLike

from lddr.report.groups import scores_of
from lddr.runs.index import Run, Value
from lddr.statistics import Floats, bootstrap_interval, spearman

SUPPORTED, CONTRADICTED, INCONCLUSIVE = "supported", "contradicted", "inconclusive"
MIXED, TOO_FEW = "mixed", "too few runs"
FEWEST, RESAMPLES = 5, 10_000
FEWEST_RANKED = 3  # runs needed for a rank correlation
Rows = Callable[..., Sequence[Run]]  # names of studies → their runs


@dataclass(frozen=True)
class Estimate:
    """A number, its 95 % interval, and the number of runs in the smallest group it was computed from."""

    value: float
    low: float
    high: float
    runs: int

    def verdict(self, limit: float = 0.0) -> str:
        """Return whether the number is above the limit, which the whole interval must be."""
        if self.runs < FEWEST:
            return TOO_FEW
        return SUPPORTED if self.low > limit else CONTRADICTED if self.high < limit else INCONCLUSIVE

    @property
    def half_width(self) -> float:
        """Half the width of the interval: a smaller effect cannot be told from none."""
        return (self.high - self.low) / 2

    def text(self, digits: int = 3, unit: str = "", sign: str = "+") -> str:
        """Return the number and its interval, as in "+0.12 (−0.05 to +0.30)"."""
        if np.isnan(self.value):
            return "–"
        value, low, high = (f"{x:{sign}.{digits}f}".replace("-", "−") for x in (self.value, self.low, self.high))
        return f"{value}{unit} ({low} to {high})"


def resampled(function: Callable[..., Floats], *groups: ArrayLike) -> Estimate:
    """Return a function of groups of independent runs, (…, runs) each, with its bootstrap interval."""
    arrays = [np.asarray(group, np.float64) for group in groups]
    low, high = bootstrap_interval(function, *arrays, resamples=RESAMPLES)
    return Estimate(float(function(*arrays)), low, high, min(map(len, arrays)))


def above(new: Floats, old: Floats) -> Floats:
    """Return the difference of the medians."""
    return np.median(new, axis=-1) - np.median(old, axis=-1)


def gain(new: Floats, old: Floats) -> Floats:
    """Return the gain of the median in percent."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return 100 * (np.median(new, axis=-1) / np.median(old, axis=-1) - 1)


def share(count: int, runs: int) -> Estimate:
    """Return a share of runs in percent, with Wilson's interval."""
    from scipy.stats import binomtest

    interval = binomtest(count, runs).proportion_ci(method="wilson")
    return Estimate(100 * count / runs, 100 * interval.low, 100 * interval.high, runs)


def rank_correlation(left: Sequence[float | None] | Floats, right: Sequence[float | None] | Floats) -> Estimate:
    """Return Spearman's correlation over the runs that have both; NaN for fewer than three, or if all are equal."""
    both = np.array([left, right], np.float64).T  # None becomes NaN
    both = both[~np.isnan(both).any(axis=1)]
    if len(both) < FEWEST_RANKED or (np.ptp(both, axis=0) == 0).any():
        return Estimate(np.nan, np.nan, np.nan, len(both))
    interval = bootstrap_interval(lambda drawn: spearman(drawn[..., 0], drawn[..., 1]), both)
    return Estimate(float(spearman(*both.T)), *interval, len(both))


def correlation_within(groups: Sequence[Floats]) -> Estimate:
    """Return Spearman's correlation over groups of (runs, 2), whose runs are ranked within their group."""
    return replace(resampled(_within, *groups), runs=sum(map(len, groups)))


def _within(*groups: Floats) -> Floats:  # (…, runs, 2) each
    from scipy.stats import rankdata

    centred = [rankdata(group, axis=-2) - (group.shape[-2] + 1) / 2 for group in groups]
    ranks = np.concatenate(centred, axis=-2)
    products = (ranks[..., :, None] * ranks[..., None, :]).sum(-3)  # (…, 2, 2)
    with np.errstate(invalid="ignore"):
        return products[..., 0, 1] / np.sqrt(products[..., 0, 0] * products[..., 1, 1])


def matching(runs: Sequence[Run], dataset: str, *models: str, **settings: Value) -> list[Run]:
    """Return the runs on a dataset, of these models, with these settings; unless `supervision` is given, unlabelled."""
    wanted = {"dataset": dataset, "supervision": None} | settings
    return [
        run
        for run in runs
        if (not models or run.value("model") in models)
        and all(run.value(name) == value for name, value in wanted.items())
    ]


@dataclass(frozen=True)
class Runs:
    """Which runs a case compares. Run folders have no studies, so there only the other fields select."""

    studies: str  # separated by spaces
    dataset: str
    models: tuple[str, ...]
    settings: Mapping[str, Value] = field(default_factory=dict)

    def among(self, rows: Rows, scores: Sequence[str]) -> list[Run]:
        """Return those that have all of these scores."""
        found = matching(rows(*self.studies.split()), self.dataset, *self.models, **self.settings)
        return [run for run in found if run.scores.keys() >= set(scores)]


Statistic = Callable[..., Estimate]  # names of scores, then the runs of every group


@dataclass(frozen=True)
class Case:
    """One comparison: of which runs, by which scores and statistic, and the limit that the claim puts it above."""

    labels: tuple[str, ...]
    groups: tuple[Runs, ...]
    scores: tuple[str, ...]
    statistic: Statistic
    limit: float = 0.0
    counts: bool = True  # in the verdict; others are only reported
    rivals: tuple[Runs, ...] = ()  # groups that may be empty, though not all of them


@dataclass(frozen=True)
class Measured:
    """A case with its runs and the estimate from them."""

    case: Case
    runs: list[list[Run]]
    estimate: Estimate

    @property
    def verdict(self) -> str:
        return self.estimate.verdict(self.case.limit)

    @property
    def count(self) -> str:
        """The numbers of runs, as in "5, 5 and 10"."""
        *others, last = (str(len(some)) for some in self.runs)
        return f"{', '.join(others)} and {last}" if others else last

    @property
    def medians(self) -> list[float]:
        """The median of the first score in every group."""
        return [median(scores_of(some, self.case.scores[0])) for some in self.runs]

    @property
    def percent(self) -> float:
        """The estimate in percent of the median of the first group."""
        return 100 * self.estimate.value / median(scores_of(self.runs[0], self.case.scores[-1]))


def measure(case: Case, rows: Rows) -> Measured | None:
    """Return the estimate of a case; None if a group has no runs with these scores, or it is undefined."""
    groups = [group.among(rows, case.scores) for group in case.groups]
    rivals = [some for group in case.rivals if (some := group.among(rows, case.scores))]
    if not all(groups) or (case.rivals and not rivals):
        return None
    found = Measured(case, rivals + groups, case.statistic(case.scores, *rivals, *groups))
    return found if np.isfinite(found.estimate.value) else None


def agreed(found: Sequence[Measured]) -> str:
    """Return the verdict of all cases that count, if it is the same."""
    verdicts = {one.verdict for one in found if one.case.counts}
    return verdicts.pop() if len(verdicts) == 1 else MIXED


def cases_won(share_won: float, found: Sequence[Measured]) -> str:
    """Return whether at least this share of the cases has an estimate above 0."""
    won, cases = sum(one.estimate.value > 0 for one in found), len(found)
    if min(one.estimate.runs for one in found) < FEWEST:
        return TOO_FEW
    return SUPPORTED if won / cases >= share_won else CONTRADICTED if 2 * won < cases else MIXED


@dataclass(frozen=True)
class Claim:
    """What is claimed, what the paper says about it (None: the claim is ours), its cases, and their rule.

    The other fields are what the results pages print; claims.toml describes them.
    """

    title: str
    paper: str | float | None
    cases: Mapping[str, Sequence[Case]]  # variant, each with a verdict of its own → its cases
    rule: Callable[[Sequence[Measured]], str] = agreed
    finding: str = ""
    verdicts: Sequence[str] = ()
    short: str = ""
    axis: str = "MIG"
    in_percent: bool = False
    table: Sequence[str] = ()
    medians: bool = True
    median_digits: int = 3
    judged: bool = True
    crossed: str = ""
    why: str = ""
    pictures: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Judgement:
    """A claim, and the verdict of the runs on each of its variants."""

    claim: Claim
    found: Mapping[str, Sequence[Measured]]  # variant → the cases that could be measured
    verdicts: Mapping[str, str]


def judge(claim: Claim, rows: Rows) -> Judgement | None:
    """Return the verdicts of the runs on a claim; None if there are no runs to judge it by."""
    measured = {name: [one for case in cases if (one := measure(case, rows))] for name, cases in claim.cases.items()}
    found = {name: some for name, some in measured.items() if any(one.case.counts for one in some)}
    return Judgement(claim, found, {name: claim.rule(some) for name, some in found.items()}) if found else None


# ---- Statistics of cases


def column(runs: Sequence[Run], score: str) -> Floats:
    return np.array([run.scores[score] for run in runs])


def best_beaten(function: Callable[..., Floats], scores: Sequence[str], *groups: Sequence[Run]) -> Estimate:
    """Compare the last group with the one of the others that has the largest median."""
    *others, own = (column(group, scores[0]) for group in groups)
    return resampled(function, own, max(others, key=np.median))


difference, percent_gain = partial(best_beaten, above), partial(best_beaten, gain)


def lead_growth(scores: Sequence[str], *groups: Sequence[Run]) -> Estimate:
    """Return how much larger the lead of the fourth group over the third is than that of the second over the first."""
    return resampled(lambda a, b, c, d: above(d, c) - above(b, a), *(column(group, scores[0]) for group in groups))


def share_within(limit: float, scores: Sequence[str], runs: Sequence[Run]) -> Estimate:
    return share(int((column(runs, scores[0]) <= limit).sum()), len(runs))


def share_rising(scores: Sequence[str], runs: Sequence[Run]) -> Estimate:
    """Return the share of runs in which the second score of every pair is larger than the first."""
    values = np.array([column(runs, score) for score in scores])
    return share(int((values[0::2] < values[1::2]).all(axis=0).sum()), len(runs))


def rank(sign: int, scores: Sequence[str], runs: Sequence[Run]) -> Estimate:
    return rank_correlation(sign * column(runs, scores[0]), column(runs, scores[1]))


def chosen_over_median(
    model: str | None, scores: Sequence[str], runs: Sequence[Run], in_percent: bool = True
) -> Estimate:
    """Return how far the run with the lowest first score exceeds the median of a model, or of all.

    A collapsed run is never chosen, and resamples choose anew.
    """
    able = [run.value("state") == "finished" for run in runs]
    if not any(able):
        return Estimate(np.nan, np.nan, np.nan, 0)
    counts = [model is None or run.value("model") == model for run in runs]
    lowest = np.where(able, column(runs, scores[0]), np.inf)
    both = np.stack([lowest, column(runs, scores[1]), np.where(counts, column(runs, scores[1]), np.nan)], axis=1)

    def gained(drawn: Floats) -> Floats:  # (…, runs, 3)
        chosen = np.take_along_axis(drawn[..., 1], drawn[..., 0].argmin(-1)[..., None], -1)[..., 0]
        with warnings.catch_warnings(), np.errstate(divide="ignore", invalid="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)  # resamples without a run of the model
            usual = np.nanmedian(drawn[..., 2], axis=-1)
            return 100 * (chosen / usual - 1) if in_percent else chosen - usual

    return replace(resampled(gained, both), runs=sum(counts))
