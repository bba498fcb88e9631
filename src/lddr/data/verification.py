"""Are the files of an official dataset what they should be?"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lddr.data.download import is_right
from lddr.data.locations import data_folders, download_folder
from lddr.data.official.base import Official
from lddr.errors import UserError


@dataclass(frozen=True)
class Finding:
    """What was found out about a file or folder of a dataset."""

    dataset: str
    path: Path
    is_right: bool
    words: str


def findings(kind: type[Official]) -> Iterator[Finding]:
    """The published checksums; whether it opens, which checks every length and shape; where possible, its images."""
    checked = list(_checksums(kind))
    yield from checked
    if not kind.found():
        yield Finding(kind.name, download_folder() / kind.remotes[0].path, False, kind.not_found())
        return
    where = kind.found()[0].parent
    try:
        dataset = kind()
        closer = dataset.look_closer()
    except UserError as error:
        yield Finding(kind.name, where, False, str(error))
        return
    only = "" if checked else "; no checksum is known for it: that its length is right is all that could be checked"
    yield Finding(kind.name, where, True, f"opens: {dataset.space.size} images{only}")
    if closer:
        yield Finding(kind.name, where, *closer)


def _checksums(kind: type[Official]) -> Iterator[Finding]:
    for remote in kind.remotes:
        folder = next((folder for folder in data_folders() if remote.is_there(folder)), download_folder())
        known = is_right(remote, folder)
        if known is not None:
            yield Finding(kind.name, folder / remote.path, known, "checksum" if known else "wrong checksum")
