"""Output for people while something runs: messages and progress on stderr, tables on stdout."""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
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
EVERY = {"bar": 0.2, "lines": 10.0, "tasks": 30.0}  # seconds between two updates of the progress
WINDOW = 25.0  # seconds over which the speed is averaged
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


def watched(things: Iterable[Thing], doing: str, quiet: bool = False) -> Iterable[Thing]:
    """Iterate over the things, with a progress bar that disappears at the end."""
    console = rich_console.Console(stderr=True)
    hidden = quiet or not console.is_terminal
    return rich_progress.track(things, doing, console=console, transient=True, disable=hidden)


def clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def text_column(text: str, **options: Any) -> "rich_progress.TextColumn":
    """Return a text column of a progress display, always one line high."""
    return rich_progress.TextColumn(text, markup=False, table_column=rich_table.Column(no_wrap=True, **options))


class Speed:
    """The speed of a task, from (time, amount done) over a sliding window."""

    def __init__(self, window: float = WINDOW) -> None:
        self._window = window
        self._samples: deque[tuple[float, float]] = deque()

    def note(self, now: float, done: float) -> None:
        self._samples.append((now, done))
        while len(self._samples) > 2 and now - self._samples[0][0] > self._window:
            self._samples.popleft()

    @property
    def per_second(self) -> float:
        """Return the speed, or 0 while it is unknown."""
        (then, before), (now, done) = self._samples[0], self._samples[-1]
        return (done - before) / (now - then) if done > before else 0.0

    def left(self, total: float) -> str:
        """Return the time left at this speed."""
        speed = self.per_second
        return f"ETA {clock((total - self._samples[-1][1]) / speed)}" if speed else "ETA -:--:--"


class Display:
    """Progress on stderr: bars on a terminal, redrawn only on request; lines elsewhere; nothing when quiet."""

    def __init__(self, *columns: "rich_progress.ProgressColumn", quiet: bool = False) -> None:
        self.quiet = quiet or sys.stderr is None
        self.console = rich_console.Console(stderr=True, highlight=False)
        self.bars: rich_progress.Progress | None = None
        if not self.quiet and sys.stderr.isatty() and self.console.is_interactive:
            redirect = bool(sys.stdout and sys.stdout.isatty())  # piped stdout must not be redirected
            options: Any = {"expand": True, "auto_refresh": False, "redirect_stdout": redirect}
            bar = rich_progress.BarColumn(max(6, self.console.width // 6))
            shown = columns[0], bar, rich_progress.TaskProgressColumn(), *columns[1:]
            self.bars = rich_progress.Progress(*shown, console=self.console, **options)

    def __enter__(self) -> Self:
        if self.bars:
            self.bars.start()
        return self

    def __exit__(self, *problem: object) -> None:
        if self.bars:
            with suppress(OSError):  # a closed terminal must not cause a failure
                self.bars.stop()

    def line(self, text: str) -> None:
        """Print a line that stays on the screen."""
        with suppress(OSError):
            if self.bars:  # prints above the bars
                self.console.print(text, markup=False, soft_wrap=True)
            elif not self.quiet:  # not with rich, which ends the process if the pipe is closed
                print(text, file=sys.stderr, flush=True)


class StepProgress(Display):
    """The progress of a loop; `update` is cheap enough for every step, as the note is computed only when shown."""

    def __init__(self, total: int, start: int = 0, description: str = "training", quiet: bool = False) -> None:
        pace, note = text_column("{task.fields[pace]}"), text_column("{task.fields[note]}", ratio=1)
        super().__init__(text_column("{task.description}"), pace, note, quiet=quiet)
        self._total, self._start, self._description = total, start, description
        self._step, self._note = start, lambda: ""
        self._every = float("inf") if self.quiet else EVERY["bar" if self.bars else "lines"]
        if self.bars:
            self.bars.add_task(description, total=total, completed=start, pace="ETA -:--:--", note="")

    def __enter__(self) -> Self:
        self._begun = perf_counter()
        self._due = self._begun + self._every
        self._speed = Speed()
        self._speed.note(self._begun, self._start)
        return super().__enter__()

    def update(self, step: int, note: Callable[[], str]) -> None:
        """Set the current step, and a function that returns the note to show with it."""
        self._step, self._note = step, note
        now = perf_counter()
        if now < self._due:
            return
        self._due = now + self._every
        self._speed.note(now, step)
        speed = self._speed.per_second
        self._show(*([f"{speed:.1f} steps/s"] if speed else []), self._speed.left(self._total))

    def __exit__(self, *problem: object) -> None:
        """Show the final step, and the mean speed since the start."""
        seconds = perf_counter() - self._begun
        speed = (self._step - self._start) / max(seconds, 1e-9)  # a finished run takes no time
        if not self.quiet:
            self._show(f"{speed:.1f} steps/s", f"took {clock(seconds)}")
        super().__exit__(*problem)

    def _show(self, *pace: str) -> None:
        words, note = "  ".join(pace), self._note()
        if self.bars:
            with suppress(OSError):
                task = rich_progress.TaskID(0)
                self.bars.update(task, completed=self._step, pace=words, note=note, refresh=True)
        else:
            percent = f"{self._step / max(1, self._total):.0%}"
            place = f"{self._description}  {self._step}/{self._total}  {percent}"
            self.line("  ".join([place, words, note]).rstrip())


class TaskBars:
    """A progress bar for each of several long tasks; without a terminal, an occasional line."""

    def __init__(self, quiet: bool = False) -> None:
        console = rich_console.Console(stderr=True)
        hidden = quiet or not console.is_terminal
        self._quiet, self._lines = quiet, not quiet and hidden
        columns = text_column("{task.description}"), rich_progress.BarColumn(), rich_progress.TaskProgressColumn()
        times = rich_progress.TimeElapsedColumn(), text_column("ETA"), rich_progress.TimeRemainingColumn()
        self._bars = rich_progress.Progress(*columns, *times, console=console, disable=hidden, transient=True)

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._bars.stop()

    @contextmanager
    def task(self, description: str, total: float = 1.0) -> Iterator[Callable[[float], None]]:
        """Show one task; advance it by amounts that add up to the total.

        The time left is estimated from the measured speed so far, never from the expected duration of a task.
        """
        begun, done = perf_counter(), 0.0
        due, speed, task = begun + EVERY["tasks"], Speed(), self._bars.add_task(description, total=total)
        speed.note(begun, done)

        def advance(amount: float) -> None:
            nonlocal done, due
            done += amount
            self._bars.advance(task, amount)
            if self._lines and (now := perf_counter()) >= due:
                due = now + EVERY["tasks"]
                speed.note(now, done)
                self.line(f"{description}: {done / total:.0%}, {speed.left(total)}")

        yield advance
        self._bars.update(task, completed=total)
        if self._lines and (seconds := perf_counter() - begun) > LONG:
            self.line(f"{description}: {seconds:.0f} s")

    def line(self, text: str) -> None:
        """Print a line that stays above the bars."""
        if self._lines:
            print(text, file=sys.stderr, flush=True)
        elif not self._quiet:
            self._bars.console.print(text, highlight=False, markup=False, soft_wrap=True)
