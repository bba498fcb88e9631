"""Unpack tar archives: all or nothing, and nothing outside the folder."""

import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO

from lddr.errors import UserError
from lddr.files import reading_untrusted, written_whole


def unpack(archive: BinaryIO, members: str, folder: Path) -> None:
    """Put the plain files below the archive's folder `members` into `folder`, which appears with all of them at once.

    One path that leads out, wherever it is, or one link among the files, and nothing is unpacked. Links elsewhere in
    the archive are passed over like everything else there. Owners and permissions are not taken over.
    """
    cure = f"remove it and fetch it again, or put the files below {members} by hand into {folder}"
    with reading_untrusted(getattr(archive, "name", "the archive"), "a whole tar archive", cure):
        with tarfile.open(fileobj=archive) as tar:
            wanted = _wanted(tar, PurePosixPath(members), folder)
            with _appearing_whole(folder) as staging:
                _check_space(staging, sum(member.size for member in wanted.values()))
                for name, member in wanted.items():
                    _write(tar, member, staging / name)


def _wanted(tar: tarfile.TarFile, members: PurePosixPath, folder: Path) -> dict[PurePosixPath, tarfile.TarInfo]:
    """The plain files below `members` by their path from there, after a look at every member of the archive."""
    wanted = {}
    for member in tar:
        path = PurePosixPath(member.name)
        below = members in path.parents
        if _leads_out(member.name) or (below and not (member.isreg() or member.isdir())):
            raise UserError(
                f"the archive was not unpacked because it holds {member.name!r}, a link, a device or a way out of its "
                f"folder; look into it and put the files below {members} by hand into {folder}"
            )
        if below and member.isreg():
            wanted[path.relative_to(members)] = member
    if not wanted:
        raise UserError(f"the archive holds no files below {members}; put the files by hand into {folder}")
    return wanted


def _check_space(folder: Path, needed: int) -> None:
    """Refuse an archive that would fill the disk, which may be a few damaged or hostile bytes."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        where = f"in {folder.parent}, where {free / 1e6:.0f} MB are free"
        raise UserError(f"unpacking the archive needs {needed / 1e6:.0f} MB {where}; make room there")


def _leads_out(name: str) -> bool:
    """Whether a path leaves the folder on any operating system."""
    path = PureWindowsPath(name)  # takes both kinds of slashes
    return bool(path.anchor) or ".." in path.parts


@contextmanager
def _appearing_whole(folder: Path) -> Iterator[Path]:
    """Give a folder to fill that becomes `folder` when the block ends well and vanishes when it does not."""
    staging = folder.with_name(f"{folder.name}.unpacking")
    shutil.rmtree(staging, ignore_errors=True)  # left by a process that was killed
    try:
        staging.mkdir(parents=True)
        yield staging
        staging.replace(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = tar.extractfile(member)
    assert content is not None, "a regular file has content"
    with written_whole(path) as draft, content, draft.open("wb") as handle:
        shutil.copyfileobj(content, handle)
