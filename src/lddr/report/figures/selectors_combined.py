"""Choosing among all discrete models without labels: selectors against metrics (paper, Figure 6 left)."""

from collections.abc import Sequence

from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.heat_maps import heat_maps
from lddr.report.figures.figure import Drawn, figures
from lddr.report.figures.selectors import SELECTORS_TOLD, selector_maps
from lddr.report.groups import Group
from lddr.report.palette import is_discrete
from lddr.report.titles import model_title


@figures.add("selectors-combined", "Choosing among all discrete models without labels", 41)
def selectors_of_all(groups: Sequence[Group]) -> Drawn:
    """A heat map for each dataset."""
    models = dict.fromkeys(str(run.value("model")) for group in groups for run in group.unsupervised())
    discrete = [model for model in models if is_discrete(model)]
    maps = selector_maps(groups, discrete) if len(discrete) > 1 else []
    if not maps:
        raise UndefinedError("there are no runs of two discrete models, D-VAE and FactorDVAE say, on one dataset")
    told = f"{SELECTORS_TOLD} Models: {', '.join(map(model_title, discrete))}, ranked together."
    return Drawn(heat_maps(maps), told)
