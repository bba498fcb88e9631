"""Download official files: downloads resume after an interruption, and files are checked before they are renamed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lddr.data.archives import unpack
from lddr.errors import UserError
from lddr.files import alone

# requests, rich and filelock are imported where they are used: every reader of official files imports `Remote`
# from here, and `lddr --help` must not wait for them.
if TYPE_CHECKING:
    from rich.console import Console

    from lddr.data.transfer import Bar

_PAUSES = (1.0, 2.0, 4.0, 8.0)  # seconds before each new attempt


@dataclass(frozen=True)
class Remote:
    """A file on the web, at addresses that are tried in order, and its path below the data folder.

    With `members`, the file is a tar archive whose `members` folder is unpacked into the folder `path`.
    """

    path: str
    url: str
    checksum: str  # "sha256:…" or "md5:…"
    size: int | None = None  # bytes, where published
    members: str | None = None
    others: tuple[str, ...] = ()  # further addresses
    may_differ: bool = False  # its owners have replaced the file since, and the new checksum is unknown

    @property
    def required(self) -> str | None:
        """Return the checksum that a file must have."""
        return None if self.may_differ else self.checksum

    def addresses(self, mirror: str | None = None) -> tuple[str, ...]:
        """Return the addresses to download from: a mirror replaces everything before the file's own name."""
        return (self.url, *self.others) if mirror is None else (f"{mirror.rstrip('/')}/{self._name}",)

    def file(self, folder: Path) -> Path:
        """Return the path of the downloaded file; an archive is stored next to the folder it is unpacked into."""
        final = folder / self.path
        return final if self.members is None else final.with_name(self._name)

    def is_there(self, folder: Path) -> bool:
        """Return whether the file exists: only complete files get their final name, so checking that is enough."""
        final = folder / self.path
        return final.is_file() if self.members is None else final.is_dir() and any(final.iterdir())

    @property
    def _name(self) -> str:
        return PurePosixPath(urlsplit(self.url).path).name


def bytes_left(remotes: Iterable[Remote], folder: Path, mirror: str | None = None) -> int | None:
    """Return the bytes still to download; None if a size is neither published nor reported by a server."""
    sizes = [_bytes_left(remote, folder, mirror) for remote in remotes]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def fetch(
    remotes: Iterable[Remote],
    folder: Path,
    mirror: str | None = None,
    console: "Console | None" = None,
    pauses: Sequence[float] = _PAUSES,
) -> None:
    """Download missing files, resume partial ones, and unpack the archives.

    An archive is removed once it is unpacked: from then on there is no checksum to compare with, and only the
    dataset's reader can check the structure of the content.
    """
    from lddr.data.transfer import Bar, bars

    with bars(console) as progress:
        for remote in remotes:
            if not remote.is_there(folder):
                _fetch_one(remote, folder, mirror, Bar(progress, remote.file(folder).name), pauses)


def is_right(remote: Remote, folder: Path, console: "Console | None" = None) -> bool | None:
    """Return whether an existing file has its published checksum; None if that cannot be checked."""
    from lddr.data.transfer import Bar, bars, digest

    if remote.members is not None or not remote.is_there(folder):
        return None
    with bars(console) as progress:
        path = folder / remote.path
        has_checksum = digest(path, remote.checksum, Bar(progress, path.name)) == remote.checksum
    return has_checksum or (None if remote.may_differ else False)


def _bytes_left(remote: Remote, folder: Path, mirror: str | None) -> int | None:
    from lddr.data.transfer import length, part_of, size_offered

    file = remote.file(folder)
    if file.exists():  # an archive that only needs unpacking
        return 0
    sizes = map(size_offered, remote.addresses(mirror))
    size = next((size for size in sizes if size is not None), None) if remote.size is None else remote.size
    return None if size is None else max(0, size - length(part_of(file)))


def _fetch_one(remote: Remote, folder: Path, mirror: str | None, bar: "Bar", pauses: Sequence[float]) -> None:
    file = remote.file(folder)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with alone(file, bar.say):
            if not remote.is_there(folder):  # another process may have downloaded it while we waited
                _obtain(remote, file, mirror, bar, pauses)
                _unpack(remote, file, folder, bar)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}; free it or choose another place") from error
    bar.finish()


def _obtain(remote: Remote, file: Path, mirror: str | None, bar: "Bar", pauses: Sequence[float]) -> None:
    """Put the checked file in its place; an archive may already exist, placed manually or only partly unpacked."""
    from lddr.data.transfer import digest

    if not file.exists():
        _receive(remote, file, mirror, bar, pauses)
    elif (found := digest(file, remote.checksum, bar)) != remote.checksum and remote.required:
        raise UserError(f"{file} is broken (expected {remote.checksum}, found {found}); remove it and try again")


def _receive(remote: Remote, file: Path, mirror: str | None, bar: "Bar", pauses: Sequence[float]) -> None:
    """Download from the first address that has the file; if none has, report the error of the last one."""
    from lddr.data.transfer import Transfer

    *others, last = (Transfer(address, file, remote.required, remote.size, bar) for address in remote.addresses(mirror))
    for transfer in others:
        try:
            transfer.run(pauses)
            break
        except UserError as error:
            bar.say(f"not from {transfer.address} ({error.__cause__ or error}); trying the next address")
    else:
        last.run(pauses)


def _unpack(remote: Remote, archive: Path, folder: Path, bar: "Bar") -> None:
    if remote.members is not None:
        with bar.reading(archive, "unpacking") as handle:
            unpack(handle, remote.members, folder / remote.path)
        archive.unlink()
