"""Comparisons of models: pairs of Gaussian and discrete models, shares of wins, and rank correlations."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from lddr import statistics
from lddr.metrics.metric import SIX_METRICS, UndefinedError, disentanglement_metrics, metrics
from lddr.models import models
from lddr.report.groups import Group, scores_of
from lddr.report.style import (
    few_mark,
    is_discrete,
    latent_order,
    method_title,
    metric_title,
    model_order,
    model_title,
    objective_order,
)
from lddr.runs.index import Run
from lddr_paper.published import GAINS

Pair = tuple[str, str]
FEWEST_OF_EACH = 2  # runs of each


def model_pairs() -> list[Pair]:
    """Every continuous model with every discrete one of the same objective, those first whose gains the paper tells."""
    kinds = product(objective_order(), latent_order(discrete=False), latent_order(discrete=True))
    found = [(models.name_of(left, goal), models.name_of(right, goal)) for goal, left, right in kinds]
    return sorted(found, key=lambda pair: pair[1] not in GAINS or models[pair[0]].latent != "gaussian")


@dataclass(frozen=True)
class Case:
    """One metric on one dataset: the scores of two models."""

    dataset: str  # its title
    metric: str
    models: Pair
    gaussian: tuple[float, ...]
    discrete: tuple[float, ...]

    @property
    def medians(self) -> tuple[float, float]:
        return float(np.median(self.gaussian)), float(np.median(self.discrete))

    @property
    def gain(self) -> float | None:
        """The improvement of the median, in percent; None over a median of 0."""
        before, after = self.medians
        return 100 * (after / before - 1) if before > 0 else None

    @property
    def fewest(self) -> int:
        """How many runs a model has at least."""
        return min(len(self.gaussian), len(self.discrete))

    @property
    def is_won(self) -> bool:
        """Whether the discrete model has the larger median."""
        return self.medians[1] > self.medians[0]


def case_of(dataset: str, runs: Sequence[Run], pair: Pair, metric: str) -> Case | None:
    """The runs of two models by one metric; None if there are too few."""
    scores = [tuple(scores_of([run for run in runs if run.value("model") == model], metric)) for model in pair]
    return Case(dataset, metric, pair, *scores) if min(map(len, scores)) >= FEWEST_OF_EACH else None


def cases(groups: Sequence[Group], pair: Pair, metrics: Sequence[str] = SIX_METRICS) -> list[Case]:
    """Every dataset and metric for which both models have runs."""
    found = (case_of(group.title, group.unsupervised(), pair, metric) for group in groups for metric in metrics)
    return [case for case in found if case]


def compared(groups: Sequence[Group], wanted: Sequence[Pair], metrics: Sequence[str]) -> list[list[Case]]:
    """The cases of every pair that has some; a sentence if none has."""
    found = [some for pair in wanted if (some := cases(groups, pair, metrics))]
    if not found:
        both = " or ".join(f"{model_title(left)} and {model_title(right)}" for left, right in wanted[:2])
        raise UndefinedError(f"there are no two runs each of {both} with the same metric on one dataset")
    return found


def wins(found: Sequence[Case]) -> str:
    """How often the discrete model is ahead."""
    marked = few_mark(min(case.fewest for case in found))
    return f"better in {sum(case.is_won for case in found)} of {len(found)} cases{marked}"


ChoiceRule = Callable[
    [Sequence[Run], str], float | None
]  # runs of one method, a metric → the number that stands for them
Method = tuple[str, str]  # model, supervision


@dataclass(frozen=True)
class Standing:
    """How often each method was best, in percent, under one rule and number of labels."""

    labels: int
    rule: str
    shares: dict[Method, float]
    cases: int  # datasets times metrics
    fewest: int  # runs of a method on a dataset, at least


def median(members: Sequence[Run], metric: str) -> float | None:
    """The median over all seeds and weights."""
    values = scores_of(members, metric)
    return float(np.median(values)) if values else None


def lowest(score: str) -> ChoiceRule:
    """The metric of the run with the lowest `score`."""

    def rule(members: Sequence[Run], metric: str) -> float | None:
        able = [run for run in members if score in run.scores and metric in run.scores]
        return min(able, key=lambda run: (run.scores[score], run.name)).scores[metric] if able else None

    return rule


def lowest_gap(members: Sequence[Run], metric: str) -> float | None:
    """The lowest Gap_ST; Gaussian models, which have none, go by the lowest R_s."""
    discrete = bool(members) and is_discrete(str(members[0].value("model")))
    return lowest("gap" if discrete else "validation_risk")(members, metric)


RULES: dict[str, ChoiceRule] = {
    "median": median,
    "lowest R_s": lowest("validation_risk"),
    "lowest Gap_ST": lowest_gap,
}


def method(run: Run) -> Method:
    return str(run.value("model")), str(run.value("supervision"))


def num_labels(run: Run) -> int:
    return int(run.number("labels") or 0)


def methods(groups: Sequence[Group]) -> dict[Method, str]:
    """The semi-supervised methods in the order of the house, with their titles."""
    found = {method(run): method_title(run) for group in groups for run in group.supervised}
    return dict(sorted(found.items(), key=lambda item: (model_order(item[0][0]), item[0][1])))


def standings(groups: Sequence[Group]) -> list[Standing]:
    """Every rule for every number of labels for which there is a case with two methods; a sentence if there is none."""
    found = []
    for labels in sorted({num_labels(run) for group in groups for run in group.supervised}):
        members = [[run for run in group.supervised if num_labels(run) == labels] for group in groups]
        fewest = min(count for runs in members for count in Counter(map(method, runs)).values())
        for name, rule in RULES.items():
            shares, cases = win_shares(members, rule)
            if cases:
                found.append(Standing(labels, name, shares, cases, fewest))
    if not found:
        raise UndefinedError(
            "there are no supervised runs of two methods with the same metric on one dataset; "
            "train some with: lddr train --supervision masked"
        )
    return found


def win_shares(datasets: Sequence[Sequence[Run]], rule: ChoiceRule) -> tuple[dict[Method, float], int]:
    """Percent of the (dataset, metric) cases each method wins, a tie shared; and the number of cases."""
    won: dict[Method, float] = dict.fromkeys((method(run) for runs in datasets for run in runs), 0.0)
    cases = 0
    for runs in datasets:
        for metric in SIX_METRICS:
            best = _best(runs, metric, rule)
            cases += bool(best)
            for winner in best:
                won[winner] += 1 / len(best)
    return {name: 100 * count / max(cases, 1) for name, count in won.items()}, cases


def _best(runs: Sequence[Run], metric: str, rule: ChoiceRule) -> list[Method]:
    """The methods with the largest value, none where fewer than two have one."""
    members: dict[Method, list[Run]] = {}
    for run in runs:
        members.setdefault(method(run), []).append(run)
    values = {name: value for name, some in members.items() if (value := rule(some, metric)) is not None}
    return [name for name, value in values.items() if value == max(values.values())] if len(values) > 1 else []


FEWEST_RANKED = 3  # runs needed for a rank correlation
RunColumns = dict[str, list[float | None]]  # title → a number for each run


def spearman(left: Sequence[float | None], right: Sequence[float | None]) -> float:
    """Return the rank correlation over the runs that have both scores; NaN if it is undefined."""
    pairs = np.array([(a, b) for a, b in zip(left, right, strict=True) if a is not None and b is not None], np.float64)
    if len(pairs) < FEWEST_RANKED or (pairs == pairs[0]).all(axis=0).any():
        return float("nan")
    return float(statistics.spearman(*pairs.T))


def efficiencies() -> dict[str, str]:
    """Return the scores that measure how few labels a learner needs, with the learner."""
    return {f"{name}.efficiency": metrics[name].title.lower() for name in metrics.registered() if metrics[name].is_task}


def selector_columns(runs: Sequence[Run]) -> RunColumns:
    """Return each selector that needs only scores, with its sign chosen such that larger means preferred."""
    from lddr.selection.selector import Candidates, selectors

    columns: RunColumns = {}
    for name in selectors.registered():
        selector = selectors[name]
        if selector.needs != "scores":
            continue
        verdicts = selector.measure(Candidates(runs, lambda run: "is not encoded for a report"))
        values = [None if isinstance(verdict, str) else selector.sign * verdict for verdict in verdicts]
        columns[f"{'small' if selector.sign < 0 else 'large'} {selector.title or name}"] = values
    return _known(columns)


def metric_columns(runs: Sequence[Run]) -> RunColumns:
    """Return the metrics that some run has, by their titles."""
    return _known({metric_title(metric): [run.number(metric) for run in runs] for metric in disentanglement_metrics()})


def _known(columns: RunColumns) -> RunColumns:
    return {title: values for title, values in columns.items() if any(value is not None for value in values)}
