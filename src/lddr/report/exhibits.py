"""Tables and figures: the registries of those that pages show, and a table as Markdown, LaTeX and CSV."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from lddr.errors import UserError
from lddr.files import written_whole
from lddr.registry import Registry
from lddr.report.groups import Group
from lddr.report.style import Figure, few_mark, house_style
from lddr.report.traversals import LoadedRun
from lddr.runs.tables import harmless

EMPTY = "–"  # a cell without a number


@dataclass(frozen=True)
class Drawn:
    """A figure and its caption."""

    figure: Figure
    caption: str


@dataclass(frozen=True)
class Number:
    """A number, the quartiles around it, and the number of runs; marks refer to the notes of its table."""

    value: float
    low: float | None = None
    high: float | None = None
    count: int | None = None
    marks: str = ""
    best: bool = False
    fewest: int | None = None  # the fewest runs of a model that it rests on, if this is not `count`

    @property
    def all_marks(self) -> str:
        """The marks, with that of few runs."""
        fewest = self.count if self.fewest is None else self.fewest
        return self.marks + ("" if fewest is None else few_mark(fewest))


Cell = Number | str | None


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; the first column names the rows."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    decimals: int = 1
    source: str = ""  # where numbers that are not ours come from

    def text(self, cell: Cell) -> str:
        """Return a cell in plain characters: the number, its quartiles, the runs in brackets, the marks."""
        if not isinstance(cell, Number):
            return EMPTY if cell is None else cell
        quartiles = "" if cell.low is None else f" [{self.digits(cell.low)}, {self.digits(cell.high)}]"
        count = "" if cell.count is None else f" ({cell.count})"
        return self.digits(cell.value) + quartiles + count + cell.all_marks

    def digits(self, value: float | None) -> str:
        """Format a number with the decimals of this table, never as "-0.0"."""
        return "" if value is None else f"{round(value, self.decimals) + 0.0:.{self.decimals}f}"


Source = TypeVar("Source")  # groups of runs, or one run
Result = TypeVar("Result")  # a table or a figure
Missing = dict[str, str]  # title → why it is missing


class UnwantedError(UserError):
    """Raised by an exhibit that is irrelevant here, so that its absence is not reported."""


@dataclass(frozen=True)
class Exhibit(Generic[Source, Result]):
    """A table or a figure; `make` raises UndefinedError, with a one-sentence message, if the runs do not allow it."""

    name: str
    title: str
    order: int  # its position on a page
    make: Callable[[Source], Result]


class Exhibits(Registry[Exhibit[Source, Result]]):
    """All tables, or all figures of one type."""

    def add(
        self, name: str, title: str, order: int
    ) -> Callable[[Callable[[Source], Result]], Callable[[Source], Result]]:
        """Let pages show what the decorated function makes."""

        def register(function: Callable[[Source], Result]) -> Callable[[Source], Result]:
            def make(source: Source) -> Result:
                with house_style():
                    result: Any = function(source)
                if isinstance(result, Table):
                    result = replace(result, name=name, title=title)
                return result

            return self.register(name)(Exhibit(name, title, order, make)).make

        return register

    def in_order(self) -> list[Exhibit[Source, Result]]:
        """Return the exhibits in their order on a page."""
        return sorted((self[name] for name in self), key=lambda exhibit: exhibit.order)


PAPER = "lddr_paper"  # imported at the first look-up: the reproduction imports the library, not the other way round
tables: Exhibits[Sequence[Group], Table] = Exhibits("table", homes=(PAPER,))
figures: Exhibits[Sequence[Group], Drawn] = Exhibits("figure", homes=(PAPER,))
card_figures: Exhibits[LoadedRun, Drawn] = Exhibits("figure of a model", homes=("lddr.report.card_figures",))


def make_all(
    exhibits: Iterable[Exhibit[Source, Result]], source: Source, missing: Missing
) -> Iterator[tuple[Exhibit[Source, Result], Result]]:
    """Yield each exhibit with its result; add those that cannot be made to `missing`, with the reason."""
    for exhibit in exhibits:
        try:
            yield exhibit, exhibit.make(source)
        except UnwantedError:
            continue
        except UserError as reason:
            missing[exhibit.title] = str(reason)


def markdown(table: Table) -> str:
    """Return a table as GitHub renders it, with its title above and its notes below."""
    head = [column.replace("|", "\\|") for column in table.columns]
    rows = [[_markdown_cell(table, cell) for cell in row] for row in table.rows]
    notes = [f"- {note}" for note in table.notes]
    return "\n".join([f"**{table.title}**", "", markdown_rows(head, rows), *([""] if notes else []), *notes, ""])


def markdown_rows(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return rows of text below a header as a Markdown table."""
    ruler = ["---", *["---:"] * (len(header) - 1)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ruler, *rows))


def _markdown_cell(table: Table, cell: Cell) -> str:
    text = table.text(cell).replace("|", "\\|").replace("*", "\\*")
    return f"**{text}**" if isinstance(cell, Number) and cell.best else text


LATEX = str.maketrans(
    {
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
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
    }
    | {letter: f"\\{letter}" for letter in "%&_#${}"}
)


def latex(table: Table) -> str:
    """Return a table for a paper that uses booktabs; the notes are part of the caption."""
    rows = [" & ".join(_latex_cell(table, cell) for cell in row) + r" \\" for row in table.rows]
    head = " & ".join(column.translate(LATEX) for column in table.columns) + r" \\"
    sides = "l" + "r" * (len(table.columns) - 1)
    caption = " ".join(f"{sentence.rstrip('.')}." for sentence in [table.title, *table.notes]).translate(LATEX)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{caption}}}", rf"\label{{tab:{table.name}}}"]
    lines += [rf"\begin{{tabular}}{{{sides}}}", r"\toprule", head, r"\midrule", *rows, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}", r"\end{table}", ""])


def _latex_cell(table: Table, cell: Cell) -> str:
    text = table.text(cell).translate(LATEX)
    return rf"\textbf{{{text}}}" if isinstance(cell, Number) and cell.best else text


def comma_separated(table: Table) -> str:
    """Return a table with every digit, for other programs: each part of a number has a column of its own."""
    columns: list[list[object]] = []
    for heading, cells in zip(table.columns, zip(*table.rows, strict=True), strict=True):
        columns.append([heading, *(cell.value if isinstance(cell, Number) else cell for cell in cells)])
        for part, title in {"low": "25 %", "high": "75 %", "count": "runs", "all_marks": "marks"}.items():
            values = [getattr(cell, part) if isinstance(cell, Number) else None for cell in cells]
            if any(value not in (None, "") for value in values):
                columns.append([f"{heading} {title}", *values])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(harmless, row) for row in zip(*columns, strict=True))
    return text.getvalue()


FORMATS = {"md": markdown, "tex": latex, "csv": comma_separated}


def write_table(table: Table, folder: Path) -> None:
    """Write a table in every format."""
    for ending, format_table in FORMATS.items():
        with written_whole(folder / f"{table.name}.{ending}") as draft:
            draft.write_text(format_table(table), encoding="utf-8", errors="replace")
