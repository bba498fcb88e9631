"""Files: reading untrusted ones, writing atomically, and a lock for one writer at a time.

Any exception that a library raises on untrusted bytes becomes a UserError, and reading always ends.
Writing atomically means writing a temporary file, flushing it to disk and renaming it.
"""

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from errno import EACCES, EDQUOT, EEXIST, EISDIR, ENOSPC, ENOTDIR, EPERM, EROFS
from pathlib import Path
from tempfile import TemporaryFile

from lddr.errors import UserError

CURE = "fix or replace that file"
LONGEST = 300  # characters of a message from a file or a library
_CANNOT_WRITE = {ENOSPC, EDQUOT, EROFS, EACCES, EPERM, ENOTDIR, EISDIR, EEXIST}


def damaged(path: Path | str, expected: object, found: object, cure: str = CURE) -> UserError:
    """Return the error for a file with unexpected content."""
    return UserError(f"{path}: expected {expected}, found {in_one_line(str(found))}; {cure}")


@contextmanager
def named(path: Path | str) -> Iterator[None]:
    """Add the file's name to the message of any UserError raised while reading it."""
    try:
        yield
    except UserError as error:
        if str(path) in str(error):
            raise
        raise UserError(f"{path}: {error}") from error


@contextmanager
def reading_untrusted(path: Path | str, what: str, cure: str = CURE) -> Iterator[None]:
    """Wrap the reading of a file, and nothing else: any exception is attributed to the file's content."""
    try:
        with named(path):
            _check_is_plain(Path(path))
            yield
    except UserError:
        raise
    except FileNotFoundError as error:
        raise UserError(f"there is no file {path}; put it there or correct the path") from error
    except Exception as error:  # libraries may raise anything on untrusted bytes
        raise damaged(path, what, f"a broken one ({reason_of(error)})", cure) from error


def reason_of(error: Exception) -> str:
    """Return the error in one short line, without the path that the system repeats."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return in_one_line(words) or type(error).__name__


def in_one_line(words: str) -> str:
    """Shorten a message from a file or a library to fit into a sentence."""
    return " ".join(words.split())[:LONGEST]


def content_of(path: Path, most: int) -> bytes:
    """Return the content of a regular file of at most `most` bytes."""
    _check_is_plain(path)
    if path.stat().st_size > most:
        raise ValueError(f"more than {most:,} bytes")
    return path.read_bytes()


def _check_is_plain(path: Path) -> None:
    """Refuse pipes and devices, because reading them may never end."""
    if not path.is_file() and (path.exists() or path.is_symlink()):
        raise ValueError("no plain file")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Wrap whatever writes to a path: any error of the system becomes a UserError with the reason."""
    try:
        yield
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}; free it or choose another place") from error


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to; it is renamed to `path` if the block succeeds, and removed otherwise."""
    draft = path.with_name(f".{path.stem}-{secrets.token_hex(4)}{path.suffix}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield draft
        _flush(draft)
        draft.replace(path)
        _flush(path.parent)
    except BaseException as error:
        with suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:  # others may come from what the block reads
            raise UserError(f"cannot write {path}: {error.strerror}; free it or choose another place") from error
        raise


def check_writable(folder: Path) -> None:
    """Refuse a folder that is not writable, before any work is done for it."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}; free it or choose another place") from error


def check_space(folder: Path, needed: int, what: str) -> None:
    """Refuse to write more bytes than there is room for in a folder, before anything is written."""
    from rich.filesize import decimal

    free = shutil.disk_usage(folder).free
    if free < needed:
        raise UserError(f"{what} needs {decimal(needed)} in {folder}, where {decimal(free)} are free; make room there")


def write_json(path: Path, content: object) -> None:
    """Write plain values as JSON, atomically."""
    with written_whole(path) as draft:
        draft.write_text(json.dumps(content, indent=1) + "\n")


class BusyError(Exception):
    """Another process holds the lock."""


@contextmanager
def alone(path: Path, say: Callable[[str], None] | None = None, wait: bool = True) -> Iterator[None]:
    """Hold the lock for making `path`, waiting for another process as long as necessary; a dead process holds none.

    Without `wait`, raise BusyError if another process holds it.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f".{path.name}.lock"))
    with writing(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            if not wait:
                raise BusyError(f"another process is making {path.name}") from None
            if say is not None:
                say(f"another process is making {path.name}: waiting for it")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _flush(path: Path) -> None:
    if os.name == "nt" and path.is_dir():  # Windows cannot open a folder to flush it
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
