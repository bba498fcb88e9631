"""Comparisons of models: pairs of Gaussian and discrete models, shares of wins, and rank correlations."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

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

Pair = tuple[str, str]  # a continuous and a discrete model
FEWEST_OF_EACH = 2  # runs of each model of a pair


def model_pairs() -> list[Pair]:
    """Return all pairs with the same objective, those first whose gains the paper reports."""
    points = product(objective_order(), latent_order(discrete=False), latent_order(discrete=True))
    pairs = [(models.name_of(left, goal), models.name_of(right, goal)) for goal, left, right in points]
    return sorted(pairs, key=lambda pair: pair[1] not in GAINS or models[pair[0]].latent != "gaussian")


@dataclass(frozen=True)
class Comparison:
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
        """The number of runs of the model that has fewer."""
        return min(len(self.gaussian), len(self.discrete))

    @property
    def is_won(self) -> bool:
        """Whether the discrete model has the larger median."""
        return self.medians[1] > self.medians[0]


def compare(dataset: str, runs: Sequence[Run], pair: Pair, metric: str) -> Comparison | None:
    """Compare the runs of two models by one metric; return None if there are too few."""
    scores = [tuple(scores_of([run for run in runs if run.value("model") == model], metric)) for model in pair]
    return Comparison(dataset, metric, pair, *scores) if min(map(len, scores)) >= FEWEST_OF_EACH else None


def compare_everywhere(groups: Sequence[Group], pair: Pair, metrics: Sequence[str] = SIX_METRICS) -> list[Comparison]:
    """Compare two models on every dataset and by every metric for which both have runs."""
    found = (compare(group.title, group.unsupervised(), pair, metric) for group in groups for metric in metrics)
    return [comparison for comparison in found if comparison]


def compare_pairs(groups: Sequence[Group], pairs: Sequence[Pair], metrics: Sequence[str]) -> list[list[Comparison]]:
    """Return the comparisons of every pair that has some; raise UndefinedError if none has."""
    found = list(filter(None, (compare_everywhere(groups, pair, metrics) for pair in pairs)))
    if not found:
        both = " or ".join(f"{model_title(left)} and {model_title(right)}" for left, right in pairs[:2])
        raise UndefinedError(f"there are no two runs each of {both} with the same metric on one dataset")
    return found


def wins_text(comparisons: Sequence[Comparison]) -> str:
    """Describe how often the discrete model is better."""
    mark = few_mark(min(one.fewest for one in comparisons))
    return f"better in {sum(one.is_won for one in comparisons)} of {len(comparisons)} cases{mark}"


ChoiceRule = Callable[[Sequence[Run], str], float | None]  # runs of one method, a metric → the number to compare
Method = tuple[str, str]  # model, supervision


@dataclass(frozen=True)
class Standing:
    """How often each method was best, in percent, under one rule and number of labels (paper, Figure 7)."""

    labels: int
    rule: str
    shares: dict[Method, float]
    cases: int  # datasets times metrics
    fewest: int  # runs of a method on a dataset, at least


def median(runs: Sequence[Run], metric: str) -> float | None:
    """Return the median over all seeds and weights."""
    values = scores_of(runs, metric)
    return float(np.median(values)) if values else None


def lowest(score: str) -> ChoiceRule:
    """Return a rule that takes the metric of the run with the lowest `score`."""

    def rule(runs: Sequence[Run], metric: str) -> float | None:
        able = [run for run in runs if score in run.scores and metric in run.scores]
        return min(able, key=lambda run: (run.scores[score], run.name)).scores[metric] if able else None

    return rule


def lowest_gap(runs: Sequence[Run], metric: str) -> float | None:
    """Take the run with the lowest Gap_ST; of Gaussian models, which have none, the one with the lowest R_s."""
    discrete = bool(runs) and is_discrete(str(runs[0].value("model")))
    return lowest("gap" if discrete else "validation_risk")(runs, metric)


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
    """Return the semi-supervised methods in their standard order, with their titles."""
    found = {method(run): method_title(run) for group in groups for run in group.supervised}
    return dict(sorted(found.items(), key=lambda item: (model_order(item[0][0]), item[0][1])))


def standings(groups: Sequence[Group]) -> list[Standing]:
    """Return a standing for each rule and number of labels with two methods to compare; raise if there is none."""
    found = []
    for labels in sorted({num_labels(run) for group in groups for run in group.supervised}):
        datasets = [[run for run in group.supervised if num_labels(run) == labels] for group in groups]
        fewest = min(count for runs in datasets for count in Counter(map(method, runs)).values())
        for name, rule in RULES.items():
            shares, cases = win_shares(datasets, rule)
            if cases:
                found.append(Standing(labels, name, shares, cases, fewest))
    if not found:
        raise UndefinedError(
            "there are no supervised runs of two methods with the same metric on one dataset; "
            "train some with: lddr train --supervision masked"
        )
    return found


def win_shares(datasets: Sequence[Sequence[Run]], rule: ChoiceRule) -> tuple[dict[Method, float], int]:
    """Return the percentage of (dataset, metric) cases each method wins, ties shared, and the number of cases."""
    won: dict[Method, float] = dict.fromkeys((method(run) for runs in datasets for run in runs), 0.0)
    cases = 0
    for runs, metric in product(datasets, SIX_METRICS):
        numbers = {each: rule([run for run in runs if method(run) == each], metric) for each in won}
        known = {each: value for each, value in numbers.items() if value is not None}
        if len(known) > 1:
            cases += 1
            best = [each for each, value in known.items() if value == max(known.values())]
            for winner in best:
                won[winner] += 1 / len(best)
    return {name: 100 * count / max(cases, 1) for name, count in won.items()}, cases


RunColumns = dict[str, list[float | None]]  # title → a number for each run


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
