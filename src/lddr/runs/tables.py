"""Tables of runs: filters, conditions, and columns."""

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
ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CONDITION = re.compile(r"\s*([^<>=!\s]+)\s*(<=|>=|!=|==|=|<|>)\s*(.*?)\s*")


@dataclass(frozen=True)
class Condition:
    """The name of a value, a comparison, and what to compare with: for equality, one text or several with commas."""

    name: str
    comparison: str
    wanted: str

    @property
    def is_order(self) -> bool:
        return self.comparison in ORDERS

    def holds(self, value: Any) -> bool:
        """Numbers are compared as numbers; what is none is neither smaller nor larger than anything."""
        if self.is_order:
            left, right = as_number(value), as_number(self.wanted)
            return left is not None and right is not None and ORDERS[self.comparison](left, right)
        choices = [self.wanted, *(text.strip() for text in self.wanted.split(","))]  # a value may have commas itself
        return any(_same(value, text) for text in choices) == (self.comparison != "!=")

    def check(self, values: Iterable[Any]) -> None:
        """Refuse to order words, or by a word."""
        there = [value for value in values if value is not None]
        if self.is_order and there and all(isinstance(value, str) for value in there):
            raise UserError(f"{self.name} holds words, which are not ordered; compare it with = or !=")
        if self.is_order and as_number(self.wanted) is None:
            raise UserError(f"{self.name} holds numbers; compare it with a number, not {self.wanted!r}")


def parse_condition(text: str) -> Condition:
    """From "mig>0.3"."""
    match = _CONDITION.fullmatch(text)
    if match is None or not match[3]:
        raise UserError(f"cannot read the condition {text!r}; write it like model=dvae, gamma=10,20 or seed<5")
    return Condition(*match.groups())


def meeting(things: Iterable[T], texts: Iterable[str], value: Callable[[T, str], Any], known: Iterable[str]) -> list[T]:
    """The things that meet all conditions; what has no value of a name is "none".

    Refused are names that are not known, and an order between words.
    """
    left, names = list(things), list(known)
    for condition in map(parse_condition, texts if left else ()):
        if condition.name not in names:
            raise UserError(unknown("column", condition.name, [name for name in names if "." not in name]))
        condition.check(value(thing, condition.name) for thing in left)
        found = [(thing, value(thing, condition.name)) for thing in left]
        left = [thing for thing, each in found if condition.holds("none" if each is None else each)]
    return left


def as_number(value: Any) -> float | None:
    """The value as a number, None if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _same(value: Any, text: str) -> bool:
    left, right = as_number(value), as_number(text)
    return str(value) == text if left is None or right is None else left == right


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


NOT_HEADLINES = (  # the ELBO stands for them
    "elbo_noiseless",
    "reconstruction",
    "kl",
    "mean_picture",
    "explained",
    "active_latents",
    "saturated_latents",
)


def default_columns(runs: Sequence[Run], sort: str | None = None) -> list[str]:
    """The run, what it is, its state if one is not finished, the settings that differ, the scores."""
    state = ["state"] if any(run.value("state") != "finished" for run in runs) else []
    settings = [name for name in dict.fromkeys(name for run in runs for name in run.settings) if _differs(name, runs)]
    knobs = [name for name in settings if name not in ("dataset", "model", "latent", "objective", "seed")]
    seed = ["seed"] if "seed" in settings else []
    scores = [name for name in headlines(runs) if name != sort]
    by = [sort] if sort is not None and any(sort in run.scores for run in runs) else []  # must not fall off the edge
    return ["run", *state, "dataset", "model", *knobs, *seed, *by, *scores]


def known_scores(runs: Sequence[Run]) -> set[str]:
    """The names of all scores that some run has."""
    return {name for run in runs for name in run.scores}


def print_runs(runs: Sequence[Run], columns: Sequence[str] = (), sort: str | None = None) -> None:
    """Print these columns, or as many of the usual ones as fit, and say which do not.

    Lines are put together here: rich takes a millisecond for each, and there may be ten thousand.
    """
    from rich.console import Console
    from rich.text import Text

    console, wanted = Console(), columns or default_columns(runs, sort)
    cells = {column: _cells(runs, column) for column in wanted}
    first = next((name for name in headlines(runs) if name in wanted), None)
    kept = columns or _fitting(cells, console.width, sort or first)
    aligned = [_aligned(column, cells[column], _is_numeric(column, runs)) for column in kept]
    head, *lines = ("  ".join(row).rstrip() for row in zip(*aligned, strict=True))
    console.print(Text(head, style="bold"), soft_wrap=True)
    console.file.write("".join(f"{line}\n" for line in lines))
    if hidden := [column for column in wanted if column not in kept]:
        say(f"no room for {', '.join(hidden)}: name them in --columns, or use --csv or --json")


def _aligned(column: str, values: list[str], numeric: bool) -> list[str]:
    """The heading and the values, all of one width."""
    width = max(map(len, [column, *values]))
    return [text.rjust(width) if numeric else text.ljust(width) for text in [column, *values]]


def _is_numeric(column: str, runs: Sequence[Run]) -> bool:
    return not any(isinstance(run.value(column), str) for run in runs)


def harmless(cell: Any) -> Any:
    """A cell of a CSV file that no spreadsheet takes for a formula: words like one get an apostrophe in front."""
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def shown(value: Value) -> str:
    """One value, with the digits that matter."""
    if isinstance(value, float):
        return f"{value:.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"
    return "" if value is None else str(value)


def _cells(runs: Sequence[Run], column: str) -> list[str]:
    """A column's values; scores have as many decimals as the largest of them needs for about four digits."""
    values = [run.value(column) for run in runs]
    largest = max((abs(value) for value in values if isinstance(value, int | float)), default=0)
    if not any(column in run.scores for run in runs) or largest < 0.01:
        return [shown(value) for value in values]
    decimals = min(3, max(0, 3 - math.floor(math.log10(largest))))
    return [f"{value:.{decimals}f}" if isinstance(value, int | float) else shown(value) for value in values]


def _fitting(cells: dict[str, list[str]], width: int, must: str | None) -> list[str]:
    """The first columns that fit into this many characters, at least one, and the one that must not be missing."""
    widths = {column: max(map(len, [column, *values])) + 2 for column, values in cells.items()}
    kept: list[str] = []
    left = width + 2 - widths.get(must or "", 0)  # the last column has nothing to its right
    for column in cells:
        left -= 0 if column == must else widths[column]
        if kept and left < 0:
            break
        kept.append(column)
    return kept if must is None or must in kept or must not in cells else [*kept, must]


def _differs(name: str, runs: Sequence[Run]) -> bool:
    """Whether the runs that have this setting have several values of it."""
    return len({run.settings[name] for run in runs if name in run.settings}) > 1


def headlines(runs: Sequence[Run]) -> list[str]:
    """The scores that exist, without details: metrics first, since they are what runs are compared by."""
    scores = dict.fromkeys(name for run in runs for name in run.scores)
    bound = common_elbo(runs)  # runs of older versions have none but the noiseless one
    headlines = [name for name in scores if "." not in name and (name == bound or name not in NOT_HEADLINES)]
    return sorted(headlines, key=lambda name: (name in TRAINING_SCORES, name != "mig"))
