"""What `--where` and `--sort` mean: conditions such as "mig>0.3" or "model=dvae" on the flat values of runs."""

from collections.abc import Sequence
from typing import Any

from lddr.conditions import Condition, as_number, parse_condition
from lddr.errors import UserError, hint
from lddr.runs.index import OWN, Run, Value


def check_condition(condition: Condition, runs: Sequence[Run]) -> None:
    """Refuse a column that no run has, and an order between words."""
    check_columns([condition.name], runs)
    values = [value for run in runs if (value := run.value(condition.name)) is not None]
    if not condition.is_order:
        return
    if values and all(isinstance(value, str) for value in values):
        raise UserError(f"{condition.name} holds words, which are not ordered; compare it with = or !=")
    if as_number(condition.wanted) is None:
        raise UserError(f"{condition.name} holds numbers; compare it with a number, not {condition.wanted!r}")


def matching(runs: Sequence[Run], where: Sequence[str]) -> list[Run]:
    """The runs for which all conditions hold; a value that is missing is "none"."""
    conditions = [parse_condition(text) for text in where]
    for condition in conditions if runs else ():
        check_condition(condition, runs)
    return [run for run in runs if all(condition.holds(_present(run, condition)) for condition in conditions)]


def _present(run: Run, condition: Condition) -> Value:
    value = run.value(condition.name)
    return "none" if value is None else value


def ordered(runs: Sequence[Run], column: str | None, reverse: bool = False) -> list[Run]:
    """Scores from the largest down, settings from the smallest up, or the other way round; what is missing last."""
    if column is None or not runs:
        return list(reversed(runs)) if reverse else list(runs)
    check_columns([column], runs)
    there = [run for run in runs if run.value(column) is not None]
    is_score = any(column in run.scores for run in there)
    there.sort(key=lambda run: _sort_key(run, column), reverse=is_score != reverse)
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
            short = [name for name in known if "." not in name]
            raise UserError(f"no run has a column {column!r}; {hint(column, known)}There are: {', '.join(short)}")


def _sort_key(run: Run, column: str) -> tuple[bool, Any]:
    value = run.value(column)
    return isinstance(value, str), value
