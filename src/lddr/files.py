"""Atomic files (write a temporary file, flush it to disk, rename it), and a lock for one writer at a time."""

import errno
import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from lddr.errors import UserError

_CANNOT_WRITE = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.EEXIST,
}


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
        if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
            raise UserError(f"cannot write {path}: {error.strerror}; free it or choose another place") from error
        raise


def check_writable(folder: Path) -> None:
    """Refuse a folder that is not writable, before any work is done for it."""
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UserError(f"cannot write to {folder}: {error.strerror}; free it or choose another place") from error


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
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        if not wait:
            raise BusyError(f"another process is making {path.name}") from None
        if say is not None:
            say(f"another process is making {path.name}: waiting for it")
        lock.acquire()
    except OSError as error:
        raise UserError(f"cannot write {path.parent}: {error.strerror}; free it or choose another place") from error
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
