"""The paper's tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from math import isnan
from operator import methodcaller
from typing import Any

import numpy as np

from lddr.metrics.metric import SIX_METRICS, UndefinedError
from lddr.report.exhibits import Cell, Number, Table, UnwantedError, tables
from lddr.report.groups import Group, main_groups, scores_of
from lddr.report.style import FEW_MARK, FEW_MEANING, metric_title, model_order, model_title
from lddr.runs.index import Run
from lddr_paper.comparisons import (
    Method,
    Pair,
    compare,
    compare_everywhere,
    efficiencies,
    method,
    methods,
    model_pairs,
    num_labels,
    standings,
    wins_text,
)
from lddr_paper.judging import rank_correlation
from lddr_paper.published import (
    SELECTED_FROM,
    Departures,
    counterpart,
    counterpart_title,
    departures,
    infomec_elsewhere,
    paper_gain,
    paper_metric,
    paper_mig,
    paper_results,
    paper_source,
    paper_supervised,
    published_elsewhere,
)

MARKS = {  # what a mark behind a number means; its note ends with the exact difference
    "†": "fewer steps than the paper's",
    "‡": "another dataset than the paper's, which only looks alike",
    "°": "images drawn here, not read from the official file",
    "§": "other settings than the paper's",
    "¶": "other metric settings than the published ones",
    FEW_MARK: FEW_MEANING,
    "*": "quoted by the paper from Locatello et al. (2019)",
}
COUNTED = "In round brackets: the number of runs"


def with_notes(table: Table, first: str, found: Mapping[str, Iterable[str]]) -> Table:
    """Return a table with a note for each mark in its cells; `found` maps a mark to the exact differences."""
    marks = {mark for row in table.rows for cell in row if isinstance(cell, Number) for mark in cell.all_marks}
    exact = {mark: ", ".join(found.get(mark, ())) for mark in MARKS if mark in marks}
    notes = [f"{mark} {MARKS[mark]}" + (f": {text}" if text else "") for mark, text in exact.items()]
    return replace(table, notes=(*table.notes, first, *notes))


def quartiles(values: Sequence[float], marks: str = "") -> Number | None:
    """Return the median and quartiles (interpolated linearly) of some values; None of nothing."""
    if not values:
        return None
    low, middle, high = np.quantile(np.asarray(values, dtype=float), [0.25, 0.5, 0.75]).tolist()
    return Number(middle, low, high, len(values), marks)


def with_best(cells: Sequence[Cell]) -> list[Cell]:
    """Mark the largest numbers of a column as the best, if there are at least two to choose from."""
    values = [cell.value for cell in cells if isinstance(cell, Number)]
    if len(values) < 2:
        return list(cells)
    return [replace(cell, best=cell.value == max(values)) if isinstance(cell, Number) else cell for cell in cells]


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
    return quartiles([100 * value for value in scores_of(runs, metric)])


def lined_table(
    head: str, groups: Sequence[Group], lines: Sequence[Line], decimals: int = 1, source: str = "paper"
) -> Table:
    """Return the lines and the groups that have a number; `source` names the columns of reference numbers."""
    found: Departures = {}
    ours = [(group, [_cell(group, line, found) for line in lines]) for group in groups]
    ours = [(group, cells) for group, cells in ours if any(cells)]
    kept = [place for place in range(len(lines)) if any(cells[place] for _, cells in ours)]
    if not kept:
        if not any(line.runs(group) for group in groups for line in lines):
            raise UndefinedError("there are no unsupervised runs of these models")
        wanted = ",".join(dict.fromkeys(line.metric for line in lines))
        raise UndefinedError(f"no run has these scores; get them with: lddr evaluate RUN... --metrics {wanted}")
    lines = [lines[place] for place in kept]
    header: list[str] = [head]
    columns: list[Sequence[Cell]] = [[line.label for line in lines]]
    for group, every in ours:
        cells = [every[place] for place in kept]
        best = iter(with_best([cell for cell, line in zip(cells, lines, strict=True) if line.rivals]))
        marked = [next(best) if line.rivals else cell for cell, line in zip(cells, lines, strict=True)]
        header.append(group.label)
        columns.append(marked)
        if any(theirs := [line.paper(counterpart(group.dataset)) for line in lines]):
            header.append(f"{source}: {counterpart_title(group.dataset)}")
            columns.append(theirs)
    table = Table("", "", tuple(header), tuple(zip(*columns, strict=True)), decimals=decimals, source=paper_source())
    return with_notes(table, COUNTED, found)


def _cell(group: Group, line: Line, found: Departures) -> Number | None:
    """Return our number, marked if the paper's is not directly comparable."""
    runs = line.runs(group)
    number, paper = line.number(runs, line.metric), line.paper(counterpart(group.dataset))
    if number is None or paper is None:
        return number
    metric = line.metric.split(".")[0]  # the metric that a detail of its result belongs to
    return replace(number, marks=marks_of(scored(runs, line.metric), metric, group.metric_settings.get(metric), found))


def marks_of(runs: Sequence[Run], metric: str, used: dict[str, Any] | None, found: Departures) -> str:
    """Return the marks of a number that comes from these runs, and add what they mean to `found`."""
    here = departures(runs, metric, used)
    for mark, what in here.items():
        found.setdefault(mark, {}).update(what)
    return "".join(filter(here.__contains__, MARKS))


@tables.add("dvae-metrics", "All metrics of the D-VAE in %: median and quartiles", 30)
def dvae_metrics(groups: Sequence[Group]) -> Table:
    """Return a row per metric."""
    runs = methodcaller("unsupervised", "dvae")
    lines = [Line(metric_title(name), runs, partial(paper_metric, name), name, rivals=False) for name in SIX_METRICS]
    return lined_table("Metric", groups, lines)


@tables.add("mig-quartiles", "MIG in %: median and quartiles", 20)
def mig_quartiles(groups: Sequence[Group]) -> Table:
    """Return a row per model."""
    return lined_table("Model", groups, model_lines(groups))


def model_lines(groups: Sequence[Group]) -> list[Line]:
    """Return a line for every available model, in the standard order."""
    models = {str(run.value("model")) for group in groups for run in group.unsupervised()}
    return [
        Line(model_title(model), methodcaller("unsupervised", model), partial(paper_mig, model))
        for model in sorted(models, key=lambda model: (model_order(model), model))
    ]


WINS_NOTES = (
    "A case is a metric on a dataset; equals share it",
    "Gaussian models have no gap: theirs is the run with the lowest R_s, the risk on held-out labels",
)


@tables.add("wins", "Share of cases in % in which a semi-supervised method is the best", 60)
def wins(groups: Sequence[Group]) -> Table:
    """Return a row per method, and a column per number of labels and rule."""
    main = main_groups(groups)
    found, titles = standings(main), methods(main)
    columns: dict[str, list[Cell]] = {}
    for one in found:
        shares = [Number(one.shares[name], fewest=one.fewest) if name in one.shares else None for name in titles]
        columns[f"{one.labels} labels, {one.rule}, {one.cases} cases"] = with_best(shares)
    rows = tuple(zip(titles.values(), *columns.values(), strict=True))
    return with_notes(Table("", "", ("Model", *columns), rows, WINS_NOTES[:1]), WINS_NOTES[1], {})


@tables.add("semi-supervised", "MIG in % of the semi-supervised models: median and quartiles", 40)
def semi_supervised(groups: Sequence[Group]) -> Table:
    """Return a row per method and number of labels."""
    labels = sorted({num_labels(run) for group in groups for run in group.supervised})
    if not labels:
        raise UndefinedError("no run saw labels; train some with: lddr train --supervision masked --labels 1000")
    lines = [_labels_line(name, title, count) for count in labels for name, title in methods(groups).items()]
    return lined_table("Model", groups, lines)


def _labels_line(name: Method, title: str, labels: int) -> Line:
    def runs(group: Group) -> list[Run]:
        return [run for run in group.supervised if (method(run), num_labels(run)) == (name, labels)]

    return Line(f"{title}, {labels} labels", runs, partial(paper_supervised, *name, labels))


PARTS = {"InfoM": "infomec", "InfoC": "infomec.infoc", "InfoE": "infomec.infoe"}
ELSEWHERE = "published, other networks"


@tables.add("infomec", "InfoMEC in %: median and quartiles", 90)
def infomec(groups: Sequence[Group]) -> Table:
    """Return a row per part and model."""
    scored = {
        str(run.value("model")) for group in groups for run in group.unsupervised() if scores_of([run], "infomec")
    }
    if not scored:
        raise UnwantedError("no run has an InfoMEC")
    ordered = sorted(scored, key=lambda model: (model_order(model), model))
    lines = [_infomec_line(model, part) for part in PARTS for model in ordered]
    table = lined_table("Model", groups, lines, source=ELSEWHERE)
    origin = published_elsewhere()["infomec"]
    notes = [f"{ELSEWHERE}: {origin['source']} ({origin['protocol']})"]
    return replace(table, notes=(*notes, *table.notes)) if any(ELSEWHERE in name for name in table.columns) else table


def _infomec_line(model: str, part: str) -> Line:
    label = f"{model_title(model)}: {part}"
    theirs = partial(infomec_elsewhere, model, part.lower())
    return Line(label, methodcaller("unsupervised", model), theirs, PARTS[part], rivals=False)


SELECTION_NOTE = "Selection: the one run with the smallest straight-through gap, of all runs of D-VAE and FactorDVAE"


@tables.add("mig", "Median MIG in %", 10)
def median_mig(groups: Sequence[Group]) -> Table:
    """Return a row per model, and one for the selection."""
    candidates = methodcaller("unsupervised", *SELECTED_FROM)
    choice = Line("Selection", candidates, partial(paper_mig, "selection"), rivals=False, number=selected)
    table = lined_table("Model", groups, [*model_lines(groups), choice])
    rows = [
        [replace(cell, low=None, high=None) if isinstance(cell, Number) else cell for cell in row] for row in table.rows
    ]
    notes = [SELECTION_NOTE] if rows[-1][0] == choice.label else []
    return replace(table, rows=tuple(map(tuple, rows)), notes=(*notes, *table.notes))


def selected(runs: Sequence[Run], metric: str) -> Number | None:
    """Return the score, in percent, of the run with the smallest straight-through gap."""
    from lddr.selection.ranking import select

    able = scored(scored(runs, "gap"), metric)
    if not able:
        return None
    chosen = select(able, "gap").chosen
    return Number(next(100 * run.scores[metric] for run in able if str(run.folder) == chosen), count=len(able))


CORRELATION_NOTES = (
    "Positive: runs that are good by one are good by the other",
    "Efficiency is that of the D-VAE",
)


@tables.add("correlations", "Spearman's rank correlation with the six metrics", 70)
def correlations(groups: Sequence[Group]) -> Table:
    """Return a row per score and metric."""
    dvae = ("dvae",)
    kinds = [("gap", dvae, "Small gap of the D-VAE"), ("gap", SELECTED_FROM, "Small gap of D-VAE and FactorDVAE")]
    kinds += [(score, dvae, f"Efficiency of {learner}") for score, learner in efficiencies().items()]
    lines = [_correlation_line(*kind, metric) for kind, metric in product(kinds, SIX_METRICS)]
    table = lined_table("With", groups, lines, decimals=2)
    return replace(table, notes=(*CORRELATION_NOTES, *table.notes))


def _correlation_line(score: str, models: Sequence[str], title: str, metric: str) -> Line:
    def runs(group: Group) -> list[Run]:
        """Return the runs of all these models together; none if a model is missing."""
        return group.unsupervised(*models) if all(map(group.unsupervised, models)) else []

    label, number = f"{title}, {metric_title(metric)}", partial(correlation, score)
    return Line(label, runs, lambda dataset: None, metric, rivals=False, number=number)


def correlation(score: str, runs: Sequence[Run], metric: str) -> Number | None:
    """Return Spearman's rank correlation of two scores, negated if smaller is better; None if it is undefined."""
    found = rank_correlation([run.number(score) for run in runs], [run.number(metric) for run in runs])
    sign = -1 if score == "gap" else 1
    return None if isnan(found.value) else Number(sign * found.value, count=found.runs)


@tables.add("gains", "Gain of the discrete models in % of the Gaussian median", 50)
def gains(groups: Sequence[Group]) -> Table:
    """Return a row per pair of models and metric."""
    lines = [_gains_line(pair, metric) for pair, metric in product(model_pairs(), SIX_METRICS)]
    table = lined_table("Comparison", groups, lines)
    return replace(table, notes=(*filter(None, (_wins_note(groups, pair) for pair in model_pairs())), *table.notes))


def _gains_line(pair: Pair, metric: str) -> Line:
    runs = methodcaller("unsupervised", *pair)
    label = f"{_against(pair, 'over')}, {metric_title(metric)}"
    return Line(label, runs, partial(paper_gain, pair[1], metric), metric, rivals=False, number=partial(gain, pair))


def gain(pair: Pair, runs: Sequence[Run], metric: str) -> Number | None:
    """Return by how many percent the discrete median exceeds the Gaussian one; None if that is undefined."""
    case = compare("", runs, pair, metric)
    if case is None or case.gain is None:
        return None
    return Number(case.gain, count=len(case.gaussian) + len(case.discrete), fewest=case.fewest)


def _wins_note(groups: Sequence[Group], pair: Pair) -> str:
    """Describe how often the discrete model is better; a case is a metric on a dataset."""
    found = compare_everywhere(groups, pair)
    claim = paper_results()["claims"]["unregularized_cases_won_by_discrete"]
    paper = f"; in the paper in {claim['won']} of {claim['of']}" if pair == model_pairs()[0] else ""
    return f"{_against(pair, 'against')}: {wins_text(found)}{paper}" if found else ""


def _against(pair: Pair, word: str) -> str:
    return f"{model_title(pair[1])} {word} {model_title(pair[0])}"
