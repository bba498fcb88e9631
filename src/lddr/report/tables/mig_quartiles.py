"""MIG of every model and dataset: median and quartiles (paper, appendix)."""

from collections.abc import Sequence
from functools import partial
from operator import methodcaller

from lddr.report.groups import Group
from lddr.report.palette import house_place
from lddr.report.paper import paper_mig
from lddr.report.tables.lines import Line, lined_table
from lddr.report.tables.table import Table, tables
from lddr.report.titles import model_title


@tables.add("mig-quartiles", "MIG in %: median and quartiles", 20)
def mig_quartiles(groups: Sequence[Group]) -> Table:
    """A row per model."""
    return lined_table("Model", groups, model_lines(groups))


def model_lines(groups: Sequence[Group]) -> list[Line]:
    """A line for every model there is, in the order of the house."""
    models = {str(run.value("model")) for group in groups for run in group.unsupervised()}
    return [
        Line(model_title(model), methodcaller("unsupervised", model), partial(paper_mig, model))
        for model in sorted(models, key=lambda model: (house_place(model), model))
    ]
