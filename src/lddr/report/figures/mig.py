"""Gaussian and discrete models by MIG: a panel for each objective, a violin for each dataset (paper, Figures 5, 6)."""

from collections.abc import Sequence

from lddr.report.drawing.violins import draw_violins, gain_text, handles, violins_told
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group
from lddr.report.pairs import Case, compared, pairs, wins
from lddr.report.style import Axes, paneled
from lddr.report.titles import metric_title, model_title


@figures.add("mig", "Gaussian and discrete models by MIG", 51)
def by_mig(groups: Sequence[Group]) -> Drawn:
    """A panel for each pair of models, with the datasets along its axis."""
    found = compared(groups, pairs(), ["mig"])
    widest = max(2, *map(len, found))
    figure, panels = paneled(len(found), 2, (1.2 + 1.15 * widest, 3.1))
    for axes, cases in zip(panels, found, strict=True):
        _draw_panel(axes, cases)
    return Drawn(figure, " ".join(f"{violins_told(cases)} The discrete model is {wins(cases)}." for cases in found))


def _draw_panel(axes: Axes, cases: Sequence[Case]) -> None:
    draw_violins(axes, cases)
    axes.set_xticks(range(len(cases)), [f"{case.dataset}\n{gain_text(case)}" for case in cases])
    top = max(max(case.gaussian + case.discrete) for case in cases)
    axes.set(xlim=(-0.6, len(cases) - 0.4), ylim=(0, 1.2 * top), ylabel=metric_title(cases[0].metric))
    axes.set_title(f"{model_title(cases[0].models[1])} {wins(cases)}")
    axes.legend(handles=handles(cases[0].models), loc="upper center", ncols=2)
