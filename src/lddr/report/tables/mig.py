"""Median MIG of every model and dataset, and of the model with the smallest gap (paper, Table 1)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import methodcaller

from lddr.report.groups import Group
from lddr.report.paper import SELECTED_FROM, paper_mig
from lddr.report.tables.lines import Line, lined_table, scored
from lddr.report.tables.mig_quartiles import model_lines
from lddr.report.tables.table import Number, Table, tables
from lddr.runs.index import Run

TOLD = "Selection: the one run with the smallest straight-through gap, of all runs of D-VAE and FactorDVAE"


@tables.add("mig", "Median MIG in %", 10)
def median_mig(groups: Sequence[Group]) -> Table:
    """A row per model, and the selection."""
    candidates = methodcaller("unsupervised", *SELECTED_FROM)
    choice = Line("Selection", candidates, partial(paper_mig, "selection"), rivals=False, number=selected)
    table = lined_table("Model", groups, [*model_lines(groups), choice])
    rows = [
        [replace(cell, low=None, high=None) if isinstance(cell, Number) else cell for cell in row] for row in table.rows
    ]
    notes = [TOLD] if rows[-1][0] == choice.label else []
    return replace(table, rows=tuple(map(tuple, rows)), notes=(*notes, *table.notes))


def selected(runs: Sequence[Run], metric: str) -> Number | None:
    """The score, in percent, of the run with the smallest straight-through gap."""
    from lddr.selection.ranking import select

    able = scored(scored(runs, "gap"), metric)
    if not able:
        return None
    chosen = select(able, "gap").chosen
    return Number(next(100 * run.scores[metric] for run in able if str(run.folder) == chosen), count=len(able))
