"""Fetch official files: resumed when interrupted, checked before they get their name."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Remote:
    """A file on the web and where it belongs below the data folder.

    When `members` is given the file is a tar archive: its `members` folder is unpacked into the folder `path`.
    """

    path: str
    url: str
    checksum: str  # "sha256:…" or "md5:…"
    size: int | None = None  # bytes, where published
    members: str | None = None
