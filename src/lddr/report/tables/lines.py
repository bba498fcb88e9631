"""Tables of medians: a row for each line of runs and, for each group, a column of ours and one of the paper's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from lddr.metrics.metric import UndefinedError
from lddr.report.groups import Group, scores_of
from lddr.report.paper import Departures, counterpart, counterpart_title, departures
from lddr.report.tables.table import COUNTED, MARKS, Cell, Number, Table, spread, with_best
from lddr.runs.index import Run


@dataclass(frozen=True)
class Line:
    """The specification of a row: its label, its runs in a group, and the paper's number for a dataset."""

    label: str
    runs: Callable[[Group], list[Run]]
    paper: Callable[[str | None], Number | None]
    metric: str = "mig"
    rivals: bool = True  # whether it may be the best of its column
    number: Callable[[Sequence[Run], str], Number | None] = field(default_factory=lambda: percent)


def scored(runs: Sequence[Run], metric: str) -> list[Run]:
    """Return the runs that have the score."""
    return [run for run in runs if run.number(metric) is not None]


def percent(runs: Sequence[Run], metric: str) -> Number | None:
    """Return median and quartiles of a score, in percent."""
    return spread([100 * value for value in scores_of(runs, metric)])


def lined_table(
    head: str, groups: Sequence[Group], lines: Sequence[Line], decimals: int = 1, source: str = "paper"
) -> Table:
    """Return the lines and the groups that have a number; `source` names the columns of reference numbers."""
    found: Departures = {}
    ours = [(group, [_cell(group, line, found) for line in lines]) for group in groups]
    ours = [(group, cells) for group, cells in ours if any(cells)]
    kept = [place for place in range(len(lines)) if any(cells[place] for _, cells in ours)]
    if not kept:
        raise UndefinedError(_missing(groups, lines))
    columns: list[tuple[str, list[Cell]]] = [(head, [line.label for line in lines])]
    for group, cells in ours:
        columns += [(group.label, _contest(cells, lines)), *_paper_column(group, lines, kept, source)]
    rows = zip(*([cells[place] for place in kept] for _, cells in columns), strict=True)
    table = Table("", "", tuple(heading for heading, _ in columns), tuple(rows), decimals=decimals)
    return table.with_notes(COUNTED, found)


def _cell(group: Group, line: Line, found: Departures) -> Number | None:
    """Return our number, marked if the paper's is not directly comparable."""
    runs = line.runs(group)
    number, paper = line.number(runs, line.metric), line.paper(counterpart(group.dataset))
    if number is None or paper is None:
        return number
    metric = line.metric.split(".")[0]  # the metric that a detail of its result belongs to
    here = departures(scored(runs, line.metric), metric, group.metric_settings.get(metric))
    for mark, what in here.items():
        found.setdefault(mark, {}).update(what)
    return replace(number, marks="".join(mark for mark in MARKS if mark in here))


def _paper_column(
    group: Group, lines: Sequence[Line], kept: Sequence[int], source: str
) -> list[tuple[str, list[Cell]]]:
    cells: list[Cell] = [line.paper(counterpart(group.dataset)) for line in lines]
    return [(f"{source}: {counterpart_title(group.dataset)}", cells)] if any(cells[place] for place in kept) else []


def _contest(cells: Sequence[Cell], lines: Sequence[Line]) -> list[Cell]:
    """Mark the best of the lines that compete."""
    best = iter(with_best([cell for cell, line in zip(cells, lines, strict=True) if line.rivals]))
    return [next(best) if line.rivals else cell for cell, line in zip(cells, lines, strict=True)]


def _missing(groups: Sequence[Group], lines: Sequence[Line]) -> str:
    if not any(line.runs(group) for group in groups for line in lines):
        return "there are no unsupervised runs of these models"
    wanted = ",".join(dict.fromkeys(line.metric for line in lines))
    return f"no run has these scores; get them with: lddr evaluate RUN... --metrics {wanted}"
