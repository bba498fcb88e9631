"""Bytes from elsewhere: whatever a library raises on them becomes one sentence of ours, and nothing is read forever."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lddr.errors import UserError

CURE = "mend or replace that file"
LONGEST = 300  # characters of what a file or a library says


def damaged(path: Path | str, expected: object, found: object, cure: str = CURE) -> UserError:
    """The one sentence about a file that is not what it should be."""
    return UserError(f"{path}: expected {expected}, found {in_one_line(str(found))}; {cure}")


@contextmanager
def named(path: Path | str) -> Iterator[None]:
    """Name the file in whatever sentence is said about what is in it."""
    try:
        yield
    except UserError as error:
        if str(path) in str(error):
            raise
        raise UserError(f"{path}: {error}") from error


@contextmanager
def foreign(path: Path | str, what: str, cure: str = CURE) -> Iterator[None]:
    """Around nothing but the reading of a file: all that goes wrong there is the fault of its bytes."""
    try:
        with named(path):
            _check_is_plain(Path(path))
            yield
    except UserError:
        raise
    except FileNotFoundError as error:
        raise UserError(f"there is no file {path}; put it there or correct the path") from error
    except Exception as error:  # what libraries raise on foreign bytes has no end
        raise damaged(path, what, f"a broken one ({reason_of(error)})", cure) from error


def reason_of(error: Exception) -> str:
    """What went wrong in one short line, without the path the system repeats."""
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return in_one_line(words) or type(error).__name__


def in_one_line(words: str) -> str:
    """What a file or a library says, short enough for a sentence."""
    return " ".join(words.split())[:LONGEST]


def content_of(path: Path, most: int) -> bytes:
    """All bytes of a plain file, which are not more than `most`."""
    _check_is_plain(path)
    if path.stat().st_size > most:
        raise ValueError(f"more than {most:,} bytes")
    return path.read_bytes()


def _check_is_plain(path: Path) -> None:
    """A pipe or a device could be read forever."""
    if not path.is_file() and (path.exists() or path.is_symlink()):
        raise ValueError("no plain file")
