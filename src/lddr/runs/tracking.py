"""What training tells: a log that survives a kill, event files for TensorBoard, and a line that shows how far it is."""

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self, SupportsFloat

from lddr.console import StepProgress
from lddr.errors import UserError, suggesting_extras
from lddr.runs.folder import RunFolder
from lddr.runs.machine import OnLog

Terms = Mapping[str, SupportsFloat]  # name → value: numbers, or tensors that are read only when they are shown


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
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and isinstance(record.get("step"), int) else None


class TensorBoard:
    """Event files for TensorBoard; steps after the one resumed from are taken back and written again."""

    def __init__(self, folder: Path, resume_from_step: int | None = None) -> None:
        with suggesting_extras():
            from torch.utils.tensorboard import SummaryWriter
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


def in_words(terms: Terms) -> str:
    """For the progress line."""
    return "  ".join(f"{name} {_number(value):.4g}" for name, value in terms.items())


def _number(value: SupportsFloat) -> float:
    return float(value.item() if hasattr(value, "item") else value)  # float() of a tensor with a gradient warns


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Say in a sentence why something cannot be written."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; free it or choose another place") from error


class Tracker(ExitStack):
    """All of the above for one run folder: `record` what is kept, `show` what is only looked at."""

    def __init__(
        self,
        folder: RunFolder,
        total_steps: int,
        resume_step: int | None = None,
        quiet: bool = False,
        tensorboard: bool = False,
        hooks: Sequence[OnLog] = (),
    ) -> None:
        super().__init__()
        self._hooks = hooks
        boards = [TensorBoard(folder.tensorboard, resume_step)] if tensorboard else []
        self._records: list[Log | TensorBoard] = [Log(folder.log_file, resume_step), *boards]
        self._progress = StepProgress(total_steps, resume_step or 0, quiet=quiet)

    def __enter__(self) -> Self:
        for record in self._records:
            self.callback(record.close)
        self.enter_context(self._progress)
        return self

    def record(self, step: int, terms: Terms) -> None:
        """Keep a line, then tell the hooks."""
        values = {name: _number(value) for name, value in terms.items()}
        for record in self._records:
            record.record(step, values)
        for hook in self._hooks:
            hook(step, values)

    def show(self, step: int, terms: Terms) -> None:
        self._progress.update(step, lambda: in_words(terms))

    def sync(self) -> None:
        """Bring every record to the disk: call it before a checkpoint is saved."""
        for record in self._records:
            record.sync()
