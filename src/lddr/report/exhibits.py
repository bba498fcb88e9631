"""Tables and figures: the registries of those that pages show, and a table as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from lddr.errors import UserError
from lddr.files import written_whole
from lddr.registry import Registry
from lddr.report.groups import Group
from lddr.report.style import MARK, MEANING, Figure, few_mark, house_style
from lddr.report.traversals import LoadedRun
from lddr.runs.tables import harmless

if TYPE_CHECKING:
    from lddr.report.groups import Group


Source = TypeVar("Source")  # the input: groups of runs, or one run
Made = TypeVar("Made")
Missing = dict[str, str]  # title → why it is missing


class UnwantedError(UserError):
    """Raised by an exhibit that is irrelevant here, so that its absence is not reported."""


@dataclass(frozen=True)
class Exhibit(Generic[Source, Made]):
    """A table or a figure; `make` raises UndefinedError, with a one-sentence message, if the runs do not allow it."""

    name: str
    title: str
    order: int  # its position on a page
    make: Callable[[Source], Made]


class Exhibits(Registry[Exhibit[Source, Made]]):
    """All tables, or all figures of one type."""

    def add(self, name: str, title: str, order: int) -> Callable[[Callable[[Source], Made]], Callable[[Source], Made]]:
        """Register the decorated function's result for display on pages."""

        def register(make: Callable[[Source], Made]) -> Callable[[Source], Made]:
            return self.register(name)(Exhibit(name, title, order, make)).make

        return register

    def in_order(self) -> list[Exhibit[Source, Made]]:
        """Return the exhibits in their order on a page."""
        return sorted((self[name] for name in self), key=lambda exhibit: exhibit.order)


def made(
    exhibits: Iterable[Exhibit[Source, Made]], source: Source, missing: Missing
) -> Iterator[tuple[Exhibit[Source, Made], Made]]:
    """Return each exhibit with its result; those that cannot be made are listed with the reason."""
    for exhibit in exhibits:
        try:
            yield exhibit, exhibit.make(source)
        except UnwantedError:
            continue
        except UserError as reason:
            missing[exhibit.title] = str(reason)


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
    source: str = ""  # where the numbers that are not ours come from

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


tables = Tables("table", homes=("lddr_paper",))


def markdown(table: Table) -> str:
    """A table as GitHub renders it, with its title above and its notes below."""
    rows = [[_markdown_cell(table, cell) for cell in row] for row in table.rows]
    head = [_escaped_bars(column) for column in table.columns]
    sides = ["---"] * table.labels + ["---:"] * (len(head) - table.labels)
    lines = [f"| {' | '.join(row)} |" for row in [head, sides, *rows]]
    notes = [f"- {note}" for note in table.notes]
    return "\n".join([f"**{table.title}**", "", *lines, *([""] if notes else []), *notes, ""])


def _markdown_cell(table: Table, cell: Cell) -> str:
    text = _escaped_bars(table.text(cell)).replace("*", "\\*")
    return f"**{text}**" if isinstance(cell, Number) and cell.best else text


def _escaped_bars(text: str) -> str:
    return text.replace("|", "\\|")


LATEX = {
    "\\": r"\textbackslash{}",
    "†": r"$^\dagger$",
    "‡": r"$^\ddagger$",
    "°": r"$^\circ$",
    "§": r"$^\S$",
    "¶": r"$^\P$",
    "△": r"$^\triangle$",
    "*": "$^*$",
    "–": "--",
    "→": r"$\to$",
    "×": r"$\times$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "ω": r"$\omega$",
} | {letter: f"\\{letter}" for letter in "%&_#${}"}
LATEX |= {"^": r"\textasciicircum{}", "~": r"\textasciitilde{}"}


def latex(table: Table) -> str:
    """A table for a paper that uses booktabs; the notes are part of the caption."""
    rows = [" & ".join(_latex_cell(table, cell) for cell in row) + r" \\" for row in table.rows]
    head = " & ".join(map(_latex_text, table.columns)) + r" \\"
    sides = "l" * table.labels + "r" * (len(table.columns) - table.labels)
    caption = " ".join(_latex_text(sentence.rstrip(".") + ".") for sentence in [table.title, *table.notes])
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{tab:{table.name}}}"]
    lines += [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", r"\end{table}", ""])


def _latex_cell(table: Table, cell: Cell) -> str:
    text = _latex_text(table.text(cell))
    return rf"\textbf{{{text}}}" if isinstance(cell, Number) and cell.best else text


def _latex_text(text: str) -> str:
    return "".join(LATEX.get(letter, letter) for letter in text)


def comma_separated(table: Table) -> str:
    """Every digit, for other programs: each part of a number that is used has a column of its own."""
    cells_of = zip(*table.rows, strict=True)
    columns = [part for heading, cells in zip(table.columns, cells_of, strict=True) for part in _parts(heading, cells)]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(harmless, row) for row in zip(*columns, strict=True))
    return text.getvalue()


PARTS = {"low": "25 %", "high": "75 %", "count": "runs", "all_marks": "marks"}


def _parts(heading: str, cells: Sequence[Cell]) -> list[list[object]]:
    numbers = [cell if isinstance(cell, Number) else None for cell in cells]
    first = [heading, *(cell.value if isinstance(cell, Number) else cell for cell in cells)]
    others = [
        [f"{heading} {title}", *(getattr(number, part, None) for number in numbers)] for part, title in PARTS.items()
    ]
    return [first, *(column for column in others if any(value not in (None, "") for value in column[1:]))]


FORMATS = {"md": markdown, "tex": latex, "csv": comma_separated}


def write_table(table: Table, folder: Path) -> None:
    """Write a table in every format."""
    for ending, rendered in FORMATS.items():
        with written_whole(folder / f"{table.name}.{ending}") as draft:
            draft.write_text(rendered(table), encoding="utf-8", errors="replace")


@dataclass(frozen=True)
class Drawn:
    """A drawing, and the sentences below it."""

    figure: Figure
    caption: str


class Figures(Exhibits[Source, Drawn]):
    """Figures, drawn in the house style."""

    def add(
        self, name: str, title: str, order: int
    ) -> Callable[[Callable[[Source], Drawn]], Callable[[Source], Drawn]]:
        """Decorator: let pages show what this function draws."""
        register = super().add(name, title, order)
        return lambda draw: register(house_style()(draw))


def check_wanted(groups: Sequence[Group]) -> None:
    """For a sketch that needs no runs: it explains the paper, not images that are somebody's own."""
    if groups and all(group.is_own for group in groups):
        raise UnwantedError("the runs are on images of one's own")


figures: Figures[Sequence[Group]] = Figures("figure", homes=("lddr_paper",))
card_figures: Figures[LoadedRun] = Figures("figure of a model", homes=("lddr.report.card_figures",))
