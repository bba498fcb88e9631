"""Who is ahead, and what goes with what: gains of the discrete models, wins with a few labels, rank correlations."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import isnan

from lddr.metrics.metric import UndefinedError
from lddr.report.collect import Group, main_groups
from lddr.report.comparisons import PAIRS, cases, wins
from lddr.report.correlations import spearman
from lddr.report.figures import scores_of, supervised, unsupervised
from lddr.report.medians import CANDIDATES, Line, in_house_order, lined_table, scored
from lddr.report.paper import SIX, paper_gain, paper_results
from lddr.report.semisupervised import Standing, method, standings
from lddr.report.style import method_title, metric_title, model_title
from lddr.report.tables import Cell, Number, Table, with_best
from lddr.runs.index import Run

WITH = {  # what the metrics are correlated with, of which models
    "gap": (CANDIDATES, "Small gap"),
    "downstream_logistic.efficiency": (("dvae",), "Efficiency of logistic regression"),
    "downstream_boosting.efficiency": (("dvae",), "Efficiency of boosted trees"),
}


def gain_table(groups: Sequence[Group]) -> Table:
    """By how much the discrete model's median is better than that of the Gaussian one (paper, Figures 5 and 6)."""
    lines = [
        Line(
            f"{model_title(discrete)} over {model_title(gaussian)}, {metric_title(metric)}",
            partial(_unsupervised, models=(gaussian, discrete)),
            partial(paper_gain, discrete, metric),
            metric,
            rivals=False,
            number=partial(gain, (gaussian, discrete)),
        )
        for gaussian, discrete in PAIRS
        for metric in SIX
    ]
    table = lined_table("gains", "Gain of the discrete models in % of the Gaussian median", "Comparison", groups, lines)
    return replace(table, notes=(*(told for pair in PAIRS if (told := _told(groups, pair))), *table.notes))


def gain(pair: tuple[str, str], runs: Sequence[Run], metric: str) -> Number | None:
    """The discrete median over the Gaussian one, in percent more; None where that is not defined."""
    for case in cases(runs, pair, [metric]):
        if case.gain is not None:
            return Number(case.gain, count=len(case.gaussian) + len(case.discrete))
    return None


def correlation_table(groups: Sequence[Group]) -> Table:
    """Spearman's rank correlation of the metrics with the gap and with the statistical efficiency (Figures 4 and 6)."""
    lines = [
        Line(
            f"{title}, {metric_title(metric)}",
            partial(_unsupervised, models=models),
            lambda dataset: None,
            metric,
            rivals=False,
            number=partial(correlation, score),
        )
        for score, (models, title) in WITH.items()
        for metric in SIX
    ]
    title = "Spearman's rank correlation with the six metrics"
    table = lined_table("correlations", title, "With", groups, lines, decimals=2)
    meaning = (
        "Positive: what is good by one is good by the other",
        "The gap is that of D-VAE and FactorDVAE together, efficiency that of the D-VAE",
    )
    return replace(table, notes=(*meaning, *table.notes))


def correlation(score: str, runs: Sequence[Run], metric: str) -> Number | None:
    """Spearman's rank correlation of two scores, turned for scores of which small is good; None if it says nothing."""
    able = scored(scored(runs, score), metric)
    sign = -1 if score == "gap" else 1
    value = sign * spearman(scores_of(able, score), scores_of(able, metric))
    return None if isnan(value) else Number(value, count=len(able))


def win_table(groups: Sequence[Group]) -> Table:
    """How often each semi-supervised method is the best, by the rule that chooses its run (paper, Figure 7)."""
    runs = [run for group in main_groups(groups) for run in supervised(group.runs)]
    found = standings(runs)
    if not found:
        raise UndefinedError("there are no two semi-supervised methods with the same scores on one dataset")
    titles = {method(run): method_title(run) for run in in_house_order(runs)}
    columns = {
        f"{one.labels} labels, {_plain(one.rule)}, {one.cases} cases": _shares(one, list(titles)) for one in found
    }
    title = "Share of cases in % in which a semi-supervised method is the best"
    notes = (
        "A case is a metric on a dataset; equals share it",
        "Gaussian models have no gap: theirs is the run with the lowest R_s, the risk on labelled images kept apart",
    )
    rows = tuple(zip(titles.values(), *columns.values(), strict=True))
    return Table("wins", title, ("Model", *columns), rows, notes)


def _shares(standing: Standing, methods: Sequence[tuple[str, str]]) -> list[Cell]:
    shares = [standing.shares.get(name) for name in methods]
    return with_best([None if value is None else Number(value) for value in shares])


def _plain(rule: str) -> str:
    """A rule's title without the marks of mathematics."""
    return rule.replace("$", "").replace("{", "").replace("}", "")


def _unsupervised(group: Group, models: Sequence[str]) -> list[Run]:
    return [run for run in unsupervised(group.runs) if run.value("model") in models]


def _told(groups: Sequence[Group], pair: tuple[str, str]) -> str:
    """How often the discrete model is ahead; a case is a metric on a dataset."""
    compared = [case for group in groups for case in cases(group.runs, pair)]
    claim = paper_results()["claims"]["unregularized_cases_won_by_discrete"]
    paper = f"; in the paper in {claim['won']} of {claim['of']}" if pair == PAIRS[0] else ""
    names = f"{model_title(pair[1])} against {model_title(pair[0])}"
    return f"{names}: {wins(compared)}{paper}" if compared else ""


TABLES = {
    "Gain of the discrete models": gain_table,
    "Wins of the semi-supervised methods": win_table,
    "Rank correlations": correlation_table,
}
