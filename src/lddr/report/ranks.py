"""Agreement of rankings: Spearman correlations of selectors, metrics and statistical efficiency."""

from collections.abc import Sequence

import numpy as np

from lddr import statistics
from lddr.metrics.metric import measures, metrics
from lddr.report.titles import metric_title
from lddr.runs.index import Run

FEWEST = 3  # runs needed for a rank correlation
RunColumns = dict[str, list[float | None]]  # title → a number for each run


def spearman(left: Sequence[float | None], right: Sequence[float | None]) -> float:
    """Return the rank correlation over the runs that have both scores; NaN if it is undefined."""
    pairs = np.array([(a, b) for a, b in zip(left, right, strict=True) if a is not None and b is not None], np.float64)
    if len(pairs) < FEWEST or (pairs == pairs[0]).all(axis=0).any():
        return float("nan")
    return float(statistics.spearman(*pairs.T))


def efficiencies() -> dict[str, str]:
    """Return the scores that measure how few labels a learner needs, with the learner."""
    return {f"{name}.efficiency": metrics[name].title.lower() for name in metrics.registered() if metrics[name].is_task}


def selector_columns(runs: Sequence[Run]) -> RunColumns:
    """Return each selector that needs only scores, with its sign chosen such that larger means preferred."""
    from lddr.selection.selector import Candidates, selectors

    columns: RunColumns = {}
    for name in selectors.registered():
        selector = selectors[name]
        if selector.needs != "scores":
            continue
        verdicts = selector.measure(Candidates(runs, lambda run: "is not encoded for a report"))
        values = [None if isinstance(verdict, str) else selector.sign * verdict for verdict in verdicts]
        columns[f"{'small' if selector.sign < 0 else 'large'} {selector.title or name}"] = values
    return _known(columns)


def metric_columns(runs: Sequence[Run]) -> RunColumns:
    """Return the metrics that some run has, by their titles."""
    return _known({metric_title(metric): [run.number(metric) for run in runs] for metric in measures()})


def _known(columns: RunColumns) -> RunColumns:
    return {title: values for title, values in columns.items() if any(value is not None for value in values)}
