"""Which method is best with a few labels: shares of wins over all datasets and metrics (paper, Figure 7)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lddr.metrics.metric import UndefinedError
from lddr.report.figures import by_dataset, figure, figures, supervised
from lddr.report.style import COLOURS, HATCHES, INK, SIX_METRICS, colour, is_discrete, method_title, new_figure, styled
from lddr.runs.index import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rule = Callable[
    [Sequence[Run], str], float | None
]  # the runs of one method, a metric → the number that stands for them
Method = tuple[str, str]  # model, supervision


@dataclass(frozen=True)
class Standing:
    """How often each method was best, in percent, under one rule and number of labels."""

    labels: int
    rule: str
    shares: dict[Method, float]
    cases: int  # datasets times metrics


def median(members: Sequence[Run], metric: str) -> float | None:
    """The median over all seeds and weights."""
    values = [value for run in members if (value := run.number(metric)) is not None]
    return float(np.median(values)) if values else None


def lowest(score: str) -> Rule:
    """The metric of the run with the lowest `score`."""

    def rule(members: Sequence[Run], metric: str) -> float | None:
        able = [(run.scores[score], run.name, run) for run in members if score in run.scores and metric in run.scores]
        return min(able, key=lambda entry: entry[:2])[2].scores[metric] if able else None

    return rule


def lowest_gap(members: Sequence[Run], metric: str) -> float | None:
    """The lowest Gap_ST; Gaussian models, which have none, go by the lowest R_s."""
    discrete = bool(members) and is_discrete(str(members[0].value("model")))
    return lowest("gap" if discrete else "validation_risk")(members, metric)


RULES: dict[str, Rule] = {
    "median": median,
    "lowest $R_s$": lowest("validation_risk"),
    "lowest Gap$_{ST}$": lowest_gap,
}


def standings(runs: Sequence[Run]) -> list[Standing]:
    """Every rule for every number of labels, as far as there is a case with two methods."""
    found = []
    for labels in sorted({int(run.number("labels") or 0) for run in supervised(runs)}):
        members = [run for run in supervised(runs) if run.number("labels") == labels]
        for name, rule in RULES.items():
            shares, cases = win_shares(members, rule)
            if cases:
                found.append(Standing(labels, name, shares, cases))
    return found


def win_shares(runs: Sequence[Run], rule: Rule) -> tuple[dict[Method, float], int]:
    """Percent of the (dataset, metric) cases each method wins, a tie shared; and the number of cases."""
    won: dict[Method, float] = dict.fromkeys(sorted(map(method, runs), key=_place), 0.0)
    cases = 0
    for members in by_dataset(runs).values():
        for metric in SIX_METRICS:
            best = _best(members, metric, rule)
            cases += bool(best)
            for winner in best:
                won[winner] += 1 / len(best)
    return {name: 100 * count / max(cases, 1) for name, count in won.items()}, cases


def _best(members: Sequence[Run], metric: str, rule: Rule) -> list[Method]:
    """The methods with the largest value, none where fewer than two have one."""
    groups: dict[Method, list[Run]] = {}
    for run in members:
        groups.setdefault(method(run), []).append(run)
    values = {name: value for name, group in groups.items() if (value := rule(group, metric)) is not None}
    return [name for name, value in values.items() if value == max(values.values())] if len(values) > 1 else []


def method(run: Run) -> Method:
    return str(run.value("model")), str(run.value("supervision"))


def _place(name: Method) -> tuple[int, str]:
    """Models in the order of their colours, Gaussian ones first."""
    return list(COLOURS).index(name[0]) if name[0] in COLOURS else len(COLOURS), name[1]


def _required(runs: Sequence[Run]) -> list[Standing]:
    found = standings(runs)
    if not found:
        raise UndefinedError(
            "there are no supervised runs of two methods with the same metric on one dataset; "
            "train some with: lddr train --supervision masked"
        )
    return found


def _caption(runs: Sequence[Run]) -> str:
    cases = sorted({standing.cases for standing in _required(runs)})
    many = " or ".join(map(str, cases))
    return (
        f"How often each method has the best score, over {many} cases (a metric on a dataset), when a method is stood "
        "for by the median of its runs, by the run with the lowest risk R_s on the labels kept apart, or by the one "
        "with the lowest Gap_ST (Gaussian methods, which have none: the lowest R_s). Ties are shared."
    )


@figure(figures, "semi-supervised", "Which method wins with a few labels", 60, _caption)
def semi_supervised(runs: Sequence[Run]) -> "Figure":
    """A row for each number of labels, a panel for each rule."""
    titles = {method(run): method_title(run) for run in supervised(runs)}
    return win_bars(_required(runs), titles)


@styled
def win_bars(found: Sequence[Standing], titles: Mapping[Method, str]) -> "Figure":
    """Shares of wins as bars; every panel has the same methods in the same order."""
    methods = sorted({name for standing in found for name in standing.shares}, key=_place)
    rows, columns = sorted({s.labels for s in found}), [rule for rule in RULES if any(s.rule == rule for s in found)]
    drawing = new_figure(1.6 + 2.1 * len(columns), 0.5 + len(rows) * (0.6 + 0.27 * len(methods)))
    panels = drawing.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
    for axes in panels.ravel():
        axes.set_axis_off()
    for standing in found:
        axes = panels[rows.index(standing.labels), columns.index(standing.rule)]
        axes.set_axis_on()
        _draw_bars(axes, standing, methods)
        axes.set_title(f"{standing.rule}, {standing.labels} labels")
    panels[0, 0].set_yticks(range(len(methods)), [titles[name] for name in methods])
    panels[0, 0].set(ylim=(len(methods) - 0.5, -0.5), xlim=(0, _limit(found)))
    for axes in panels[-1]:
        axes.set_xlabel("best in % of cases")
    return drawing


def _draw_bars(axes: "Axes", standing: Standing, methods: Sequence[Method]) -> None:
    for place, name in enumerate(methods):
        share, hatch = standing.shares.get(name, 0.0), HATCHES.get(name[1], "")
        axes.barh(place, share, 0.72, color=colour(name[0]), hatch=hatch, edgecolor=INK, linewidth=0.5)
        axes.text(share + 1, place, f"{share:.0f}", va="center", fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def _limit(found: Sequence[Standing]) -> float:
    return min(108.0, max(max(standing.shares.values()) for standing in found) * 1.15 + 3)
