"""Which method wins with a few labels: a row for each number of labels, a panel for each rule (paper, Figure 7)."""

from collections.abc import Sequence

from lddr.report.few import few_mark, few_told
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group
from lddr.report.palette import colour, hatch
from lddr.report.standings import RULES, Method, Standing, methods, standings
from lddr.report.style import INK, Axes, new_figure


@figures.add("semi-supervised", "Which method wins with a few labels", 60)
def semi_supervised(groups: Sequence[Group]) -> Drawn:
    """Shares of wins as bars; every panel has the same methods in the same order."""
    found, titles = standings(groups), methods(groups)
    rows, columns = sorted({s.labels for s in found}), [rule for rule in RULES if any(s.rule == rule for s in found)]
    figure = new_figure(1.6 + 2.1 * len(columns), 0.5 + len(rows) * (0.6 + 0.27 * len(titles)))
    panels = figure.subplots(len(rows), len(columns), squeeze=False, sharex=True, sharey=True)
    for axes in panels.ravel():
        axes.set_axis_off()
    for standing in found:
        axes = panels[rows.index(standing.labels), columns.index(standing.rule)]
        axes.set_axis_on()
        _draw_bars(axes, standing, list(titles))
        axes.set_title(f"{standing.rule}, {standing.labels} labels{few_mark(standing.fewest)}")
    panels[0, 0].set_yticks(range(len(titles)), titles.values())
    panels[0, 0].set(ylim=(len(titles) - 0.5, -0.5), xlim=(0, _limit(found)))
    for axes in panels[-1]:
        axes.set_xlabel("best in % of cases")
    return Drawn(figure, _caption(found))


def _draw_bars(axes: Axes, standing: Standing, methods: Sequence[Method]) -> None:
    for place, name in enumerate(methods):
        share = standing.shares.get(name, 0.0)
        axes.barh(place, share, 0.72, color=colour(name[0]), hatch=hatch(*name), edgecolor=INK, linewidth=0.5)
        axes.text(share + 1, place, f"{share:.0f}", va="center", fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x")


def _limit(found: Sequence[Standing]) -> float:
    return min(108.0, max(max(standing.shares.values()) for standing in found) * 1.15 + 3)


def _caption(found: Sequence[Standing]) -> str:
    many = " or ".join(map(str, sorted({standing.cases for standing in found})))
    return (
        f"How often each method has the best score, over {many} cases (a metric on a dataset), when a method is stood "
        "for by the median of its runs, by the run with the lowest risk R_s on the labels kept apart, or by the one "
        "with the lowest Gap_ST (Gaussian methods, which have none: the lowest R_s). Ties are shared."
        f"{few_told(*(few_mark(standing.fewest) for standing in found))}"
    )
