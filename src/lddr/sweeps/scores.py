"""Which scores a study wants: names of metrics, and settings of theirs that are not the published ones."""

from collections.abc import Mapping
from typing import Any

from lddr.errors import UserError, unknown
from lddr.metrics.metric import SIX_METRICS, MetricSettings, choose_metrics, metrics, parse_metric_settings

METRICS = (*SIX_METRICS, "gap")  # the paper's six and its selector
Scores = tuple[tuple[str, ...], MetricSettings]


def scores_by_scale(content: Mapping[str, Any]) -> dict[str, Scores]:
    """What the keys `metrics` and `set` of a study say, on top and in [quick], where the last word counts."""
    quick = content.get("quick", {})
    names, scoring = _scores(content.get("metrics", METRICS), content.get("set", []), {})
    return {"full": (names, scoring), "quick": _scores(quick.get("metrics", names), quick.get("set", []), scoring)}


def _scores(names: Any, changes: Any, base: MetricSettings) -> Scores:
    """The names of metrics, and what is changed of their settings; those of other metrics in `base` are dropped."""
    if not isinstance(names, list | tuple) or not names:
        raise UserError('metrics must be a list of names such as ["mig", "gap"]; leave it out for the paper\'s')
    for name in names:
        if not isinstance(name, str) or name not in metrics:
            raise UserError(f"metrics: {unknown('metric', str(name), metrics)}")
    if not isinstance(changes, list) or not all(isinstance(change, str) for change in changes):
        raise UserError('set must be a list such as ["dci.estimator=fast"]')
    kept = {name: settings for name, settings in base.items() if name in names}
    try:
        own = parse_metric_settings(changes)
        scoring = kept | {name: {**kept.get(name, {}), **settings} for name, settings in own.items()}
        choose_metrics(names, scoring)
    except UserError as error:
        raise UserError(f"set: {error}") from error
    return tuple(names), scoring
