"""The exact commands that reproduce runs, their scores and a report."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lddr.config import train_words
from lddr.errors import UserError
from lddr.report.groups import Group, unique, unpublished_settings
from lddr.runs.folder import is_shipped
from lddr.runs.index import Run


def run_commands(groups: Sequence[Group]) -> list[str]:
    """Return commands that train and score all runs of some groups."""
    return [*training_commands(unique([run for group in groups for run in group.runs])), *evaluation_commands(groups)]


def training_commands(runs: Sequence[Run]) -> list[str]:
    """Return one `lddr train` for every combination of settings, in a loop over its seeds."""
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
    """Return a run's folder, or where a shipped model is stored when it is trained again."""
    return Path("runs") / run.files.config.run_name if is_shipped(run.folder) else run.folder


def _named(run: Run) -> str:
    """Return the argument by which commands that only read a run identify it."""
    return run.name if is_shipped(run.folder) else str(run.folder)


def _looped(command: str, seeds: Sequence[int]) -> str:
    if len(seeds) == 1:
        return f"{command} --seed {seeds[0]}"
    return f"for seed in {' '.join(map(str, seeds))}; do {command} --seed $seed; done"


def evaluation_commands(groups: Sequence[Group]) -> list[str]:
    """Return the `lddr evaluate` commands that score groups: one if all need the same, else with each one's folders."""
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
    """Return the metrics of a group, and their settings if these are not the published ones."""
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
    """Return the `lddr report` command that makes this report."""
    conditions = [word for condition in where for word in ("--where", condition)]
    return shlex.join(["lddr", "report", *map(str, roots), *conditions, "--out", str(out)])


def show_command(run: Run) -> str:
    """Return the `lddr show` command that makes a run's card."""
    return shlex.join(["lddr", "show", _named(run)])


def compare_command(runs: Sequence[Run], out: Path) -> str:
    """Return the `lddr compare` command that puts these runs side by side."""
    return shlex.join(["lddr", "compare", *map(_named, runs), "--out", str(out)])
