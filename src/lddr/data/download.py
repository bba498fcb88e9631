"""Fetch official files: resumed when interrupted, checked before they get their name."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from lddr.data.archives import unpack
from lddr.errors import UserError
from lddr.files import alone

# What needs requests, rich or filelock is imported where it is used: every reader of official files takes `Remote`
# from here, and `lddr --help` must not wait for them.
if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from lddr.data.transfer import Bar

_PAUSES = (1.0, 2.0, 4.0, 8.0)  # seconds before each new attempt


@dataclass(frozen=True)
class Remote:
    """A file on the web, at addresses that are tried in order, and where it belongs below the data folder.

    When `members` is given the file is a tar archive: its `members` folder is unpacked into the folder `path`.
    """

    path: str
    url: str
    checksum: str  # "sha256:…" or "md5:…"
    size: int | None = None  # bytes, where published
    members: str | None = None
    others: tuple[str, ...] = ()  # further addresses
    may_differ: bool = False  # its owners have replaced the file since, and another checksum is not known

    @property
    def required(self) -> str | None:
        """The checksum that a file must have."""
        return None if self.may_differ else self.checksum

    def addresses(self, mirror: str | None = None) -> tuple[str, ...]:
        """Where to fetch it: a mirror replaces everything before the file's own name."""
        return (self.url, *self.others) if mirror is None else (f"{mirror.rstrip('/')}/{self._name}",)

    def file(self, folder: Path) -> Path:
        """Where the downloaded file belongs: an archive lies beside the folder it is unpacked into."""
        final = folder / self.path
        return final if self.members is None else final.with_name(self._name)

    def is_there(self, folder: Path) -> bool:
        """Whether it is there: nothing gets its final name before it is complete, so a look at the name is enough."""
        final = folder / self.path
        return final.is_file() if self.members is None else final.is_dir() and any(final.iterdir())

    @property
    def _name(self) -> str:
        return PurePosixPath(urlsplit(self.url).path).name


@dataclass(frozen=True)
class Downloads:
    """What a download would do."""

    present: tuple[Remote, ...]
    partial: tuple[Remote, ...]  # to be continued
    absent: tuple[Remote, ...]
    size: int | None  # bytes still to fetch; None when a server does not say


class FileState(Enum):
    """What `verify` can find."""

    OK = "ok"
    WRONG = "wrong checksum"
    MISSING = "missing"
    UNCHECKED = "unchecked"  # no checksum of it is known, or it was unpacked and the archive is gone


@dataclass(frozen=True)
class Verdict:
    """The state of the file (or unpacked folder) at `path`, with the checksum found where there was one to find."""

    remote: Remote
    path: Path
    state: FileState
    found: str | None = None


def plan(remotes: Iterable[Remote], folder: Path, mirror: str | None = None) -> Downloads:
    """Which files are there, which are begun, and how much is still to fetch (servers are asked where unpublished)."""
    from lddr.data.transfer import length, part_of

    distinct = list(dict.fromkeys(remotes))
    present = tuple(remote for remote in distinct if remote.is_there(folder))
    wanted = [remote for remote in distinct if remote not in present]
    begun = {remote: length(remote.file(folder)) + length(part_of(remote.file(folder))) for remote in wanted}
    partial = tuple(remote for remote in wanted if begun[remote])
    absent = tuple(remote for remote in wanted if not begun[remote])
    return Downloads(present, partial, absent, _sum([_bytes_left(remote, folder, mirror) for remote in wanted]))


def fetch(
    remotes: Iterable[Remote],
    folder: Path,
    mirror: str | None = None,
    console: "Console | None" = None,
    pauses: Sequence[float] = _PAUSES,
) -> None:
    """Download what is not there yet, continuing what was begun, and unpack the archives.

    An archive is removed once it is unpacked: from then on `verify` has no checksum to compare with, and only the
    reader of the dataset can tell whether the structure of its content is right.
    """
    from lddr.data.transfer import Bar, bars

    with bars(console) as progress:
        for remote in remotes:
            if not remote.is_there(folder):
                _fetch_one(remote, folder, mirror, Bar(progress, remote.file(folder).name), pauses)


def verify(remotes: Iterable[Remote], folder: Path, console: "Console | None" = None) -> list[Verdict]:
    """Compare the files that are there with their checksums."""
    from lddr.data.transfer import bars

    with bars(console) as progress:
        return [_verdict(remote, folder, progress) for remote in dict.fromkeys(remotes)]


def human_size(size: float) -> str:
    """28024106 → "28 MB"."""
    units = iter(("B", "kB", "MB", "GB", "TB"))
    unit = next(units)
    while size >= 999.5 and unit != "TB":
        size, unit = size / 1000, next(units)
    return f"{size:.2g} {unit}" if size < 9.95 else f"{size:.0f} {unit}"


def _bytes_left(remote: Remote, folder: Path, mirror: str | None) -> int | None:
    from lddr.data.transfer import length, part_of, size_offered

    file = remote.file(folder)
    if file.exists():  # an archive that only needs unpacking
        return 0
    sizes = map(size_offered, remote.addresses(mirror))
    size = next((size for size in sizes if size is not None), None) if remote.size is None else remote.size
    return None if size is None else max(0, size - length(part_of(file)))


def _sum(sizes: Sequence[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) else None


def _fetch_one(remote: Remote, folder: Path, mirror: str | None, bar: "Bar", pauses: Sequence[float]) -> None:
    file = remote.file(folder)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with alone(file, bar.say):
            if not remote.is_there(folder):  # it may have come while we waited
                _obtain(remote, file, mirror, bar, pauses)
                _unpack(remote, file, folder, bar)
    except OSError as error:
        raise UserError(f"cannot write {file}: {error.strerror or error}; free it or choose another place") from error
    bar.finish()


def _obtain(remote: Remote, file: Path, mirror: str | None, bar: "Bar", pauses: Sequence[float]) -> None:
    """Have the checked file in its place; an archive may lie there already, put by hand or not unpacked to the end."""
    from lddr.data.transfer import digest

    if not file.exists():
        _receive(remote, file, mirror, bar, pauses)
    elif (found := digest(file, remote.checksum, bar)) != remote.checksum and remote.required:
        raise UserError(f"{file} is broken (expected {remote.checksum}, found {found}); remove it and try again")


def _receive(remote: Remote, file: Path, mirror: str | None, bar: "Bar", pauses: Sequence[float]) -> None:
    """From the first address that has it; where none has, what is wrong with the last one is said."""
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


def _verdict(remote: Remote, folder: Path, progress: "Progress") -> Verdict:
    from lddr.data.transfer import Bar, digest

    path = folder / remote.path
    if not remote.is_there(folder):
        return Verdict(remote, path, FileState.MISSING)
    if remote.members is not None:
        return Verdict(remote, path, FileState.UNCHECKED)
    found = digest(path, remote.checksum, Bar(progress, path.name))
    differs = FileState.UNCHECKED if remote.may_differ else FileState.WRONG
    return Verdict(remote, path, FileState.OK if found == remote.checksum else differs, found)
