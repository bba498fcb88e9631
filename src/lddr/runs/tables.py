"""Tables of runs: conditions, order, and columns.

Plain lists are enough: pandas would take longer to import than `lddr runs ls` takes for a thousand runs.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from lddr.console import say
from lddr.errors import UserError, unknown
from lddr.runs.index import OWN, TRAINING_SCORES, Run, Value, common_elbo

T = TypeVar("T")
ORDERS: dict[str, Any] = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
NOT_HEADLINES = {  # the ELBO represents them
    *("elbo_noiseless", "reconstruction", "kl", "mean_picture", "explained", "active_latents", "saturated_latents")
}
_CONDITION = re.compile(r"\s*([^<>=!\s]+)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*")


@dataclass(frozen=True)
class Condition:
    """The name of a value, a comparison, and what to compare with: for equality, one text or several with commas."""

    name: str
    comparison: str
    wanted: str

    def holds(self, value: Any) -> bool:
        """Numbers are compared as numbers; text is neither smaller nor larger than anything."""
        if self.comparison in ORDERS:
            left, right = as_number(value), as_number(self.wanted)
            return left is not None and right is not None and bool(ORDERS[self.comparison](left, right))
        choices = [self.wanted, *(text.strip() for text in self.wanted.split(","))]  # a value may contain commas
        return any(_same(value, text) for text in choices) == (self.comparison != "!=")

    def check(self, values: Iterable[Any]) -> None:
        """Raise UserError for an order between words, or a comparison of numbers with a word."""
        if self.comparison in ORDERS:
            values = [value for value in values if value is not None]
            if values and all(isinstance(value, str) for value in values):
                raise UserError(f"{self.name} holds words, which are not ordered; compare it with = or !=")
            if as_number(self.wanted) is None:
                raise UserError(f"{self.name} holds numbers; compare it with a number, not {self.wanted!r}")


def parse_condition(text: str) -> Condition:
    """Parse a condition such as "mig>0.3"."""
    match = _CONDITION.fullmatch(text)
    if match is None or not match[3]:
        raise UserError(f"cannot read the condition {text!r}; write it like model=dvae, gamma=10,20 or seed<5")
    return Condition(*match.groups())


def meeting(things: Iterable[T], texts: Iterable[str], value: Callable[[T, str], Any], known: Iterable[str]) -> list[T]:
    """Return the things that meet all conditions; a missing value is "none", an unknown name is refused."""
    left, names = list(things), list(known)
    for condition in map(parse_condition, texts if left else ()):
        _check_known(condition.name, names)
        values = [value(thing, condition.name) for thing in left]
        condition.check(values)
        pairs = zip(left, values, strict=True)
        left = [thing for thing, each in pairs if condition.holds("none" if each is None else each)]
    return left


def as_number(value: Any) -> float | None:
    """Return the value as a number, or None if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _same(value: Any, text: str) -> bool:
    left, right = as_number(value), as_number(text)
    return str(value) == text if left is None or right is None else left == right


def matching(runs: Sequence[Run], where: Sequence[str]) -> list[Run]:
    """Return the runs that meet all conditions; a missing value is "none"."""
    return meeting(runs, where, Run.value, known_columns(runs))


def ordered(runs: Sequence[Run], column: str | None, reverse: bool = False) -> list[Run]:
    """Sort by a column: scores from the largest, settings from the smallest, or reversed; missing values last.

    A sign before the column decides: - for the largest first, + for the smallest.
    """
    if column is None or not runs:
        return list(reversed(runs)) if reverse else list(runs)
    sign, column = column[: column.startswith(("+", "-"))], column.lstrip("+-")
    check_columns([column], runs)
    values = [(run.value(column), run) for run in runs]
    there = [(isinstance(value, str), value, run) for value, run in values if value is not None]
    downwards = sign == "-" if sign else any(column in run.scores for *_, run in there)
    there.sort(key=operator.itemgetter(0, 1), reverse=downwards != reverse)
    return [run for *_, run in there] + [run for value, run in values if value is None]


def known_columns(runs: Sequence[Run]) -> list[str]:
    """Return every name that some run has a value for: its identity, settings, scores."""
    return [*OWN, *_names(run.settings for run in runs), *_names(run.scores for run in runs)]


def _names(values: Iterable[Iterable[str]]) -> list[str]:
    return list(dict.fromkeys(name for each in values for name in each))


def check_columns(columns: Sequence[str], runs: Sequence[Run]) -> None:
    """Raise UserError for a column that no run has, with the nearest names that some have."""
    known = known_columns(runs)
    for column in columns:
        _check_known(column, known)


def _check_known(column: str, known: Sequence[str]) -> None:
    if column not in known:
        raise UserError(unknown("column", column, [name for name in known if "." not in name]))


def default_columns(runs: Sequence[Run], sort: str | None = None) -> list[str]:
    """Return the run, its model, its state if one is not finished, the settings that differ, and the scores."""
    state = ["state"] if any(run.value("state") != "finished" for run in runs) else []
    settings = [
        name
        for name in _names(run.settings for run in runs)
        if name not in ("dataset", "model", "latent", "objective")
        and len({run.settings[name] for run in runs if name in run.settings}) > 1
    ]
    settings.sort(key=lambda name: name == "seed")  # last
    scores = [name for name in headlines(runs) if name != sort]
    by = [sort] if sort is not None and sort in known_scores(runs) else []  # must not be left out
    return ["run", *state, "dataset", "model", *settings, *by, *scores]


def known_scores(runs: Sequence[Run]) -> set[str]:
    """Return the names of all scores that some run has."""
    return {name for run in runs for name in run.scores}


def headlines(runs: Sequence[Run]) -> list[str]:
    """Return the scores that exist, without details: metrics first, since runs are compared by them."""
    bound = common_elbo(runs)  # older runs have only the noiseless one
    scores = _names(run.scores for run in runs)
    kept = [name for name in scores if "." not in name and (name == bound or name not in NOT_HEADLINES)]
    return sorted(kept, key=lambda name: (name in TRAINING_SCORES, name != "mig"))


def print_runs(runs: Sequence[Run], columns: Sequence[str] = (), sort: str | None = None) -> None:
    """Print these columns, or as many of the default ones as fit, and name those that do not.

    Lines are formatted here: rich takes a millisecond for each, and there may be ten thousand.
    """
    from rich.console import Console
    from rich.text import Text

    console, wanted = Console(), columns or default_columns(runs, sort)
    cells = {column: [column, *_cells(runs, column)] for column in wanted}
    first = next((name for name in headlines(runs) if name in wanted), None)
    kept = columns or _fitting(cells, console.width, sort or first)
    aligned = []
    for column in kept:
        is_text = any(isinstance(run.value(column), str) for run in runs)
        width = max(map(len, cells[column]))
        aligned.append([cell.ljust(width) if is_text else cell.rjust(width) for cell in cells[column]])
    head, *lines = ("  ".join(row).rstrip() for row in zip(*aligned, strict=True))
    console.print(Text(head, style="bold"), soft_wrap=True)
    console.file.write("".join(f"{line}\n" for line in lines))
    if hidden := [column for column in wanted if column not in kept]:
        say(f"no room for {', '.join(hidden)}: name them in --columns, or use --csv or --json")


def _cells(runs: Sequence[Run], column: str) -> list[str]:
    """Return a column's values; scores have as many decimals as the largest of them needs for about four digits."""
    values = [run.value(column) for run in runs]
    largest = max((abs(value) for value in values if isinstance(value, int | float)), default=0)
    if not any(column in run.scores for run in runs) or largest < 0.01:
        return [shown(value) for value in values]
    decimals = min(3, max(0, 3 - math.floor(math.log10(largest))))
    return [f"{value:.{decimals}f}" if isinstance(value, int | float) else shown(value) for value in values]


def _fitting(cells: dict[str, list[str]], width: int, must: str | None) -> list[str]:
    """Return the first columns that fit into this many characters, at least one, and the one that must be shown."""
    widths = {column: max(map(len, values)) + 2 for column, values in cells.items()}
    kept: list[str] = []
    left = width + 2 - widths.get(must or "", 0)  # the last column has nothing to its right
    for column in cells:
        left -= 0 if column == must else widths[column]
        if kept and left < 0:
            break
        kept.append(column)
    return kept if must is None or must in kept or must not in cells else [*kept, must]


def shown(value: Value) -> str:
    """Format one value with the digits that matter."""
    if isinstance(value, float):
        return f"{value:.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
    return "" if value is None else str(value)


def harmless(cell: Any) -> Any:
    """Return a cell of a CSV file that no spreadsheet takes for a formula: text like one gets an apostrophe."""
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    return f"'{cell}" if as_number(cell) is None else cell
