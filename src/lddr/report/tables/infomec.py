"""InfoMEC of every model: modularity, compactness and explicitness, beside what others have published."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import methodcaller

from lddr.report.exhibits import UnwantedError
from lddr.report.groups import Group, scores_of
from lddr.report.others import others_infomec, others_results
from lddr.report.palette import house_place
from lddr.report.tables.lines import Line, lined_table
from lddr.report.tables.table import Table, tables
from lddr.report.titles import model_title

PARTS = {"InfoM": "infomec", "InfoC": "infomec.infoc", "InfoE": "infomec.infoe"}
ELSEWHERE = "published, other networks"


@tables.add("infomec", "InfoMEC in %: median and quartiles", 90)
def infomec(groups: Sequence[Group]) -> Table:
    """A row per part and model."""
    scored = {
        str(run.value("model")) for group in groups for run in group.unsupervised() if scores_of([run], "infomec")
    }
    if not scored:
        raise UnwantedError("no run has an InfoMEC")
    ordered = sorted(scored, key=lambda model: (house_place(model), model))
    lines = [_line(model, part) for part in PARTS for model in ordered]
    table = lined_table("Model", groups, lines, source=ELSEWHERE)
    told = others_results()["infomec"]
    notes = [f"{ELSEWHERE}: {told['source']} ({told['protocol']})"]
    return replace(table, notes=(*notes, *table.notes)) if any(ELSEWHERE in name for name in table.columns) else table


def _line(model: str, part: str) -> Line:
    label = f"{model_title(model)}: {part}"
    theirs = partial(others_infomec, model, part.lower())
    return Line(label, methodcaller("unsupervised", model), theirs, PARTS[part], rivals=False)
