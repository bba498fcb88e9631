"""The outcome of a benchmark: a table on the screen and, if wanted, a file."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from lddr.files import write_json


def show(rows: list[dict[str, Any]], title: str, out: Path | None) -> None:
    """Print one line per row, words to the left and numbers to the right, and write the rows as JSON."""
    table = Table(box=None, header_style="bold", title=title)
    for heading, value in rows[0].items():
        is_word = isinstance(value, str)
        table.add_column(heading, justify="left" if is_word else "right", no_wrap=is_word)
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    Console(width=max(120, Console().width)).print(table)
    if out is not None:
        write_json(out, rows)


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
