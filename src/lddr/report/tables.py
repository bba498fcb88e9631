"""A table of numbers, written as Markdown, LaTeX and CSV from one source."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lddr.files import written_whole

MARKS = {  # what a mark behind a number says; the sentence ends with what exactly is different
    "†": "fewer steps than the paper's",
    "‡": "another dataset than the paper's, which only looks alike",
    "§": "other settings than the paper's",
    "¶": "other metric settings than the published ones",
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
        return self.digits(cell.value) + spread + count + cell.marks

    def digits(self, value: float | None) -> str:
        """A number with the decimals of this table; never "-0.0"."""
        return "" if value is None else f"{round(value, self.decimals) + 0.0:.{self.decimals}f}"

    def with_notes(self, first: str, found: Mapping[str, Iterable[str]]) -> "Table":
        """The same with what its marks mean: mark → what exactly is different."""
        cells = [cell for row in self.rows for cell in row if isinstance(cell, Number)]
        used = [mark for mark in MARKS if any(mark in cell.marks for cell in cells)]
        details = {mark: ", ".join(found.get(mark, ())) for mark in used}
        notes = [f"{mark} {MARKS[mark]}" + (f": {details[mark]}" if details[mark] else "") for mark in used]
        return replace(self, notes=(*self.notes, first, *notes))


def spread(values: Sequence[float], marks: str = "") -> Number | None:
    """Median and quartiles (interpolated linearly) of some values; None of nothing."""
    if not values:
        return None
    low, middle, high = np.quantile(np.asarray(values, dtype=float), [0.25, 0.5, 0.75]).tolist()
    return Number(middle, low, high, len(values), marks)


def without_quartiles(number: Number | None) -> Number | None:
    """The middle alone."""
    return None if number is None else replace(number, low=None, high=None)


def with_best(cells: Sequence[Cell]) -> list[Cell]:
    """The same column with its largest numbers marked as the best, if there are at least two to choose from."""
    values = [cell.value for cell in cells if isinstance(cell, Number)]
    if len(values) < 2:
        return list(cells)
    return [replace(cell, best=cell.value == max(values)) if isinstance(cell, Number) else cell for cell in cells]


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
    "§": r"$^\S$",
    "¶": r"$^\P$",
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
    csv.writer(text, lineterminator="\n").writerows(zip(*columns, strict=True))
    return text.getvalue()


PARTS = {"low": "25 %", "high": "75 %", "count": "runs", "marks": "marks"}


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
            draft.write_text(rendered(table), encoding="utf-8")
