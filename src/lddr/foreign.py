"""Untrusted bytes: any exception that a library raises on them becomes a UserError, and reading always ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lddr.errors import UserError

CURE = "mend or replace that file"
LONGEST = 300  # characters of a message from a file or a library


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
def foreign(path: Path | str, what: str, cure: str = CURE) -> Iterator[None]:
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
