"""The unregularised models by every metric on every dataset, as half violins (paper, Figure 5 left, appendix)."""

from collections.abc import Sequence

from lddr.metrics.choice import SIX_METRICS
from lddr.report.drawing.violins import draw_violins, gain_text, handles, violins_told
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group
from lddr.report.pairs import compared, pairs, wins
from lddr.report.style import new_figure
from lddr.report.titles import metric_title, model_title


@figures.add("metrics", "VAE and D-VAE by every metric on every dataset", 50)
def by_every_metric(groups: Sequence[Group]) -> Drawn:
    """A row of panels for each dataset, one panel with an axis of its own for each metric."""
    (cases,) = compared(groups, pairs()[:1], SIX_METRICS)
    rows = list(dict.fromkeys(case.dataset for case in cases))
    columns = list(dict.fromkeys(case.metric for case in cases))
    figure = new_figure(1.0 + 1.35 * len(columns), 0.7 + 1.85 * len(rows))
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    for axes in panels.ravel():
        axes.set_axis_off()
    for case in cases:
        axes = panels[rows.index(case.dataset), columns.index(case.metric)]
        axes.set_axis_on()
        draw_violins(axes, [case])
        axes.set(xlim=(-0.6, 0.6), xticks=(), xlabel=gain_text(case))
        if case is next(other for other in cases if other.metric == case.metric):
            axes.set_title(metric_title(case.metric))
    for row, dataset in zip(panels, rows, strict=True):
        row[0].set_ylabel(dataset, fontweight="bold")
    title = f"{model_title(cases[0].models[1])} {wins(cases)}; below each panel: change of the median"
    figure.legend(handles=handles(cases[0].models), loc="outside lower center", ncols=2, title=title, title_fontsize=9)
    caption = (
        f"{violins_told(cases)} A row per dataset, a column per metric, with the change of the median below; "
        f"taking all together, the discrete model is {wins(cases)}."
    )
    return Drawn(figure, caption)
