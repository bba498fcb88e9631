"""What `--where` and `--sort` mean: conditions such as "mig>0.3" or "model=dvae" on the flat values of runs."""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from lddr.errors import UserError
from lddr.runs.index import OWN, Run

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "==": operator.eq,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
CONDITION = re.compile(r"\s*([^<>=!\s]+)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*")


@dataclass(frozen=True)
class Condition:
    """A column, a comparison and what to compare with."""

    column: str
    comparison: str
    wanted: str

    def holds(self, run: Run) -> bool:
        """Numbers are compared as numbers; a value that is missing is "none" and neither smaller nor larger."""
        value, number = run.value(self.column), _as_number(self.wanted)
        if isinstance(value, int | float) and number is not None:
            return COMPARISONS[self.comparison](value, number)
        if self.comparison in ("=", "==", "!="):
            text = "none" if value is None else str(value)
            return COMPARISONS[self.comparison](text, self.wanted)
        return False

    def check(self, runs: Sequence[Run]) -> None:
        """Refuse a column that no run has, and an order between words."""
        check_columns([self.column], runs)
        values = [value for run in runs if (value := run.value(self.column)) is not None]
        numeric = any(not isinstance(value, str) for value in values)
        if self.comparison in ("=", "==", "!="):
            return
        if not numeric and values:
            raise UserError(f"{self.column} holds words, which are not ordered; compare it with = or !=")
        if _as_number(self.wanted) is None:
            raise UserError(f"{self.column} holds numbers; compare it with a number, not {self.wanted!r}")


def parse_condition(text: str) -> Condition:
    """From "mig>0.3"."""
    match = CONDITION.fullmatch(text)
    if match is None or not match[3]:
        raise UserError(f'cannot read the condition {text!r}; write one such as "model=dvae", "gamma!=10" or "mig>0.3"')
    return Condition(*match.groups())


def matching(runs: Sequence[Run], where: Sequence[str]) -> list[Run]:
    """The runs for which all conditions hold."""
    conditions = [parse_condition(text) for text in where]
    for condition in conditions if runs else ():
        condition.check(runs)
    return [run for run in runs if all(condition.holds(run) for condition in conditions)]


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
            close = get_close_matches(column, known, n=1, cutoff=0.5)
            hint = f"did you mean {close[0]!r}? " if close else ""
            short = [name for name in known if "." not in name]
            raise UserError(f"no run has a column {column!r}; {hint}There are: {', '.join(short)}")


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _sort_key(run: Run, column: str) -> tuple[bool, Any]:
    value = run.value(column)
    return isinstance(value, str), value
