"""The paper's tables from groups of runs: medians and quartiles of ours, and the paper's number beside each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from lddr.metrics.metric import UndefinedError
from lddr.report.collect import Group
from lddr.report.figures import of_model, scores_of, supervised, unsupervised
from lddr.report.paper import (
    SIX,
    TITLES,
    Departures,
    counterpart,
    departures,
    paper_metric,
    paper_mig,
    paper_supervised,
)
from lddr.report.style import COLOURS, method_title, metric_title, model_title
from lddr.report.tables import COUNTED, MARKS, Cell, Number, Table, spread, with_best, without_quartiles
from lddr.runs.index import Run

CANDIDATES = ("dvae", "factor-dvae")  # the models that the paper's Selection row chooses from


@dataclass(frozen=True)
class Line:
    """A row to be: what it is called, which runs of a group go into it, and what the paper has for a dataset."""

    label: str
    runs: Callable[[Group], list[Run]]
    paper: Callable[[str | None], Number | None]
    metric: str = "mig"
    rivals: bool = True  # whether it may be the best of its column
    number: Callable[[Sequence[Run], str], Number | None] = field(default_factory=lambda: percent)


def mig_table(groups: Sequence[Group]) -> Table:
    """Median MIG per model and dataset, and of the model with the smallest gap (paper, Table 1)."""
    lines = _model_lines(groups)
    choice = Line("Selection", _candidates, partial(paper_mig, "selection"), rivals=False, number=selected)
    table = lined_table("mig", "Median MIG in %", "Model", groups, [*lines, choice])
    rows = tuple(tuple(_middle(cell) for cell in row) for row in table.rows)
    chosen = "Selection: the one run with the smallest straight-through gap, of all runs of D-VAE and FactorDVAE"
    notes = [chosen] if rows[-1][0] == choice.label else []
    return replace(table, rows=rows, notes=(*notes, *table.notes))


def quartile_table(groups: Sequence[Group]) -> Table:
    """The same medians with the quartiles around them (paper, appendix)."""
    return lined_table("mig-quartiles", "MIG in %: median and quartiles", "Model", groups, _model_lines(groups))


def metric_table(groups: Sequence[Group]) -> Table:
    """The paper's six metrics of the D-VAE (paper, appendix)."""
    runs = partial(_unsupervised, model="dvae")
    lines = [Line(metric_title(name), runs, partial(paper_metric, name), name, rivals=False) for name in SIX]
    return lined_table("dvae-metrics", "All metrics of the D-VAE in %: median and quartiles", "Metric", groups, lines)


def supervised_table(groups: Sequence[Group]) -> Table:
    """MIG of the models that saw labels (paper, appendix)."""
    methods = {method_of(run): run for group in groups for run in in_house_order(supervised(group.runs))}
    if not methods:
        raise UndefinedError("no run saw labels; train some with: lddr train --supervision masked --labels 1000")
    lines = [
        Line(labelled_title(run), partial(_method, method=method), partial(_paper_of, method=method))
        for method, run in sorted(methods.items(), key=lambda item: item[0][2])  # by labels; else as they are
    ]
    title = "MIG in % of the semi-supervised models: median and quartiles"
    return lined_table("semi-supervised", title, "Model", groups, lines)


Method = tuple[str, str, int]  # model, supervision, labels


def method_of(run: Run) -> Method:
    """What the semi-supervised runs of one row have in common."""
    return str(run.value("model")), str(run.value("supervision")), int(run.number("labels") or 0)


def labelled_title(run: Run) -> str:
    """A supervised model as it is called in tables."""
    return f"{method_title(run)}, {method_of(run)[2]} labels"


def in_house_order(runs: Sequence[Run]) -> list[Run]:
    """The models in the order of the house: Gaussian ones, then discrete ones."""
    order = {model: place for place, model in enumerate(COLOURS)}
    return sorted(runs, key=lambda run: (order.get(str(run.value("model")), len(order)), str(run.value("supervision"))))


def scored(runs: Sequence[Run], metric: str) -> list[Run]:
    """Those that have the score."""
    return [run for run in runs if run.number(metric) is not None]


def percent(runs: Sequence[Run], metric: str) -> Number | None:
    """Median and quartiles of a score, in percent."""
    return spread([100 * value for value in scores_of(runs, metric)])


def selected(runs: Sequence[Run], metric: str) -> Number | None:
    """The score, in percent, of the run with the smallest straight-through gap."""
    from lddr.sweeps.selection import select

    able = scored(scored(runs, "gap"), metric)
    if not able:
        return None
    chosen = select(able, "gap").chosen
    return Number(next(100 * run.scores[metric] for run in able if str(run.folder) == chosen), count=len(able))


def _model_lines(groups: Sequence[Group]) -> list[Line]:
    runs = in_house_order([run for group in groups for run in unsupervised(group.runs)])
    models = dict.fromkeys(str(run.value("model")) for run in runs)
    return [Line(model_title(name), partial(_unsupervised, model=name), partial(paper_mig, name)) for name in models]


def _unsupervised(group: Group, model: str) -> list[Run]:
    return of_model(unsupervised(group.runs), model)


def _candidates(group: Group) -> list[Run]:
    return [run for model in CANDIDATES for run in _unsupervised(group, model)]


def _method(group: Group, method: Method) -> list[Run]:
    return [run for run in supervised(group.runs) if method_of(run) == method]


def _paper_of(dataset: str | None, method: Method) -> Number | None:
    return paper_supervised(*method, dataset)


def _middle(cell: Cell) -> Cell:
    return without_quartiles(cell) if isinstance(cell, Number) else cell


def lined_table(
    name: str, title: str, head: str, groups: Sequence[Group], lines: Sequence[Line], decimals: int = 1
) -> Table:
    """A row per line that has a number and, per group that has one, a column for ours and one for the paper's."""
    found: Departures = {}
    ours = [(group, [_cell(group, line, found) for line in lines]) for group in groups]
    ours = [(group, cells) for group, cells in ours if any(cells)]
    kept = [place for place in range(len(lines)) if any(cells[place] for _, cells in ours)]
    if not kept:
        raise UndefinedError(_missing(groups, lines))
    columns: list[tuple[str, list[Cell]]] = [(head, [line.label for line in lines])]
    for group, cells in ours:
        columns += [(group.label, _contest(cells, lines)), *_paper_column(group, lines, kept)]
    rows = zip(*([cells[place] for place in kept] for _, cells in columns), strict=True)
    return Table(name, title, tuple(heading for heading, _ in columns), tuple(rows), decimals=decimals).with_notes(
        COUNTED, found
    )


def _cell(group: Group, line: Line, found: Departures) -> Number | None:
    """Our number, marked where the paper has one that it cannot simply be compared with."""
    runs = line.runs(group)
    number, paper = line.number(runs, line.metric), line.paper(counterpart(group.dataset))
    if number is None or paper is None:
        return number
    here = departures(scored(runs, line.metric), line.metric, group.metric_settings.get(line.metric))
    for mark, what in here.items():
        found.setdefault(mark, {}).update(what)
    return replace(number, marks="".join(mark for mark in MARKS if mark in here))


def _paper_column(group: Group, lines: Sequence[Line], kept: Sequence[int]) -> list[tuple[str, list[Cell]]]:
    dataset = counterpart(group.dataset)
    cells: list[Cell] = [line.paper(dataset) for line in lines]
    return [(f"paper: {TITLES[dataset]}", cells)] if dataset and any(cells[place] for place in kept) else []


def _contest(cells: Sequence[Cell], lines: Sequence[Line]) -> list[Cell]:
    """Mark the best of the lines that compete."""
    best = iter(with_best([cell for cell, line in zip(cells, lines, strict=True) if line.rivals]))
    return [next(best) if line.rivals else cell for cell, line in zip(cells, lines, strict=True)]


def _missing(groups: Sequence[Group], lines: Sequence[Line]) -> str:
    if not any(line.runs(group) for group in groups for line in lines):
        return "there are no unsupervised runs of these models"
    wanted = ",".join(dict.fromkeys(line.metric for line in lines))
    return f"no run has these scores; get them with: lddr evaluate RUN... --metrics {wanted}"


TABLES = {
    "Median MIG": mig_table,
    "Quartiles of the MIG": quartile_table,
    "All metrics of the D-VAE": metric_table,
    "Semi-supervised models": supervised_table,
}
