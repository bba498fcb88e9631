"""The one exception for user errors, and suggestions for misspelt names."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """An error that the user can fix: its message is one sentence that says how."""


def hint(name: str, known: Iterable[str]) -> str:
    """Suggest the known name nearest to this one, as a question with a trailing space; empty if none is similar."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}? " if close else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the error message for an unknown name, with the nearest known one."""
    return f"unknown {kind} {name!r}; " + (hint(name, known).rstrip() or f"there are: {', '.join(sorted(known))}")
