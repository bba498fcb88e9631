"""Output for people while something runs: messages and progress on stderr, tables on stdout."""

import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from importlib import import_module
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from rich import console as rich_console
    from rich import progress as rich_progress
    from rich import table as rich_table
else:

    class LazyModule:
        """A module that is imported when it is first used: printing a message does not need rich."""

        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module(self._name), name)

    rich_console, rich_progress, rich_table = map(LazyModule, ("rich.console", "rich.progress", "rich.table"))

Thing = TypeVar("Thing")
REDRAW_SECONDS = 0.2  # between two updates of a bar
LONG = 2.0  # seconds: a task that takes longer gets a line where there is no terminal


def say(sentence: str) -> None:
    """Print one sentence on stderr."""
    if sys.stderr is not None:
        print(f"lddr: {sentence}", file=sys.stderr, flush=True)


def table(*headings: str, numbers: Iterable[str] = (), title: str | None = None) -> "rich_table.Table":
    """Return a table without rules, in which long words are folded and never truncated; number columns come last."""
    plain = rich_table.Table(box=None, header_style="bold", pad_edge=False, title=title)
    for heading in headings:
        plain.add_column(heading, overflow="fold")
    for heading in numbers:
        plain.add_column(heading, overflow="fold", justify="right")
    return plain


def show(shown: Any, style: str | None = None, **options: Any) -> None:
    """Print a table or a text verbatim, without interpreting markup."""
    rich_console.Console(markup=False, highlight=False, **options).print(shown, style=style)


def width() -> int:
    """Return the number of characters per line."""
    return rich_console.Console().width


def text_column(text: str) -> "rich_progress.TextColumn":
    """Return a text column of a progress display, always one line high."""
    return rich_progress.TextColumn(text, markup=False, table_column=rich_table.Column(no_wrap=True))


def counted(count: int, noun: str) -> str:
    """Return "1 run" or "2 runs"."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


class Progress:
    """The progress of tasks on stderr: bars on a terminal, a line now and then elsewhere, nothing when quiet.

    Bars are redrawn when a task advances, a few times a second and without a thread.
    """

    def __init__(self, quiet: bool = False, lines_every: float = 30.0, keep: bool = False) -> None:
        """`lines_every` is in seconds; `keep` leaves the bars on the screen at the end."""
        self.quiet, self.keep, self.interval = quiet or sys.stderr is None, keep, lines_every
        self.console = rich_console.Console(stderr=True, highlight=False)
        self.bars: rich_progress.Progress | None = None
        if not self.quiet and sys.stderr.isatty() and self.console.is_interactive:
            self.interval = REDRAW_SECONDS
            redirect = bool(sys.stdout and sys.stdout.isatty())  # piped stdout must not be redirected
            options: Any = {"expand": True, "auto_refresh": False, "redirect_stdout": redirect, "transient": not keep}
            bar = rich_progress.BarColumn(max(6, self.console.width // 6)), rich_progress.TaskProgressColumn()
            texts = (
                text_column("{task.description}"),
                *bar,
                *(text_column(f"{{task.fields[{name}]}}") for name in ("pace", "note")),
            )
            self.bars = rich_progress.Progress(*texts, console=self.console, **options)

    def __enter__(self) -> Self:
        if self.bars:
            self.bars.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self.bars:
            with suppress(OSError):  # a closed terminal must not cause a failure
                self.bars.stop()

    @contextmanager
    def task(self, description: str, total: float = 1.0, done: float = 0.0, unit: str = "") -> Iterator["Task"]:
        """Show one task; call it with amounts that add up to the total."""
        task = Task(self, description, total, done, unit)
        try:
            yield task
            if not unit:
                task.done = total
        finally:
            task.finish()

    def line(self, text: str) -> None:
        """Print a line that stays on the screen."""
        with suppress(OSError):
            if self.bars:  # prints above the bars
                self.console.print(text, markup=False, soft_wrap=True)
            elif not self.quiet:  # not with rich, which ends the process if the pipe is closed
                print(text, file=sys.stderr, flush=True)


class Task:
    """A task of a progress display; `update` is cheap enough for every training step.

    The time left follows from the speed measured over the last `window` seconds. With a unit, such as "steps", the
    amount done and the speed are shown, too.
    """

    def __init__(
        self,
        progress: Progress,
        description: str,
        total: float,
        done: float = 0.0,
        unit: str = "",
        window: float = 25.0,
    ) -> None:
        self.total, self.done = total, done
        self._progress, self._description, self._unit, self._window = progress, description, unit, window
        self._begun, self._first = perf_counter(), done
        self.note: Callable[[], str] = str
        self._samples = deque([(self._begun, done)])
        self._due = self._begun + progress.interval
        if progress.bars:
            self._bar = progress.bars.add_task(description, total=total, pace="ETA -:--:--", note="")
            progress.bars.update(self._bar, completed=done)

    def __call__(self, amount: float) -> None:
        self.update(self.done + amount)

    def update(self, done: float, note: Callable[[], str] | None = None) -> None:
        """Set the amount done, and a function that returns a note: it is called only when the note is shown."""
        self.done, self.note = done, note or self.note
        if (now := perf_counter()) >= self._due and not self._progress.quiet:
            self._due = now + self._progress.interval
            self._samples.append((now, done))
            while len(self._samples) > 2 and now - self._samples[0][0] > self._window:
                self._samples.popleft()
            then, before = self._samples[0]
            speed = (done - before) / (now - then) if done > before else 0.0
            self.show(speed, f"ETA {clock((self.total - done) / speed)}" if speed else "ETA -:--:--")

    def finish(self) -> None:
        """Show the final state, with the mean speed since the start."""
        seconds = perf_counter() - self._begun
        is_worth_a_line = self._progress.keep or self._progress.bars or seconds > LONG
        if not self._progress.quiet and is_worth_a_line:
            self.show((self.done - self._first) / max(seconds, 1e-9), f"took {clock(seconds)}")

    def show(self, speed: float = 0.0, time: str = "") -> None:
        """Show the current state at once."""
        pace = "  ".join(filter(None, [f"{speed:.1f} {self._unit}/s" if speed and self._unit else "", time]))
        if bars := self._progress.bars:
            with suppress(OSError):
                fields: Any = {"total": self.total, "completed": self.done, "pace": pace, "note": self.note()}
                bars.update(self._bar, refresh=True, **fields)
        else:
            count = f"{self.done:.0f}/{self.total:.0f}" if self._unit else ""
            words = [self._description, count, f"{self.done / max(1e-9, self.total):.0%}", pace, self.note()]
            self._progress.line("  ".join(filter(None, words)))

    def remove(self) -> None:
        """Remove the bar of a task from the screen."""
        if self._progress.bars:
            self._progress.bars.remove_task(self._bar)


def watched(things: Collection[Thing], doing: str, quiet: bool = False) -> Iterator[Thing]:
    """Iterate over the things, with a progress bar that disappears at the end, on a terminal only."""
    with Progress(quiet or not rich_console.Console(stderr=True).is_terminal) as progress:
        with progress.task(doing, len(things)) as advance:
            for thing in things:
                yield thing
                advance(1)


TaskBars = Progress  # its former name
