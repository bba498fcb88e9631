"""What training tells: a log that survives a kill, event files for TensorBoard, and a line that shows how far it is."""

import errno
import json
import os
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Self, SupportsFloat

from rich import progress as bars
from rich.console import Console
from rich.table import Column
from rich.text import Text

from lddr.errors import UserError
from lddr.runs.folder import RunFolder

Terms = Mapping[str, SupportsFloat]  # name → value: numbers, or tensors that are read only when they are shown

_EVERY = {"bar": 0.2, "lines": 10.0}  # seconds between two looks at the progress
_UNKNOWN = "ETA -:--:--"
_WINDOW = 30.0  # seconds over which the speed is taken


class Log:
    """One JSON object per line and record, in order of the steps, without a trace of when or how often it was begun."""

    def __init__(self, path: Path, resume_from_step: int | None = None) -> None:
        """Go on after `resume_from_step`, without the lines after it; None begins anew."""
        self._path = path
        with _writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
            self._file.truncate(_length_until(path.read_bytes(), resume_from_step))

    def record(self, step: int, terms: Terms) -> None:
        """Append one line; it is with the system, safe from a kill, when this returns."""
        values = {name: _number(value) for name, value in terms.items()}
        line = json.dumps({"step": step} | values).encode() + b"\n"
        with _writing(self._path):
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Bring every line to the disk, before a checkpoint that counts on them."""
        with _writing(self._path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The records of a log; a last line that was cut short is left out."""
    if not path.exists():
        raise UserError(f"there is no log {path}; train first or correct the path")
    lines = path.read_bytes().splitlines(keepends=True)
    records = [_record(line) for line in lines]
    for number, record in enumerate(records[:-1], start=1):
        if record is None:
            raise UserError(f"line {number} of {path} is damaged; delete that line, or train again in another folder")
    return [record for record in records if record is not None]


def _length_until(content: bytes, step: int | None) -> int:
    """The bytes of the whole lines up to and including `step`."""
    length = 0
    for line in content.splitlines(keepends=True):
        record = _record(line)
        if step is None or record is None or record["step"] > step:
            break
        length += len(line)
    return length


def _record(line: bytes) -> dict[str, Any] | None:
    """The record of a whole line, None for a torn one."""
    try:
        record = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return record if isinstance(record, dict) and isinstance(record.get("step"), int) else None


class TensorBoard:
    """Event files for TensorBoard; steps after the one resumed from are taken back and written again."""

    def __init__(self, folder: Path, resume_from_step: int | None = None) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise UserError("TensorBoard is not installed; get it with: pip install tensorboard") from error
        self._folder = folder
        purge = 0 if resume_from_step is None else resume_from_step + 1
        with _writing(folder):
            self._writer = SummaryWriter(str(folder), purge_step=purge)

    def record(self, step: int, terms: Terms) -> None:
        with _writing(self._folder):
            for name, value in terms.items():
                self._writer.add_scalar(name, _number(value), step)

    def sync(self) -> None:
        with _writing(self._folder):
            self._writer.flush()

    def close(self) -> None:
        with _writing(self._folder):
            self._writer.close()


def _number(value: SupportsFloat) -> float:
    return float(value.item() if hasattr(value, "item") else value)  # float() of a tensor with a gradient warns


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say in a sentence why something cannot be written."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; free it or choose another place") from error


class Progress:
    """How far training is, on stderr: a bar on a terminal, a plain line now and then elsewhere, nothing when quiet."""

    def __init__(self, total: int, start: int = 0, description: str = "training", quiet: bool = False) -> None:
        self._total, self._start, self._description = total, start, description
        self._console = Console(stderr=True)
        self._quiet = quiet or sys.stderr is None
        self._bar: bars.Progress | None = None
        if not self._quiet and sys.stderr.isatty() and self._console.is_interactive:
            self._bar = _bar(self._console)
            self._bar.add_task(description, total=total, completed=start, pace=_UNKNOWN, terms="")
        self._every = float("inf") if self._quiet else _EVERY["bar" if self._bar else "lines"]

    def __enter__(self) -> Self:
        self._begun = perf_counter()
        self._due = self._begun + self._every
        self._latest: tuple[int, Terms] = self._start, {}
        self._samples = deque([(self._begun, self._start)], maxlen=max(2, round(_WINDOW / self._every)))
        if self._bar:
            self._bar.start()
        return self

    def update(self, step: int, terms: Terms) -> None:
        """Tell where training is; shown only when it is time, so that every step may call this."""
        self._latest = step, terms
        now = perf_counter()
        if now < self._due:
            return
        self._due = now + self._every
        self._samples.append((now, step))
        self._show(_pace(self._samples, self._total))

    def __exit__(self, *problem: object) -> None:
        """Show where it ended, and how fast it was from the beginning."""
        seconds = perf_counter() - self._begun
        speed = (self._latest[0] - self._start) / max(seconds, 1e-9)  # a finished run takes no time
        if not self._quiet:
            self._show(f"{speed:.1f} steps/s  took {_clock(seconds)}")
        if self._bar:
            with suppress(OSError):
                self._bar.stop()

    def _show(self, pace: str) -> None:
        step, terms = self._latest
        values = "  ".join(f"{name} {_number(value):.4g}" for name, value in terms.items())
        with suppress(OSError):  # a terminal that was closed is no reason to stop training
            if self._bar:
                self._bar.update(bars.TaskID(0), completed=step, pace=pace, terms=values, refresh=True)
            else:
                percent = f"{step / max(1, self._total):.0%}"
                line = "  ".join([self._description, f"{step}/{self._total}", percent, pace, values])
                print(line.rstrip(), file=sys.stderr, flush=True)


def _pace(samples: deque[tuple[float, int]], total: int) -> str:
    """Steps per second between the first and the last (time, step), and the time left at that speed."""
    (then, before), (now, step) = samples[0], samples[-1]
    if step <= before:
        return _UNKNOWN
    speed = (step - before) / (now - then)
    return f"{speed:.1f} steps/s  ETA {_clock((total - step) / speed)}"


def _clock(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


class _Terms(bars.ProgressColumn):
    """The loss terms: all the room that is left, and the one column that is cut short when there is too little."""

    def render(self, task: bars.Task) -> Text:
        return Text(task.fields["terms"], no_wrap=True, overflow="ellipsis")


def _bar(console: Console) -> bars.Progress:
    """A bar that is drawn only when it is told to: no thread, and what is piped out of stdout stays there."""
    text = partial(bars.TextColumn, markup=False)
    bar = bars.BarColumn(max(6, console.width // 6))
    columns = text("{task.description}"), bar, bars.TaskProgressColumn(), text("{task.fields[pace]}")
    redirect = bool(sys.stdout and sys.stdout.isatty())
    terms = _Terms(Column(ratio=1))
    return bars.Progress(*columns, terms, console=console, expand=True, auto_refresh=False, redirect_stdout=redirect)


class Tracker(ExitStack):
    """All of the above for one run folder: `record` what is kept, `show` what is only looked at."""

    def __init__(
        self,
        folder: RunFolder,
        total_steps: int,
        resume_step: int | None = None,
        quiet: bool = False,
        tensorboard: bool = False,
    ) -> None:
        super().__init__()
        boards = [TensorBoard(folder.tensorboard, resume_step)] if tensorboard else []
        self._records: list[Log | TensorBoard] = [Log(folder.log_file, resume_step), *boards]
        self._progress = Progress(total_steps, resume_step or 0, quiet=quiet)

    def __enter__(self) -> Self:
        for record in self._records:
            self.callback(record.close)
        self.enter_context(self._progress)
        return self

    def record(self, step: int, terms: Terms) -> None:
        for record in self._records:
            record.record(step, terms)

    def show(self, step: int, terms: Terms) -> None:
        self._progress.update(step, terms)

    def sync(self) -> None:
        """Bring every record to the disk: call it before a checkpoint is saved."""
        for record in self._records:
            record.sync()
