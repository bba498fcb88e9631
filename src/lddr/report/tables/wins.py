"""How often each semi-supervised method is the best, by the rule that chooses its run (paper, Figure 7)."""

from collections.abc import Sequence

from lddr.report.groups import Group, main_groups
from lddr.report.standings import Method, Standing, methods, standings
from lddr.report.tables.table import Cell, Number, Table, tables, with_best

NOTES = (
    "A case is a metric on a dataset; equals share it",
    "Gaussian models have no gap: theirs is the run with the lowest R_s, the risk on labelled images kept apart",
)


@tables.add("wins", "Share of cases in % in which a semi-supervised method is the best", 60)
def wins(groups: Sequence[Group]) -> Table:
    """A row per method, a column per number of labels and rule."""
    main = main_groups(groups)
    found, titles = standings(main), methods(main)
    columns = {f"{one.labels} labels, {one.rule}, {one.cases} cases": _shares(one, list(titles)) for one in found}
    rows = tuple(zip(titles.values(), *columns.values(), strict=True))
    return Table("", "", ("Model", *columns), rows, NOTES[:1]).with_notes(NOTES[1], {})


def _shares(standing: Standing, names: Sequence[Method]) -> list[Cell]:
    shares = [standing.shares.get(name) for name in names]
    return with_best([None if value is None else Number(value, fewest=standing.fewest) for value in shares])
