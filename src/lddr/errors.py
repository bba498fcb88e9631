"""The one exception for mistakes a user can mend, and the hint that mends a misspelt name."""

from collections.abc import Iterable
from difflib import get_close_matches


class UserError(Exception):
    """A mistake the user can mend: its text is one sentence that says what to do."""


def hint(name: str, known: Iterable[str]) -> str:
    """A question after the known name nearest to this one, with a space behind it; nothing when none is near."""
    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]!r}? " if close else ""


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence about a name nobody knows, with the nearest one that is known."""
    return f"unknown {kind} {name!r}; " + (hint(name, known).rstrip() or f"there are: {', '.join(sorted(known))}")
