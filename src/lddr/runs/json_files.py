"""The JSON files of a run folder, which may hold anything."""

import json
from pathlib import Path
from typing import Any

from lddr.errors import UserError
from lddr.files import content_of, reason_of

Content = dict[str, Any]  # of a JSON file

LARGEST = 64 << 20  # bytes of a JSON file
ENDLESS = 1e300  # no score is like that
KINDS = {"settings": dict, "reason": str, "warning": str, "factors_left_out": dict}  # in the entry of a metric


class BrokenRunError(UserError):
    """A file of a run cannot be used; `reason` says why, without the folder and what to do."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path} is damaged: {reason}; move that folder away and train again")
        self.reason = f"{path.name} {reason}"


def read_object(path: Path, needed: str) -> Content:
    """The object of a file, which has an object under this name."""
    if not path.is_file():
        raise BrokenRunError(path, "is no file")
    try:
        content = json.loads(content_of(path, LARGEST))
    except Exception as error:  # untrusted bytes
        raise BrokenRunError(path, f"is no JSON ({reason_of(error)})") from error
    if not isinstance(content, dict) or not isinstance(content.get(needed), dict):
        raise BrokenRunError(path, f"holds no {needed!r}")
    return content


def is_entry(entry: Any) -> bool:
    """Whether this is the score of a metric, or the reason why it has none, as they can be shown."""
    if not isinstance(entry, dict):
        return False
    if any(type(entry[name]) is not kind for name, kind in KINDS.items() if name in entry):
        return False
    score = entry.get("score")
    return score is None or (type(score) in (int, float) and abs(score) < ENDLESS)
