"""Which method is best with a few labels: shares of wins over all datasets and metrics (paper, Figure 7)."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lddr.metrics.metric import SIX_METRICS, UndefinedError
from lddr.report.groups import Group, scores_of
from lddr.report.palette import house_place, is_discrete
from lddr.report.titles import method_title
from lddr.runs.index import Run

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
    return dict(sorted(found.items(), key=lambda item: (house_place(item[0][0]), item[0][1])))


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
