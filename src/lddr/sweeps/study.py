"""A study is a grid of runs in a short TOML file; this module turns it into the settings of every run."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Literal, get_args

from lddr.config import Config, all_settings, configure, settings_of, supervisions
from lddr.data.dataset import datasets
from lddr.data.load import is_path
from lddr.errors import UserError, unknown
from lddr.files import content_of, named, reading_untrusted
from lddr.latents import latents
from lddr.metrics.metric import SIX_METRICS, Metric, MetricSettings, choose_metrics, metrics, parse_metric_settings
from lddr.models import models
from lddr.objectives import objectives
from lddr.presets import PRESETS
from lddr.runs.tables import meeting, parse_condition
from lddr.settings import rules_of
from lddr.supervision import Supervision

Scale = Literal["full", "quick"]
TomlTable = dict[str, Any]  # of a TOML file
Axes = dict[str, list[Any]]  # a setting and its values

METRICS = (*SIX_METRICS, "gap")  # the paper's six and its selector
LARGEST_STUDY = 1 << 20  # bytes
MOST_RUNS = 100_000  # of a block; more is a typing error
PLURALS = {"seeds": "seed", "datasets": "dataset"}
NAMES = ("model", "latent", "objective", "dataset", "preset", "supervision")  # what is chosen by name


@dataclass(frozen=True)
class Study:
    """Runs that belong together, and the metrics to compute for them."""

    name: str
    configs: Sequence[Config]
    metrics: Sequence[str] = METRICS
    about: str = ""
    scoring: MetricSettings = field(default_factory=dict)  # settings of metrics that differ from the published ones

    @property
    def wanted(self) -> dict[str, Metric]:
        """The metrics with their settings."""
        return choose_metrics(self.metrics, self.scoring)


def read_study(
    study: str | Path,
    scale: Scale = "full",
    dataset: str | None = None,
    only: str | Sequence[str] | None = None,
) -> Study:
    """Read the study of a file or of a shipped name; `dataset` replaces its own, `only` selects some of its runs."""
    path = find_study(study)
    if dataset is not None:
        _check_dataset(dataset)
    with named(path):
        with reading_untrusted(path, "a study in TOML", "correct it there"):
            content = tomllib.loads(content_of(path, LARGEST_STUDY).decode())
        found = _study(content, scale, dataset)
    return replace(found, configs=narrowed(found.configs, [only] if isinstance(only, str) else only or ()))


def narrowed(configs: Sequence[Config], conditions: Sequence[str]) -> tuple[Config, ...]:
    """Return the runs whose settings meet every condition; raise UserError if there is none."""
    if not conditions:  # flat settings of thousands of runs take seconds
        return tuple(configs)
    left = [(config, config.flat()) for config in configs]
    known = dict.fromkeys(name for _, settings in left for name in settings)
    for condition in conditions:
        met = meeting(left, [condition], lambda run, name: run[1].get(name), known)
        if not met:
            values = {str(settings.get(parse_condition(condition).name)): None for _, settings in left}
            raise UserError(f"no run is left by {condition}; there are the values {', '.join([*values][:10])}")
        left = met
    return tuple(config for config, _ in left)


def shipped_studies() -> dict[str, Path]:
    """Return the studies that ship with lddr, by name."""
    package = Path(__file__).parents[1]
    folder = package.parents[1] / "studies" if package.parent.name == "src" else package / "studies"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_study(study: str | Path) -> Path:
    """Return the file of a study, given as a path or as the bare name of a shipped one."""
    path, shipped = Path(study), shipped_studies()
    if path.suffix == ".toml" or len(path.parts) > 1:
        return path
    if str(study) not in shipped:
        raise UserError(unknown("study", str(study), shipped) + " Or give the path of a .toml file")
    return shipped[str(study)]


def _study(content: TomlTable, scale: Scale, dataset: str | None) -> Study:
    _check_layout(content, scale)
    quick = content.get("quick", {})  # its metrics and set override the ones at the top
    names, scoring = _scores(content.get("metrics", METRICS), content.get("set", []), {})
    quick_scores = _scores(quick.get("metrics", names), quick.get("set", []), scoring)  # checked at every scale
    if scale == "quick":
        names, scoring = quick_scores
    runs: dict[Config, None] = {}  # a run that two blocks name is one run
    for number, block in enumerate(content["blocks"], 1):
        runs |= dict.fromkeys(_runs(f"block {number}", _axes_of_block(number, block, content, scale, dataset)))
    # seed by seed, so that a sweep that is stopped early has runs of every model
    ordered = sorted(runs, key=lambda config: config.training.seed)
    return Study(content["name"], tuple(ordered), names, content.get("about", ""), scoring)


def _scores(names: Any, changes: Any, base: MetricSettings) -> tuple[tuple[str, ...], MetricSettings]:
    """Return the names of metrics and their changed settings; settings of other metrics in `base` are dropped."""
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


def _check_layout(content: TomlTable, scale: str) -> None:
    kinds = {"name": str, "about": str, "metrics": list, "set": list, "base": dict, "blocks": list, "quick": dict}
    for key, value in content.items():
        if key not in kinds:
            raise UserError(unknown("key", key, kinds))
        if not isinstance(value, kinds[key]):
            word = {str: "text", list: "list", dict: "section"}[kinds[key]]
            raise UserError(f"{key} must be a {word}, not {value!r}")
    if not content.get("name"):
        raise UserError('name is missing; add one on top, such as name = "my-study"')
    blocks = content.get("blocks")
    if not blocks or not all(isinstance(block, dict) for block in blocks):
        raise UserError('blocks is missing; add at least one [[blocks]] with a line such as model = "dvae"')
    if scale not in get_args(Scale):
        raise UserError(f"the scale must be one of {', '.join(get_args(Scale))}, not {scale!r}")
    if scale == "quick" and "quick" not in content:
        raise UserError('quick is missing; add a section [quick] with what it changes, such as preset = "quick"')


def _axes_of_block(number: int, block: TomlTable, content: TomlTable, scale: Scale, dataset: str | None) -> Axes:
    """Merge [base], the block, and for the quick scale [quick] and the block's own; the later ones win."""
    here, own_quick = f"block {number}", block.get("quick", {})
    if not isinstance(own_quick, dict):
        raise UserError(f"{here} quick must be a section such as {{ seeds = 2 }}, not {own_quick!r}")
    sections = {"[base]": content.get("base", {}), here: _without(block, "quick")}
    quick = {"[quick]": _without(content.get("quick", {}), "metrics", "set"), f"{here} quick": own_quick}
    axes = {where: _axes(where, section) for where, section in (sections | quick).items()}  # checks all of them
    kept = axes if scale == "quick" else {where: axes[where] for where in sections}
    merged: Axes = {name: values for part in kept.values() for name, values in part.items()}
    if dataset is not None:
        merged["dataset"] = [dataset]
    for name, example in (("model", "dvae"), ("dataset", "dsprites")):
        if name not in merged and not (name == "model" and merged.keys() & {"latent", "objective"}):
            raise UserError(f'{here} has no {name}; add a line such as {name} = "{example}"')
    for where, part in kept.items():
        _check_owners(where, part, merged)
    return merged


def _without(section: TomlTable, *keys: str) -> TomlTable:
    return {name: value for name, value in section.items() if name not in keys}


def _axes(where: str, section: TomlTable) -> Axes:
    """Return the settings of a section, each as the list of its values."""
    axes: Axes = {}
    for key, value in section.items():
        name = PLURALS.get(key, key)
        if name not in known_settings():
            raise UserError(f"{where}: {unknown('setting', key, known_settings() | PLURALS.keys())}")
        if name in axes:
            raise UserError(f"{where} has both {name} and {name}s; keep one")
        axes[name] = _values(where, key, value)
    return axes


def _values(where: str, key: str, value: Any) -> list[Any]:
    """Return the values of a setting: a list is a grid, except that a setting that is a list has one as its value."""
    name = PLURALS.get(key, key)
    if key == "seeds" and type(value) is int:
        if value > MOST_RUNS:
            raise UserError(f"{where} seeds must be at most {MOST_RUNS}, not {value}")
        value = list(range(value))
    rules = [] if name in NAMES else list(all_settings()[name].rules.values())
    is_list_setting = any(rule.kind is tuple for rule in rules)
    is_grid = isinstance(value, list) and (not is_list_setting or any(isinstance(each, list) for each in value))
    values = value if is_grid else [value]
    if not values:
        raise UserError(f"{where} {key} has no values; give at least one or leave it out")
    seen = set()
    for each in values:
        for rule in rules:
            rule.fitting(f"{where} {key}", each)
        if name in NAMES:
            _check_name(where, key, name, each)
        plain = tuple(each) if isinstance(each, list) else each
        if plain in seen:
            raise UserError(f"{where} {key} has {each!r} twice, which would be the same run; keep one")
        seen.add(plain)
    return values


def _check_name(where: str, key: str, name: str, value: Any) -> None:
    """Raise UserError for an unknown model, dataset, preset or part, with its place in the file."""
    if not isinstance(value, str):
        raise UserError(f"{where} {key} must be a text, not {value!r}")
    choices = {"preset": PRESETS, "supervision": supervisions(), "latent": latents, "objective": objectives}
    if name in choices and value not in choices[name]:
        raise UserError(f"{where}: {unknown(key, value, choices[name])}")
    try:
        if name == "model":
            models[value]
        if name == "dataset":
            _check_dataset(value)
    except UserError as error:
        raise UserError(f"{where} {key}: {error}") from error


def _check_dataset(name: str) -> None:
    if not is_path(name):
        datasets[name]


@cache
def known_settings(model: str | None = None) -> frozenset[str]:
    """Return the names of all settings of a model, or of any, as on the command line of `lddr train`."""
    return frozenset(all_settings() if model is None else settings_of(model)) | frozenset(NAMES)


def _check_owners(where: str, axes: Axes, merged: Axes) -> None:
    """Raise UserError if a model of the block lacks one of its settings: silently ignoring it would surprise."""
    points = product(*(merged.get(name, [None]) for name in ("model", "latent", "objective")))
    models_of_block = [models.chosen(*point) for point in points]
    for name in axes:
        for model in models_of_block:
            if name not in known_settings(model):
                owners = ", ".join(other for other in models if name in known_settings(other))
                raise UserError(f"{where} {name}: {model} has no such setting; keep it to blocks of {owners}")
        if name in rules_of(Supervision) and "supervision" not in merged:
            raise UserError(f"{where} {name} needs a supervision with it, one of {', '.join(supervisions())}")


def _runs(where: str, axes: Axes) -> Iterator[Config]:
    if (count := prod(map(len, axes.values()))) > MOST_RUNS:
        raise UserError(f"{where} has {count:,} runs; at most {MOST_RUNS:,} are taken, give fewer values")
    for values in product(*axes.values()):
        try:
            yield configure(**dict(zip(axes, values, strict=True)))
        except UserError as error:
            raise UserError(f"{where}: {error}") from error
