"""Choosing a D-VAE without labels: selectors against metrics (paper, Figure 4 left)."""

from collections.abc import Sequence

from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.heat_maps import HeatMap, correlations, heat_maps
from lddr.report.few import few_mark, few_told
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group
from lddr.report.ranks import FEWEST, metric_columns, selector_columns

SELECTORS_TOLD = (
    "Spearman correlation of what can be known without labels with what needs them. Selectors are turned so that a "
    "positive number means that the choice is good: a small Gap_ST goes with a large score."
)


@figures.add("selectors", "Choosing a D-VAE without labels", 40)
def selectors_of_dvae(groups: Sequence[Group]) -> Drawn:
    """A heat map for each dataset."""
    maps = selector_maps(groups, ["dvae"])
    if not maps:
        raise UndefinedError(
            f"there are no {FEWEST} runs of the D-VAE on one dataset with metrics; "
            "train more seeds, then: lddr evaluate RUN --metrics gap,mig"
        )
    return Drawn(heat_maps(maps), SELECTORS_TOLD + few_told(*(drawn.title for drawn in maps)))


def selector_maps(groups: Sequence[Group], models: Sequence[str]) -> list[HeatMap]:
    """A map per dataset, of the runs of these models together."""
    maps = []
    for group in groups:
        members = group.unsupervised(*models)
        left, right = selector_columns(members), metric_columns(members)
        if len(members) >= FEWEST and left and right:
            maps.append(correlations(left, right, f"{group.title} ({len(members)} runs){few_mark(len(members))}"))
    return maps
