"""MIG of the models that saw labels (paper, appendix)."""

from collections.abc import Sequence
from functools import partial

from lddr.metrics.metric import UndefinedError
from lddr.report.groups import Group
from lddr.report.paper import paper_supervised
from lddr.report.standings import Method, method, methods, num_labels
from lddr.report.tables.lines import Line, lined_table
from lddr.report.tables.table import Table, tables
from lddr.runs.index import Run


@tables.add("semi-supervised", "MIG in % of the semi-supervised models: median and quartiles", 40)
def semi_supervised(groups: Sequence[Group]) -> Table:
    """A row per method and number of labels."""
    labels = sorted({num_labels(run) for group in groups for run in group.supervised})
    if not labels:
        raise UndefinedError("no run saw labels; train some with: lddr train --supervision masked --labels 1000")
    lines = [_line(name, title, count) for count in labels for name, title in methods(groups).items()]
    return lined_table("Model", groups, lines)


def _line(name: Method, title: str, labels: int) -> Line:
    def runs(group: Group) -> list[Run]:
        return [run for run in group.supervised if (method(run), num_labels(run)) == (name, labels)]

    return Line(f"{title}, {labels} labels", runs, partial(paper_supervised, *name, labels))
