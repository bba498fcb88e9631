"""Which metrics, with which settings: from names, words of the command line and lists in studies."""

from collections.abc import Iterable, Mapping
from typing import Any

from lddr.errors import UserError
from lddr.metrics.metric import Metric, metrics

SIX_METRICS = ("beta_vae", "factor_vae", "mig", "dci", "modularity", "sap")  # the paper's six, in its order

Chosen = Mapping[str, Metric]
MetricSettings = Mapping[str, Mapping[str, Any]]  # metric → setting → value
Names = str | Iterable[str] | None  # "quick", "all", names with commas between them, or a list; None is quick


def configured(names: Names = None, settings: MetricSettings | None = None) -> dict[str, Metric]:
    """The metrics that are wanted, with changed settings; the quick ones are joined by those whose settings are."""
    changes = settings or {}
    wanted = named(names)
    if names is None or names == "quick":
        wanted = [name for name in metrics if name in wanted or name in changes]
    strangers = [name for name in changes if name not in wanted]
    if strangers:
        raise UserError(f"settings for {strangers[0]}, which is not among the metrics: {', '.join(wanted)}")
    return {name: metrics[name].with_settings(**changes.get(name, {})) for name in wanted}


def measures() -> list[str]:
    """The metrics that hold codes against factors: the paper's six, then all others."""
    others = [name for name in metrics if metrics[name].labels and not metrics[name].is_task]
    return list(dict.fromkeys([*SIX_METRICS, *others]))


def named(names: Names) -> list[str]:
    """The names of metrics that are meant."""
    if names is None or names == "quick":
        return [name for name in metrics if metrics[name].is_quick]
    if names == "all":
        return list(metrics)
    given = names.split(",") if isinstance(names, str) else names
    wanted = [name.strip() for name in given if name.strip()]
    if isinstance(names, str) and not wanted:  # a study may do without scores
        raise UserError(f"no metric is named; say quick, all or some of: {', '.join(metrics)}")
    return list(dict.fromkeys(wanted))


def parsed(changes: Iterable[str]) -> dict[str, dict[str, Any]]:
    """METRIC.SETTING=VALUE as nested dictionaries, with the value in the type of the setting."""
    settings: dict[str, dict[str, Any]] = {}
    for change in changes:
        where, equals, value = change.partition("=")
        name, dot, setting = where.partition(".")
        if not equals or not dot:
            raise UserError(f"expected METRIC.SETTING=VALUE, such as dci.estimator=fast, not {change!r}")
        given = value.split(",") if isinstance(metrics[name].settings.get(setting), tuple) else value
        settings.setdefault(name, {})[setting] = metrics[name].with_settings(**{setting: given}).settings[setting]
    return settings


def described() -> list[tuple[str, str, str, str]]:
    """Name, needs, what it is, and the published settings of every metric."""
    rows = []
    for name in metrics:
        metric = metrics[name]
        needs = {"codes": "codes and factors" if metric.labels else "codes", "interventions": "the dataset"}
        settings = ", ".join(f"{key} {in_words(value)}" for key, value in metric.settings.items())
        rows.append((name, needs.get(metric.needs, "the model"), f"{metric.title}: {metric.about}", settings))
    return rows


def in_words(value: Any) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple) else str(value)


def markdown_table() -> str:
    """The table of docs/metrics.md."""
    rows = [("name", "needs", "what it is", "settings"), ("---",) * 4]
    rows += [(f"`{name}`", needs, about.replace("|", "\\|"), settings) for name, needs, about, settings in described()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
