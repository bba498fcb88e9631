"""A table as Markdown, LaTeX and CSV, from one source."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from lddr.files import written_whole
from lddr.report.tables.table import Cell, Number, Table
from lddr.runs.tables import harmless


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
