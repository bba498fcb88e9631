"""Timing of several sides in turns, so that a busy machine slows all of them alike, and tables of it; without torch."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from lddr import console
from lddr.files import write_json


def interleaved(
    sides: dict[str, Callable[[], int]], repeats: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the median seconds per unit of each side; a side does some work and returns how many units it did."""
    return {name: median(times) for name, times in in_turns(sides, repeats, clock).items()}


def in_turns(
    sides: dict[str, Callable[[], int]], repeats: int = 7, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Return the seconds per unit of each side in every turn, so that sides can be compared turn by turn."""
    for run in sides.values():
        run()  # to fill caches
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, run in sides.items():
            start = clock()
            units = run()
            times[name].append((clock() - start) / units)
    return times


def fair_clock(threads: int) -> Callable[[], float]:
    """Return the processor time with one thread, so that other processes do not count, else the wall-clock time."""
    return time.process_time if threads == 1 else time.perf_counter


def show(rows: list[dict[str, Any]], title: str, out: Path | None) -> None:
    """Print one line per row, and write the rows as JSON."""
    words = [name for name, value in rows[0].items() if isinstance(value, str)]
    table = console.table(*words, numbers=[name for name in rows[0] if name not in words], title=title)
    for row in rows:
        table.add_row(*map(_cell, row.values()))
    console.show(table, width=max(120, console.width()))
    if out is not None:
        write_json(out, rows)


def _cell(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"
