"""Rank correlation of the metrics with the gap and with the statistical efficiency (paper, Figures 4 and 6)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import isnan

from lddr.metrics.choice import SIX_METRICS
from lddr.report.groups import Group, scores_of
from lddr.report.paper import SELECTED_FROM
from lddr.report.ranks import efficiencies, spearman
from lddr.report.tables.lines import Line, lined_table, scored
from lddr.report.tables.table import Number, Table, tables
from lddr.report.titles import metric_title
from lddr.runs.index import Run

NOTES = (
    "Positive: what is good by one is good by the other",
    "Efficiency is that of the D-VAE",
)


@tables.add("correlations", "Spearman's rank correlation with the six metrics", 70)
def correlations(groups: Sequence[Group]) -> Table:
    """A row per score and metric."""
    lines = [_line("gap", ("dvae",), "Small gap of the D-VAE", metric) for metric in SIX_METRICS]
    lines += [_line("gap", SELECTED_FROM, "Small gap of D-VAE and FactorDVAE", metric) for metric in SIX_METRICS]
    for score, learner in efficiencies().items():
        lines += [_line(score, ("dvae",), f"Efficiency of {learner}", metric) for metric in SIX_METRICS]
    table = lined_table("With", groups, lines, decimals=2)
    return replace(table, notes=(*NOTES, *table.notes))


def _line(score: str, models: Sequence[str], title: str, metric: str) -> Line:
    def runs(group: Group) -> list[Run]:
        """Of all these models together, none if one is missing."""
        return group.unsupervised(*models) if all(group.unsupervised(model) for model in models) else []

    label, number = f"{title}, {metric_title(metric)}", partial(correlation, score)
    return Line(label, runs, lambda dataset: None, metric, rivals=False, number=number)


def correlation(score: str, runs: Sequence[Run], metric: str) -> Number | None:
    """Spearman's rank correlation of two scores, turned for scores of which small is good; None if it says nothing."""
    able = scored(scored(runs, score), metric)
    sign = -1 if score == "gap" else 1
    value = sign * spearman(scores_of(able, score), scores_of(able, metric))
    return None if isnan(value) else Number(value, count=len(able))
