"""The latent spaces of all runs on Circles, a figure for each family (paper, appendix)."""

from collections.abc import Sequence
from functools import partial

from lddr.report.drawing.latent_grid import draw_grid, space_of
from lddr.report.figures.circles import ranked
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group
from lddr.report.pairs import pairs
from lddr.report.style import paneled
from lddr.report.titles import model_title
from lddr.runs.index import Run

ACROSS = 10


def sheet(groups: Sequence[Group], model: str) -> Drawn:
    """All runs of a model, best MIG first."""
    members = ranked(groups, model)
    figure, panels = paneled(len(members), ACROSS, (1.15, 1.4), (0, 0.3))
    for axes, run in zip(panels, members, strict=True):
        draw_grid(axes, space_of(run), 0.5, dots=False)
        axes.set_title(_scores_line(run), fontsize=7, pad=3)
    figure.suptitle(f"{model_title(model)} on Circles, sorted by MIG (scores in %)", fontsize=9)
    with_dci = " and DCI" if all(run.number("dci") is not None for run in members) else ""
    caption = (
        f"The latent spaces of all {len(members)} runs of the {model_title(model)}, with MIG{with_dci} in percent."
    )
    return Drawn(figure, caption)


def _scores_line(run: Run) -> str:
    dci = run.number("dci")
    return f"MIG {100 * run.scores['mig']:.0f}" + ("" if dci is None else f" · DCI {100 * dci:.0f}")


for _place, _model in enumerate(pairs()[0]):
    _title = f"All latent spaces of the {model_title(_model)} on Circles"
    figures.add(f"circles-{_model}", _title, 31 + _place)(partial(sheet, model=_model))
