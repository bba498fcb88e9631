"""What a table is, and the registry of those that reports show."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lddr.report.exhibits import Exhibits
from lddr.report.titles import MARK, MEANING, few_mark

if TYPE_CHECKING:
    from lddr.report.groups import Group

MARKS = {  # what a mark behind a number says; the sentence ends with what exactly is different
    "†": "fewer steps than the paper's",
    "‡": "another dataset than the paper's, which only looks alike",
    "°": "images drawn here, not read from the official file",
    "§": "other settings than the paper's",
    "¶": "other metric settings than the published ones",
    MARK: MEANING,
    "*": "quoted by the paper from Locatello et al. (2019)",
}
COUNTED = "In round brackets: the number of runs"
EMPTY = "–"


@dataclass(frozen=True)
class Number:
    """A number, the quartiles around it, and of how many runs; marked where it is not what it seems."""

    value: float
    low: float | None = None
    high: float | None = None
    count: int | None = None
    marks: str = ""
    best: bool = False
    fewest: int | None = None  # runs of each model it rests on, at least; when left out, as many as are counted

    @property
    def all_marks(self) -> str:
        """With that of few runs."""
        counted = [count for count in (self.fewest, self.count) if count is not None]
        return self.marks + (few_mark(counted[0]) if counted else "")


Cell = Number | str | None


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; the first `labels` columns say what a row is about."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    labels: int = 1
    decimals: int = 1

    def text(self, cell: Cell) -> str:
        """A cell in plain characters: the number, its quartiles, the runs in brackets, the marks."""
        if not isinstance(cell, Number):
            return EMPTY if cell is None else cell
        spread = "" if cell.low is None else f" [{self.digits(cell.low)}, {self.digits(cell.high)}]"
        count = "" if cell.count is None else f" ({cell.count})"
        return self.digits(cell.value) + spread + count + cell.all_marks

    def digits(self, value: float | None) -> str:
        """A number with the decimals of this table; never "-0.0"."""
        return "" if value is None else f"{round(value, self.decimals) + 0.0:.{self.decimals}f}"

    def with_notes(self, first: str, found: Mapping[str, Iterable[str]]) -> "Table":
        """The same with what its marks mean: mark → what exactly is different."""
        cells = [cell for row in self.rows for cell in row if isinstance(cell, Number)]
        used = [mark for mark in MARKS if any(mark in cell.all_marks for cell in cells)]
        details = {mark: ", ".join(found.get(mark, ())) for mark in used}
        notes = [f"{mark} {MARKS[mark]}" + (f": {details[mark]}" if details[mark] else "") for mark in used]
        return replace(self, notes=(*self.notes, first, *notes))


def spread(values: Sequence[float], marks: str = "") -> Number | None:
    """Median and quartiles (interpolated linearly) of some values; None of nothing."""
    if not values:
        return None
    low, middle, high = np.quantile(np.asarray(values, dtype=float), [0.25, 0.5, 0.75]).tolist()
    return Number(middle, low, high, len(values), marks)


def with_best(cells: Sequence[Cell]) -> list[Cell]:
    """The same column with its largest numbers marked as the best, if there are at least two to choose from."""
    values = [cell.value for cell in cells if isinstance(cell, Number)]
    if len(values) < 2:
        return list(cells)
    return [replace(cell, best=cell.value == max(values)) if isinstance(cell, Number) else cell for cell in cells]


Make = Callable[["Sequence[Group]"], Table]


class Tables(Exhibits["Sequence[Group]", Table]):
    """Tables, called as they are registered."""

    def add(self, name: str, title: str, order: int) -> Callable[[Make], Make]:
        """Decorator: let reports show the table that this function makes."""
        register = super().add(name, title, order)
        return lambda make: register(lambda groups: replace(make(groups), name=name, title=title))


tables = Tables("table", homes=("lddr.report.tables",))
