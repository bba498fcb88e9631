"""What `--where` and `--sort` mean: conditions such as "mig>0.3" or "model=dvae" on the flat values of runs."""

from collections.abc import Sequence
from typing import Any

from lddr.conditions import meeting
from lddr.errors import UserError, unknown
from lddr.runs.index import OWN, Run


def matching(runs: Sequence[Run], where: Sequence[str]) -> list[Run]:
    """The runs for which all conditions hold; a value that is missing is "none"."""
    return meeting(runs, where, Run.value, known_columns(runs))


def ordered(runs: Sequence[Run], column: str | None, reverse: bool = False) -> list[Run]:
    """Scores from the largest down, settings from the smallest up, or the other way round; what is missing last.

    A sign before the column decides: - for the largest first, + for the smallest.
    """
    if column is None or not runs:
        return list(reversed(runs)) if reverse else list(runs)
    sign, column = column[: column.startswith(("+", "-"))], column.lstrip("+-")
    check_columns([column], runs)
    there = [run for run in runs if run.value(column) is not None]
    downwards = sign == "-" if sign else any(column in run.scores for run in there)
    there.sort(key=lambda run: _sort_key(run, column), reverse=downwards != reverse)
    return there + [run for run in runs if run.value(column) is None]


def known_columns(runs: Sequence[Run]) -> list[str]:
    """Every name that some run has a value for: what it is, settings, scores."""
    settings = dict.fromkeys(name for run in runs for name in run.settings)
    return [*OWN, *settings, *dict.fromkeys(name for run in runs for name in run.scores)]


def check_columns(columns: Sequence[str], runs: Sequence[Run]) -> None:
    """Refuse a column that no run has, with the nearest ones that some have."""
    known = known_columns(runs)
    for column in columns:
        if column not in known:
            raise UserError(unknown("column", column, [name for name in known if "." not in name]))


def _sort_key(run: Run, column: str) -> tuple[bool, Any]:
    value = run.value(column)
    return isinstance(value, str), value
