"""Where dataset files live: the user's data folders first, the user's cache last."""

import os
from pathlib import Path

from platformdirs import user_cache_path


def cache_folder() -> Path:
    """The user's cache: downloads go here unless $LDDR_DATA says otherwise, and one-time conversions always."""
    return user_cache_path("lddr", appauthor=False)


def data_folders() -> list[Path]:
    """The folders searched for dataset files, in order: $LDDR_DATA, $DISENTANGLEMENT_LIB_DATA, the user's cache."""
    named = (os.environ.get(name) for name in ("LDDR_DATA", "DISENTANGLEMENT_LIB_DATA"))
    return [Path(folder).expanduser() for folder in named if folder] + [cache_folder()]


def download_folder() -> Path:
    """Where downloads are put: $LDDR_DATA, else the user's cache."""
    folder = os.environ.get("LDDR_DATA")
    return Path(folder).expanduser() if folder else cache_folder()


def find(*names: str) -> Path | None:
    """The first of these files (paths below a data folder, the preferred one first) that exists, or None."""
    for folder in data_folders():
        for name in names:
            if (folder / name).exists():
                return folder / name
    return None
