"""By how much the median of a discrete model is better than that of the Gaussian one (paper, Figures 5 and 6)."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from operator import methodcaller

from lddr.metrics.choice import SIX_METRICS
from lddr.report.groups import Group
from lddr.report.pairs import Pair, case_of, cases, pairs, wins
from lddr.report.paper import paper_gain, paper_results
from lddr.report.tables.lines import Line, lined_table
from lddr.report.tables.table import Number, Table, tables
from lddr.report.titles import metric_title, model_title
from lddr.runs.index import Run


@tables.add("gains", "Gain of the discrete models in % of the Gaussian median", 50)
def gains(groups: Sequence[Group]) -> Table:
    """A row per pair of models and metric."""
    table = lined_table("Comparison", groups, [_line(pair, metric) for pair in pairs() for metric in SIX_METRICS])
    return replace(table, notes=(*(told for pair in pairs() if (told := _told(groups, pair))), *table.notes))


def _line(pair: Pair, metric: str) -> Line:
    runs = methodcaller("unsupervised", *pair)
    label = f"{_against(pair, 'over')}, {metric_title(metric)}"
    return Line(label, runs, partial(paper_gain, pair[1], metric), metric, rivals=False, number=partial(gain, pair))


def gain(pair: Pair, runs: Sequence[Run], metric: str) -> Number | None:
    """The discrete median over the Gaussian one, in percent more; None where that is not defined."""
    case = case_of("", runs, pair, metric)
    if case is None or case.gain is None:
        return None
    return Number(case.gain, count=len(case.gaussian) + len(case.discrete), fewest=case.fewest)


def _told(groups: Sequence[Group], pair: Pair) -> str:
    """How often the discrete model is ahead; a case is a metric on a dataset."""
    found = cases(groups, pair)
    claim = paper_results()["claims"]["unregularized_cases_won_by_discrete"]
    paper = f"; in the paper in {claim['won']} of {claim['of']}" if pair == pairs()[0] else ""
    return f"{_against(pair, 'against')}: {wins(found)}{paper}" if found else ""


def _against(pair: Pair, word: str) -> str:
    return f"{model_title(pair[1])} {word} {model_title(pair[0])}"
