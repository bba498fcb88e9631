"""The paper's six metrics of the D-VAE (paper, appendix)."""

from collections.abc import Sequence
from functools import partial
from operator import methodcaller

from lddr.metrics.choice import SIX_METRICS
from lddr.report.groups import Group
from lddr.report.paper import paper_metric
from lddr.report.tables.lines import Line, lined_table
from lddr.report.tables.table import Table, tables
from lddr.report.titles import metric_title


@tables.add("dvae-metrics", "All metrics of the D-VAE in %: median and quartiles", 30)
def dvae_metrics(groups: Sequence[Group]) -> Table:
    """A row per metric."""
    runs = methodcaller("unsupervised", "dvae")
    lines = [Line(metric_title(name), runs, partial(paper_metric, name), name, rivals=False) for name in SIX_METRICS]
    return lined_table("Metric", groups, lines)
