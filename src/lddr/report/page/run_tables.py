"""What a page says about its runs besides results: settings, scores run by run, environment."""

import platform
from collections import Counter
from collections.abc import Mapping, Sequence

from lddr.report.groups import Group
from lddr.report.paper import unpublished
from lddr.report.tables.table import Table
from lddr.report.titles import method_title
from lddr.runs.index import TRAINING_SCORES, Run, Value
from lddr.runs.tables import default_columns, shown

LAST = ("checksum",)  # the settings that interest least
READABLE = {"checksum": "images"}


def setup_table(groups: Sequence[Group]) -> Table:
    """The settings that all runs of a group share, a column per group."""
    names = dict.fromkeys(name for group in groups for name in group.setup if name != "dataset")
    ordered = [name for name in names if name not in LAST] + [name for name in LAST if name in names]
    rows = [("runs", *(str(len(group.runs)) for group in groups))]
    rows += [(READABLE.get(name, name), *(_word(group.setup.get(name)) for group in groups)) for name in ordered]
    rows += [("images are", *(_origins(group) for group in groups))]
    rows += [(f"metric {metric}", *_metric_words(metric, groups)) for metric in _metrics(groups)]
    title = "Settings that are the same for all runs of a column"
    return Table("settings", title, ("Setting", *(group.label for group in groups)), tuple(rows))


def _origins(group: Group) -> str:
    """Where the images of a group come from, and of how many runs if from several places."""
    counts = Counter(str(run.files.images.get("origin", "of unknown origin")) for run in group.runs)
    return ", ".join(counts) if len(counts) == 1 else ", ".join(f"{name} ({count})" for name, count in counts.items())


def contents(groups: Sequence[Group]) -> dict[str, str]:
    """Which models a group has, and how many runs of each."""
    return {group.label: _models(group) for group in groups}


def _models(group: Group) -> str:
    counts = Counter(method_title(run) for run in group.runs)
    return "; ".join(f"{title} ({count})" for title, count in counts.items())


def _metrics(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(metric for group in groups for metric in group.metric_settings))


def _metric_words(metric: str, groups: Sequence[Group]) -> list[str]:
    """Whether a metric has its published settings, group by group."""
    used = [group.metric_settings.get(metric) for group in groups]
    return ["" if one is None else ", ".join(unpublished(metric, one)) or "as published" for one in used]


def run_table(runs: Sequence[Run]) -> Table:
    """Every run with the settings that differ and its scores."""
    columns = [column for column in default_columns(runs) if column not in LAST]
    rows = tuple(tuple(shown(run.value(column)) for column in columns) for run in runs)
    return Table("runs", f"All {len(runs)} runs", tuple(columns), rows)


def score_table(runs: Sequence[Run], labels: Sequence[str], headlines: bool = False) -> Table:
    """The scores of some runs, a column per run, those of the metrics first; all of them, or the headlines."""
    names = dict.fromkeys(name for run in runs for name in run.scores if not headlines or "." not in name)
    ordered = sorted(names, key=lambda name: (name.split(".")[0] in TRAINING_SCORES, name))
    rows = tuple((name, *(shown(run.scores.get(name)) for run in runs)) for name in ordered)
    name, title = ("scores", "Headline scores") if headlines else ("all-scores", "All scores")
    return Table(name, title, ("Score", *labels), rows)


def setting_table(runs: Sequence[Run], labels: Sequence[str], differing: bool = False) -> Table:
    """The settings of some runs, a column per run; all of them, or those that differ."""
    names = dict.fromkeys(name for run in runs for name in run.settings)
    kept = [name for name in names if not differing or len({run.value(name) for run in runs}) > 1]
    rows = tuple((name, *(_word(run.value(name)) for run in runs)) for name in kept)
    title = "Settings that differ" if differing else "All settings"
    return Table("run-settings", title, ("Setting", *labels), rows)


def undefined_scores(run: Run) -> dict[str, str]:
    """The metrics that have no score here, and why."""
    entries = run.files.metrics.items()
    return {name: str(entry.get("reason")) for name, entry in entries if entry.get("score") is None}


def environment(runs: Sequence[Run]) -> dict[str, str]:
    """What the runs were made with, and what this page was."""
    import matplotlib

    import lddr

    counts = Counter(_versions(run.files.versions) for run in runs)
    made = {versions: f"{count} runs" if count > 1 else "1 run" for versions, count in counts.items()}
    here = f"lddr {lddr.__version__}, python {platform.python_version()}, matplotlib {matplotlib.__version__}"
    return made | {"this page": f"{here}, {platform.system()} {platform.machine()}"}


def _versions(versions: Mapping[str, object]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items()) or "unknown"


def _word(value: Value) -> str:
    return "none" if value is None else shown(value)
