"""The exact commands that make runs, their scores and a report again."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lddr.command import train_words
from lddr.errors import UserError
from lddr.report.groups import Group, unique
from lddr.report.paper import unpublished_settings
from lddr.runs.index import Run
from lddr.runs.pretrained import is_shipped


def commands(groups: Sequence[Group]) -> list[str]:
    """Train all runs of some groups, and score them."""
    return [*training_commands(unique([run for group in groups for run in group.runs])), *evaluation_commands(groups)]


def training_commands(runs: Sequence[Run]) -> list[str]:
    """One `lddr train` for every combination of settings, in a loop over its seeds."""
    seeds: dict[str, list[int]] = {}
    others = []
    for run in runs:
        try:
            config = run.files.config
        except UserError as reason:
            others.append(" ".join(f"# {shlex.quote(run.name)}: {reason}".split()))
            continue
        words = [*train_words(config, without=("seed",)), "--out", str(_place(run).parent)]
        seeds.setdefault(shlex.join(words), []).append(config.training.seed)
    return [*(_looped(command, sorted(found)) for command, found in seeds.items()), *others]


def _place(run: Run) -> Path:
    """Its folder, or where a shipped model goes when it is trained again."""
    return Path("runs") / run.files.config.run_name if is_shipped(run.folder) else run.folder


def _named(run: Run) -> str:
    """How commands that only look at a run are told which."""
    return run.name if is_shipped(run.folder) else str(run.folder)


def _looped(command: str, seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"{command} --seed {seeds[0]}"
    return f"for seed in {' '.join(map(str, seeds))}; do {command} --seed $seed; done"


def evaluation_commands(groups: Sequence[Group]) -> list[str]:
    """The `lddr evaluate` that gives groups their scores: one if all want the same, else with the folders of each."""
    wanted: dict[str, list[Run]] = {}
    for group in groups:
        if group.metric_settings:
            wanted.setdefault(_evaluation(group), []).extend(group.runs)
    parents = dict.fromkeys(_place(run).parent for group in groups for run in group.runs)
    if len(wanted) == 1 and sum(len(group.runs) for group in groups) > 1:
        everything = " ".join(f"{shlex.quote(str(parent))}/*" for parent in parents)
        return [f"lddr evaluate {everything} {options}" for options in wanted]
    return [
        f"lddr evaluate {shlex.join(str(_place(run)) for run in unique(runs))} {options}"
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
    words = ["--metrics", ",".join(sorted(used)), *(word for change in changes for word in ("--set", change))]
    return shlex.join([*words, *(f"--bins={count}" for count in bins)])


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def report_command(roots: Sequence[Path], out: Path, where: Sequence[str] = ()) -> str:
    """The `lddr report` that makes this report."""
    conditions = [word for condition in where for word in ("--where", condition)]
    return shlex.join(["lddr", "report", *map(str, roots), *conditions, "--out", str(out)])


def show_command(run: Run) -> str:
    """The `lddr show` that makes a run's card."""
    return shlex.join(["lddr", "show", _named(run)])


def compare_command(runs: Sequence[Run], out: Path) -> str:
    """The `lddr compare` that puts these runs side by side."""
    return shlex.join(["lddr", "compare", *map(_named, runs), "--out", str(out)])
