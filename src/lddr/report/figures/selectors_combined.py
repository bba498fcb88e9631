"""Choosing among D-VAE and FactorDVAE without labels: selectors against metrics (paper, Figure 6 left)."""

from collections.abc import Sequence

from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.heat_maps import heat_maps
from lddr.report.few import few_told
from lddr.report.figures.figure import Drawn, figures
from lddr.report.figures.selectors import SELECTORS_TOLD, selector_maps
from lddr.report.groups import Group
from lddr.report.paper import SELECTED_FROM
from lddr.report.titles import model_title

BOTH = " and ".join(map(model_title, SELECTED_FROM))


@figures.add("selectors-combined", f"Choosing among {BOTH} without labels", 41)
def selectors_of_both(groups: Sequence[Group]) -> Drawn:
    """A heat map for each dataset that has runs of both."""
    able = [group for group in groups if all(group.unsupervised(model) for model in SELECTED_FROM)]
    maps = selector_maps(able, SELECTED_FROM)
    if not maps:
        raise UndefinedError(f"there are no runs of {BOTH} on one dataset")
    few = few_told(*(drawn.title for drawn in maps))
    return Drawn(heat_maps(maps), f"{SELECTORS_TOLD} Models: {BOTH}, ranked together.{few}")
