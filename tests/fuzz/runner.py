"""Damaged files one after the other in a child process, whose death is seen."""

import contextlib
import faulthandler
import io
import os
import resource
import shutil
import signal
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from lddr.errors import UserError
from tests.fuzz.mutations import mutated

Files = dict[str, bytes]  # path below the folder → content

SECONDS, MEMORY = 10, 1 << 30  # of computing, and bytes beyond those before, that a case may take
TEXT = (".json", ".jsonl", ".toml", ".csv", ".txt")
READ, REFUSED, BAD = b"r", b"s", b"b"


@dataclass(frozen=True)
class Reader:
    """Somebody who reads untrusted bytes: valid files, and what reads them from their folder."""

    name: str
    files: Callable[[], Files]
    read: Callable[[Path], object]
    damage: Callable[[str, bytes, Random], bytes] | None = None  # of its own, half of the time


@dataclass
class Outcome:
    """How many cases were read and refused, and the numbers of those that ended otherwise."""

    reader: str
    read: int = 0
    refused: int = 0
    bad: dict[int, str] = field(default_factory=dict)  # case → what happened

    @property
    def cases(self) -> int:
        return self.read + self.refused + len(self.bad)


def run(reader: Reader, cases: int, seed: int = 0, failures: Path | None = None) -> Outcome:
    """Try this many cases; those that fail are written into a folder each."""
    outcome, files = Outcome(reader.name), reader.files()
    while outcome.cases < cases:
        for number, told, what in _in_child(reader, files, outcome.cases, cases, seed):
            if told == READ:
                outcome.read += 1
            elif told == REFUSED:
                outcome.refused += 1
            else:
                outcome.bad[number] = what
                if failures is not None:
                    folder = failures / f"{reader.name}-{number}"
                    shutil.rmtree(folder, ignore_errors=True)
                    write_case(reader, files, number, seed, folder)
                    folder.with_suffix(".txt").write_text(what, errors="replace")
    return outcome


def write_case(reader: Reader, files: Files, number: int, seed: int, folder: Path) -> None:
    """The files of one case: one of them damaged, or replaced by what is no file."""
    random = Random(f"{reader.name} {seed} {number}")
    victim = random.choice(sorted(files))
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name == victim:
            _put_damaged(reader, path, content, random)
        else:
            path.write_bytes(content)


def _put_damaged(reader: Reader, path: Path, content: bytes, random: Random) -> None:
    if random.random() < 0.02:
        random.choice([Path.mkdir, _link_nowhere, _link_to_itself, _leave_out])(path)
    elif reader.damage is not None and random.random() < 0.5:
        path.write_bytes(reader.damage(path.name, content, random))
    else:
        path.write_bytes(mutated(content, random, path.suffix in TEXT))


def _link_nowhere(path: Path) -> None:
    path.symlink_to("nowhere")


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def _leave_out(path: Path) -> None:
    """Nothing is there."""


def _in_child(reader: Reader, files: Files, first: int, last: int, seed: int) -> list[tuple[int, bytes, str]]:
    """What came of the cases up to the last, or up to the one that killed the child."""
    source, sink = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks while threads run, which do nothing here
        child = os.fork()
    if child == 0:
        os.close(source)
        try:
            _try_all(reader, files, first, last, seed, sink)
        except BaseException:  # a mistake of ours
            traceback.print_exc()
        os._exit(0)
    os.close(sink)
    with os.fdopen(source, "rb") as told:
        lines = told.read().splitlines()
    status = os.waitpid(child, 0)[1]
    found = [(first + place, line[:1], bytes.fromhex(line[1:].decode()).decode()) for place, line in enumerate(lines)]
    if first + len(found) < last:
        end = signal.Signals(status).name if os.WIFSIGNALED(status) else f"exit {status}"
        found.append((first + len(found), BAD, f"the process died: {end}"))
    return found


def _try_all(reader: Reader, files: Files, first: int, last: int, seed: int, sink: int) -> None:
    faulthandler.disable()  # the parent sees it
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in range(first, last):
        with TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
            folder = Path(place) / "case"
            folder.mkdir()
            write_case(reader, files, number, seed, folder)
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # ends the process, however busy the machine is
            signal.setitimer(signal.ITIMER_REAL, 6 * SECONDS)  # wherever it waits
            told, what = tried(reader, folder)
            for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
                signal.setitimer(timer, 0)
        os.write(sink, told + what.encode("utf-8", "replace").hex().encode() + b"\n")


def tried(reader: Reader, folder: Path) -> tuple[bytes, str]:
    """Read, refused with one of our sentences, or bad, and what happened."""
    try:
        with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reader.read(folder)
    except UserError as error:
        fault = _fault(error)
        return (BAD, f"{fault}\n{traceback.format_exc()}") if fault else (REFUSED, "")
    except BaseException:
        return BAD, traceback.format_exc()
    return READ, ""


def _fault(error: UserError) -> str | None:
    """What is wrong with a sentence."""
    said, cause = str(error), error.__cause__
    while cause is not None:
        if isinstance(cause, MemoryError) or "allocate memory" in str(cause):
            return "it was refused only when the memory was gone"
        cause = cause.__cause__
    if not said or "\n" in said or len(said) > 10_000:
        return f"no sentence: {said[:200]!r}"
    return None
