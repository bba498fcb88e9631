"""The exact commands that make runs, their scores and a report again."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lddr.errors import UserError
from lddr.report.groups import Group, unique
from lddr.report.paper import unpublished_settings
from lddr.runs.index import Run, Value, flat_settings

NO_FLAGS = {"model", "dataset", "seed", "latent", "objective", "checksum"}  # said otherwise, or a result


def commands(groups: Sequence[Group]) -> list[str]:
    """Train all runs of some groups, and score them."""
    return [*training_commands(unique([run for group in groups for run in group.runs])), *evaluation_commands(groups)]


def training_commands(runs: Sequence[Run]) -> list[str]:
    """One `lddr train` for every combination of settings, in a loop over its seeds."""
    seeds: dict[str, list[str]] = {}
    for run in runs:
        seeds.setdefault(_train(run), []).append(str(run.value("seed")))
    return [_looped(command, found) for command, found in seeds.items()]


def _looped(command: str, seeds: Sequence[str]) -> str:
    if len(seeds) == 1:
        return f"{command} --seed {seeds[0]}"
    ordered = sorted(seeds, key=lambda seed: (len(seed), seed))
    return f"for seed in {' '.join(ordered)}; do {command} --seed $seed; done"


def _train(run: Run) -> str:
    """The command without the seed, from the preset that needs fewer flags."""
    options = [(preset, _differences(run, preset)) for preset in ("paper", "quick")]
    preset, flags = min(options, key=lambda option: len(option[1]))
    words = ["lddr", "train", "--model", str(run.value("model")), "--dataset", str(run.value("dataset"))]
    words += ["--preset", preset] if preset != "paper" else []
    for name, value in flags.items():
        words += [f"--{name.replace('_', '-')}", *_words(value)]
    return shlex.join([*words, "--out", str(run.folder.parent)])


def _words(value: Value) -> list[str]:
    """A value as it is written on the command line; several numbers are several words."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text.split(",")


def _differences(run: Run, preset: str) -> dict[str, Value]:
    """The settings of a run that a preset does not give it."""
    from lddr.config import configure

    supervision = None if run.value("supervision") is None else str(run.value("supervision"))
    try:
        config = configure(str(run.value("model")), str(run.value("dataset")), preset, supervision=supervision)
        usual = flat_settings(config.as_dict()) | {"supervision": None}
    except UserError:  # a model of another version: say all
        usual = {}
    return {
        name: value
        for name, value in run.settings.items()
        if name not in NO_FLAGS and value is not None and (name not in usual or usual[name] != value)
    }


def evaluation_commands(groups: Sequence[Group]) -> list[str]:
    """The `lddr evaluate` that gives groups their scores: one if all want the same, else with the folders of each."""
    wanted: dict[str, list[Run]] = {}
    for group in groups:
        if group.metric_settings:
            wanted.setdefault(_evaluation(group), []).extend(group.runs)
    parents = dict.fromkeys(run.folder.parent for group in groups for run in group.runs)
    if len(wanted) == 1 and sum(len(group.runs) for group in groups) > 1:
        everything = " ".join(f"{shlex.quote(str(parent))}/*" for parent in parents)
        return [f"lddr evaluate {everything} {options}" for options in wanted]
    return [
        f"lddr evaluate {shlex.join(str(run.folder) for run in unique(runs))} {options}"
        for options, runs in wanted.items()
    ]


def _evaluation(group: Group) -> str:
    """The metrics of a group, and their settings where these are not the published ones."""
    used = group.metric_settings
    changes = [
        f"{metric}.{name}={_plain(value)}"
        for metric in sorted(used)
        for name, value in unpublished_settings(metric, used[metric]).items()
    ]
    bins = {settings.get("bins") for settings in used.values()} - {None}
    words = ["--metrics", ",".join(sorted(used)), *(["--set", *changes] if changes else [])]
    return shlex.join([*words, *(f"--bins={count}" for count in bins)])


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def report_command(roots: Sequence[Path], out: Path, where: Sequence[str] = ()) -> str:
    """The `lddr report` that makes this report."""
    conditions = ["--where", *where] if where else []
    return shlex.join(["lddr", "report", *map(str, roots), *conditions, "--out", str(out)])


def show_command(run: Run) -> str:
    """The `lddr show` that makes a run's card."""
    return shlex.join(["lddr", "show", str(run.folder)])


def compare_command(runs: Sequence[Run], out: Path) -> str:
    """The `lddr compare` that puts these runs side by side."""
    return shlex.join(["lddr", "compare", *(str(run.folder) for run in runs), "--out", str(out)])
