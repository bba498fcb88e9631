"""Comparable runs: groups that differ only in model, knob and seed, and which runs were left out and why."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from lddr.data.dataset import datasets
from lddr.latents import latents
from lddr.metrics.metric import metrics
from lddr.models import models
from lddr.objectives import objectives
from lddr.published_settings import published_weights
from lddr.report.style import dataset_title
from lddr.runs.index import Run, Value

DATASET_ORDER = ("dsprites", "color_dsprites", "smallnorb", "cars3d", "shapes3d", "mpi3d_toy", "rooms")  # then others
DEFAULT_PIXELS = 64  # the resolution of these datasets if a run has no other
SWEPT = {"model", "latent", "objective", "seed", "supervision", "labels", "omega", "label_seed"}  # and all knobs
SettingValues = dict[str, Value]
MetricSettings = dict[str, dict[str, Any]]  # metric → the settings it was computed with
LeftOut = dict[str, list[str]]  # reason → runs


@dataclass(frozen=True)
class Group:
    """Runs on the same images with the same settings except those that a sweep varies, so that their scores compare."""

    label: str  # the dataset, and what distinguishes this group from others on it
    runs: tuple[Run, ...]
    setup: SettingValues  # the settings they share
    metric_settings: MetricSettings = field(default_factory=dict)

    @property
    def dataset(self) -> str:
        return str(self.setup["dataset"])

    @property
    def title(self) -> str:
        """The title of the dataset."""
        return dataset_title(self.dataset)

    @property
    def is_own(self) -> bool:
        """Whether the images are a user's own."""
        return self.dataset not in datasets

    @property
    def supervised(self) -> list[Run]:
        """The runs that were trained with labels."""
        return [run for run in self.runs if run.value("supervision") is not None]

    def unsupervised(self, *models: str) -> list[Run]:
        """Return the runs that were trained without labels, of these models or of all."""
        unlabelled = [run for run in self.runs if run.value("supervision") is None]
        return [run for run in unlabelled if not models or run.value("model") in models]


@dataclass(frozen=True)
class Collection:
    """All groups, those of the common benchmarks first, and the runs or scores that are in none."""

    groups: tuple[Group, ...]
    left_out: LeftOut

    @property
    def runs(self) -> list[Run]:
        """All runs of all groups."""
        return unique([run for group in self.groups for run in group.runs])

    @property
    def main(self) -> tuple[Group, ...]:
        """One group per dataset, for figures over several datasets."""
        return main_groups(self.groups)


def unique(runs: Sequence[Run]) -> list[Run]:
    """Return each run once: a Gaussian model can be in several groups."""
    return list({run.folder: run for run in runs}.values())


def scores_of(runs: Iterable[Run], name: str) -> list[float]:
    """Return the score of every run that has it."""
    return [value for run in runs if (value := run.number(name)) is not None]


def main_groups(groups: Sequence[Group]) -> tuple[Group, ...]:
    """Return for every dataset the group with most runs; ties go to the one trained longer."""
    best: dict[str, Group] = {}
    for group in groups:
        best[group.dataset] = max(best.get(group.dataset, group), group, key=_weight)
    return tuple(best.values())


def collect(runs: Sequence[Run]) -> Collection:
    """Sort runs into groups; unfinished runs, duplicates, and scores with deviating settings are left out."""
    left_out: LeftOut = {}
    finished = _without_duplicates(_finished(runs, left_out), left_out)
    members = [part for alike in _alike(finished) for part in _variants(alike)]
    groups = [_with_common_metrics(Group("", tuple(part), _common(part)), left_out) for part in members]
    ordered = sorted(groups, key=lambda group: (_position(group.dataset), [-weight for weight in _weight(group)]))
    return Collection(tuple(_labelled(ordered)), left_out)


def _finished(runs: Iterable[Run], left_out: LeftOut) -> list[Run]:
    """Return the runs whose training is complete."""
    for run in runs:
        if run.state != "finished":
            training = "not trained to the end; start the same command again to resume it"
            left_out.setdefault(training if run.state == "training" else f"broken: {run.reason}", []).append(run.name)
    return [run for run in runs if run.state == "finished"]


def _without_duplicates(runs: Iterable[Run], left_out: LeftOut) -> list[Run]:
    """Keep one of several runs with the same settings: the one with most scores."""
    kept: dict[frozenset, Run] = {}
    for run in sorted(runs, key=lambda run: -len(run.scores)):
        same = kept.setdefault(frozenset(run.settings.items()), run)
        if same is not run:
            left_out.setdefault(f"the same run as {same.folder}", []).append(str(run.folder))
    return [run for run in runs if kept[frozenset(run.settings.items())] is run]


def _alike(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs by the settings that every run has: dataset, steps, precision, …"""
    everywhere = set.intersection(*(set(_compared(run)) for run in runs)) if runs else set()
    parts: dict[frozenset, list[Run]] = {}
    for run in runs:
        parts.setdefault(_values(run, everywhere), []).append(run)
    return list(parts.values())


def _variants(runs: list[Run]) -> list[list[Run]]:
    """Split runs whose latents or objectives have settings of their own with several values, such as the noise.

    A run without such a setting belongs to every part: a Gaussian model is compared with the discrete ones of each.
    """
    values: dict[str, set[Value]] = {}
    for name, value in (item for run in runs for item in _compared(run).items()):
        values.setdefault(name, set()).add(value)
    several = {name for name, found in values.items() if len(found) > 1}
    own = [_values(run, several) for run in runs]
    largest = [choice for choice in set(own) if not any(choice < other for other in own)]
    return [[run for run, mine in zip(runs, own, strict=True) if mine <= choice] for choice in largest]


def _values(run: Run, names: set[str]) -> frozenset[tuple[str, Value]]:
    return frozenset((name, value) for name, value in _compared(run).items() if name in names)


def _compared(run: Run) -> SettingValues:
    """Return the fixed settings of a run; those specific to its model are renamed, so that no other model has them."""
    own = _own_names(str(run.value("model")))
    return {own.get(name, name): value for name, value in fixed_settings(run).items()}


def fixed_settings(run: Run) -> SettingValues:
    """Return the settings of a run that no sweep varies."""
    return {name: value for name, value in run.settings.items() if name not in SWEPT | knobs()}


@cache
def knobs() -> frozenset[str]:
    """Return the settings that sweeps vary: those that have a grid in some objective."""
    return frozenset(name for model in models for name in models[model].grid)


@cache
def _own_names(model: str) -> dict[str, str]:
    """Return new names for settings in which a model's published protocol or its parts' defaults differ from the usual.

    Such settings ("clip of qlae", "num_categories of fsq") split the runs that have them, but do not separate models.
    """
    if model not in models:
        return {}
    point = models[model]
    own: dict[str, str] = {}
    registries: Any = ((objectives, point.objective), (latents, point.latent))
    for parts, part in registries:
        usual = {each: rule.default for name in reversed([*parts]) for each, rule in parts[name].rules.items()}
        odd = [each for each, rule in parts[part].rules.items() if rule.default != usual[each]]
        own |= {name: f"{name} of {part}" for name in odd}
    return own | {name: f"{name} of {model}" for name in published_weights(point, "", None, {})}


def _common(runs: Sequence[Run]) -> SettingValues:
    """Return the settings a group shares; a setting that some runs do not have still counts if the others agree."""
    return {name: value for run in runs for name, value in _compared(run).items()}


def _with_common_metrics(group: Group, left_out: LeftOut) -> Group:
    """Drop scores whose metric was used with other settings than in most runs of the group."""
    used = [metric_settings(run) for run in group.runs]
    common: MetricSettings = {}
    for metric in dict.fromkeys(metric for settings in used for metric in settings):
        common[metric] = _most_common(metric, [settings[metric] for settings in used if metric in settings])
    runs = []
    for run, mine in zip(group.runs, used, strict=True):
        odd = [metric for metric in mine if mine[metric] != common[metric]]
        for metric in odd:
            left_out.setdefault(f"its {metric} was computed with other settings than most", []).append(run.name)
        kept = {name: value for name, value in run.scores.items() if name.split(".")[0] not in odd}
        runs.append(replace(run, scores=kept) if odd else run)
    return replace(group, runs=tuple(runs), metric_settings=common)


def _most_common(metric: str, used: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the most common settings; ties go to the published ones."""
    counts = Counter(json.dumps(settings, sort_keys=True) for settings in used)
    text = max(counts, key=lambda text: (counts[text], not unpublished(metric, json.loads(text)), text))
    return json.loads(text)


def metric_settings(run: Run) -> MetricSettings:
    """Return metric → the settings it was computed with, except its sampling seed."""
    return {
        metric: {name: value for name, value in entry.get("settings", {}).items() if name != "draw_seed"}
        for metric, entry in run.files.metrics.items()
        if entry.get("score") is not None
    }


def unpublished(metric: str, used: dict[str, Any]) -> list[str]:
    """Describe the settings in which a metric was not used as published."""
    odd, usual = unpublished_settings(metric, used), _published(metric)
    texts = {name: (setting_text(value), setting_text(usual[name])) for name, value in odd.items()}
    return [f"{metric}.{name} {value} instead of {published}" for name, (value, published) in texts.items()]


def unpublished_settings(metric: str, used: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a metric that are not the published ones."""
    return {name: used[name] for name, value in _published(metric).items() if name in used and used[name] != value}


@cache
def _published(metric: str) -> dict[str, Any]:
    return json.loads(json.dumps(metrics[metric].settings)) if metric in metrics else {}


def setting_text(value: Any) -> str:
    """Format a setting for a sentence: large numbers with commas, and no resolution as the default one."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}" if value >= 10_000 else str(value)
    return str(DEFAULT_PIXELS) if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _labelled(groups: Sequence[Group]) -> list[Group]:
    """Name every group by its dataset, and by the settings in which several groups on one dataset differ."""
    labelled = []
    for group in groups:
        setups = [other.setup for other in groups if other.dataset == group.dataset]
        differing = [name for name in group.setup if len({setup[name] for setup in setups if name in setup}) > 1]
        named = [name for name in differing if name != "checksum"] or differing
        words = [f"{name} {setting_text(group.setup[name])}" for name in named]
        labelled.append(replace(group, label=", ".join([group.title, *words])))
    return labelled


def _weight(group: Group) -> tuple[float, float]:
    return len(group.runs), float(group.setup.get("steps") or 0)


def _position(dataset: str) -> tuple[int, str]:
    """Return a sort key: the common benchmarks in their order, then all others by name."""
    return (DATASET_ORDER.index(dataset) if dataset in DATASET_ORDER else len(DATASET_ORDER)), dataset
