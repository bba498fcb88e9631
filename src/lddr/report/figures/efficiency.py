"""Metrics against the statistical efficiency of the D-VAE, for both learners (paper, Figure 4 right, appendix)."""

from collections.abc import Sequence

import numpy as np

from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.heat_maps import HeatMap, heat_maps
from lddr.report.few import few_mark, few_told
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group, scores_of
from lddr.report.ranks import FEWEST, efficiencies, metric_columns, spearman

TOLD = (
    "Spearman correlation of the metrics of the D-VAE with its statistical efficiency: the accuracy of predicting the "
    "factors from 100 labelled codes over the accuracy from 10 000."
)


@figures.add("efficiency", "Metrics against statistical efficiency of the D-VAE", 42)
def efficiency(groups: Sequence[Group]) -> Drawn:
    """A heat map for each learner."""
    maps = efficiency_maps(groups)
    if not maps:
        raise UndefinedError(
            f"there are no {FEWEST} runs of the D-VAE on one dataset with metrics and downstream scores; "
            "get them with: lddr evaluate RUN --metrics mig,downstream_logistic"
        )
    return Drawn(heat_maps(maps), TOLD + few_told(*(column for drawn in maps for column in drawn.columns)))


def efficiency_maps(groups: Sequence[Group]) -> list[HeatMap]:
    """Metrics as rows, datasets as columns."""
    chosen = {group.title: group.unsupervised("dvae") for group in groups}
    titles = list(metric_columns([run for members in chosen.values() for run in members]))
    maps = []
    for score, learner in efficiencies().items():
        known: dict[str, list[float]] = {}
        for dataset, members in chosen.items():
            scores, metrics = [run.number(score) for run in members], metric_columns(members)
            values = [spearman(metrics.get(title, [None] * len(members)), scores) for title in titles]
            if not np.isnan(values).all():
                known[dataset + few_mark(len(scores_of(members, score)))] = values
        if known:
            maps.append(HeatMap(learner, tuple(titles), tuple(known), np.array(list(known.values())).T))
    return maps
