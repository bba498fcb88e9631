"""How far an evaluation is, on stderr: a bar for the encoding and one for each metric; plain lines in a file."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LONG = 2.0  # seconds that are worth a line where there is no terminal


class Bars:
    """The bars of one evaluation."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
        hidden = quiet or not self._console.is_terminal
        self._lines = not quiet and hidden
        self._bars = Progress(
            *columns, TextColumn("ETA"), TimeRemainingColumn(), console=self._console, disable=hidden, transient=True
        )

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._bars.stop()

    @contextmanager
    def encoding(self, distinct: int, drawn: int) -> Iterator[Callable[[float], None]]:
        """For the encoding; advance it by images."""
        with self._task(f"encoding {distinct:,} distinct images of {drawn:,} drawn", distinct) as advance:
            yield advance

    @contextmanager
    def scoring(self, name: str) -> Iterator[Callable[[float], None]]:
        """For one metric; advance it by shares of 1."""
        with self._task(name, 1.0) as advance:
            yield advance

    @contextmanager
    def _task(self, description: str, total: float) -> Iterator[Callable[[float], None]]:
        begun = perf_counter()
        task = self._bars.add_task(description, total=total)
        yield lambda amount: self._bars.advance(task, amount)
        self._bars.update(task, completed=total)
        if self._lines and (seconds := perf_counter() - begun) > LONG:
            self._console.print(f"{description}: {seconds:.0f} s", highlight=False, soft_wrap=True)
