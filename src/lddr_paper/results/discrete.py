"""The page about types of discreteness: every model under one protocol, by nine metrics on two datasets."""

from collections import Counter
from collections.abc import Mapping
from statistics import mean, median

from lddr.metrics.metric import SIX_METRICS
from lddr.report.exhibits import markdown_rows
from lddr.report.groups import scores_of
from lddr.report.style import dataset_title, metric_title, model_order, model_title
from lddr.runs.index import Run
from lddr_paper.judging import INCONCLUSIVE, Estimate, above, matching, resampled
from lddr_paper.results.tables import read_costs, read_runs

METRICS = (*SIX_METRICS, "infomec", "mig_sup", "explicitness")
Scores = dict[str, dict[str, list[float]]]  # metric → model → a number for each run


def discrete_runs() -> list[Run]:
    return [run for run in read_runs("discrete") if run.value("supervision") is None]


def sections() -> dict[str, str]:
    """Return the parts of the page by the names of its template."""
    runs, scores = discrete_runs(), scores_by_dataset()
    ranks = mean_ranks(scores)
    leads = [_lead(able) for some in scores.values() for able in some.values()]
    clear = [lead for _, _, lead in leads if lead.verdict() != INCONCLUSIVE]
    return {
        "discrete_cases": str(len(leads)),
        "discrete_alike": str(len(leads) - len(clear)),
        "discrete_clear": " and ".join(f"{lead.value:.3f}" for lead in clear) or "none",
        "discrete_best": model_title(next(iter(ranks))),
        "discrete_best_rank": f"{mean(next(iter(ranks.values()))):.1f}",
        "discrete_ranks": _ranks_table(ranks),
        "discrete_datasets": "\n\n".join(_dataset(name, matching(runs, name), some) for name, some in scores.items()),
    }


def scores_by_dataset() -> dict[str, Scores]:
    """Return the scores of the study on every dataset."""
    runs = discrete_runs()
    return {name: _scores(matching(runs, name)) for name in sorted({str(run.value("dataset")) for run in runs})}


def _scores(runs: list[Run]) -> Scores:
    """Return the scores by every metric that two models have, with at least two runs each."""
    models = sorted({str(run.value("model")) for run in runs}, key=model_order)
    found = {
        name: {model: scores_of([r for r in runs if r.value("model") == model], name) for model in models}
        for name in METRICS
    }
    able = {name: {model: values for model, values in some.items() if len(values) > 1} for name, some in found.items()}
    return {name: some for name, some in able.items() if len(some) > 1}


def _lead(able: Mapping[str, list[float]]) -> tuple[str, str, Estimate]:
    """Return the two models with the largest medians, and the lead of the first."""
    first, second = sorted(able, key=lambda model: -median(able[model]))[:2]
    return first, second, resampled(above, able[first], able[second])


def mean_ranks(scores: Mapping[str, Scores]) -> dict[str, list[int]]:
    """Return the ranks of every model that all datasets have, over metrics and datasets, best mean first."""
    models = set.intersection(*({model for able in some.values() for model in able} for some in scores.values()))
    ranks: dict[str, list[int]] = {model: [] for model in sorted(models, key=model_order)}
    for able in (able for some in scores.values() for able in some.values() if able.keys() >= models):
        for rank, model in enumerate(sorted(ranks, key=lambda model: -median(able[model])), start=1):
            ranks[model].append(rank)
    return dict(sorted(ranks.items(), key=lambda item: mean(item[1])))


def _ranks_table(ranks: Mapping[str, list[int]]) -> str:
    costs = read_costs()
    cells = [
        (model_title(model), f"{mean(some):.1f}", str(some.count(1)), f"{costs[model]:.0f}" if model in costs else "–")
        for model, some in ranks.items()
    ]
    cases = len(next(iter(ranks.values())))
    return markdown_rows((f"{cases} cases", "mean rank", "largest median in", "ms per step on dSprites"), cells)


def _dataset(dataset: str, runs: list[Run], scores: Scores) -> str:
    counts = Counter(str(run.value("model")) for run in runs)
    cells = [
        (
            model_title(model),
            str(counts[model]),
            *(f"{median(able[model]):.3f}" if model in able else "–" for able in scores.values()),
        )
        for model in sorted({model for able in scores.values() for model in able}, key=model_order)
    ]
    medians = markdown_rows((f"{dataset_title(dataset)}, medians", "runs", *map(metric_title, scores)), cells)
    leads = []
    for name, able in scores.items():
        first, second, lead = _lead(able)
        leads.append((metric_title(name), model_title(first), model_title(second), lead.text()))
    return medians + "\n\n" + markdown_rows((dataset_title(dataset), "largest median", "second", "difference"), leads)
