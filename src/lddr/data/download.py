"""Download official files: downloads resume after an interruption, and files are checked before they are renamed.

It uses requests, because pooch cannot resume a partial file.
"""

import hashlib
import os
import re
import shutil
import tarfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import requests
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn
from urllib3.exceptions import HTTPError

from lddr.console import text_column
from lddr.data.official import Remote
from lddr.errors import UserError
from lddr.files import alone, check_space, reading_untrusted, written_whole

PAUSES = (1.0, 2.0, 4.0, 8.0)  # seconds before each new attempt
TIMEOUT = (10, 60)  # seconds: to connect, and between two bytes
_PIECE = 1 << 16  # bytes: the most that a dropped connection may lose
_AS_STORED = {"Accept-Encoding": "identity"}  # sizes, ranges and checksums refer to the file as it is stored


def bytes_left(remotes: Iterable[Remote], folder: Path, mirror: str | None = None) -> int | None:
    """Return the bytes still to download; None if a size is neither published nor reported by a server."""
    total = 0
    for remote in remotes:
        file = remote.file(folder)
        if file.exists():  # an archive that only needs unpacking
            continue
        size = remote.size or next(filter(None, map(_size_offered, remote.addresses(mirror))), None)
        if size is None:
            return None
        total += max(0, size - _length(_part_of(file)))
    return total


def _size_offered(address: str) -> int | None:
    try:
        response = requests.head(address, headers=_AS_STORED, timeout=TIMEOUT, allow_redirects=True)
    except requests.RequestException:  # the download itself will report the error
        return None
    return _content_length(response.headers) if response.ok else None


def fetch(
    remotes: Iterable[Remote],
    folder: Path,
    mirror: str | None = None,
    console: Console | None = None,
    pauses: Sequence[float] = PAUSES,
) -> None:
    """Download missing files, resume partial ones, and unpack the archives.

    An archive is removed once it is unpacked: from then on there is no checksum to compare with, and only the
    dataset's reader can check the structure of the content.
    """
    with _progress(console) as progress:
        for remote in remotes:
            if remote.is_there(folder):
                continue
            file = remote.file(folder)
            bar = Bar(progress, file.name)
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                with alone(file, bar.say):
                    if not remote.is_there(folder):  # another process may have downloaded it while we waited
                        _obtain(remote, file, mirror, bar, pauses)
                        if remote.members is not None:
                            with bar.reading(file, "unpacking") as archive:
                                unpack(archive, remote.members, folder / remote.path)
                            file.unlink()
            except OSError as error:
                reason = error.strerror or error
                raise UserError(f"cannot write {file}: {reason}; free it or choose another place") from error
            bar.finish()


def _obtain(remote: Remote, file: Path, mirror: str | None, bar: "Bar", pauses: Sequence[float]) -> None:
    """Put the checked file in its place, from the first address that has it; the error of the last one is reported.

    An archive may already exist, placed manually or only partly unpacked.
    """
    if file.exists():
        if (found := _digest(file, remote.checksum, bar)) != remote.checksum and remote.required:
            raise UserError(f"{file} is broken (expected {remote.checksum}, found {found}); remove it and try again")
        return
    *others, last = (Transfer(address, file, remote, bar) for address in remote.addresses(mirror))
    for transfer in others:
        try:
            transfer.run(pauses)
            return
        except UserError as error:
            bar.say(f"not from {transfer.address} ({error.__cause__ or error}); trying the next address")
    last.run(pauses)


def has_checksum(remote: Remote, folder: Path, console: Console | None = None) -> bool | None:
    """Return whether an existing file has its published checksum; None if that cannot be checked."""
    if remote.members is not None or not remote.is_there(folder):
        return None
    with _progress(console) as progress:
        path = folder / remote.path
        is_right = _digest(path, remote.checksum, Bar(progress, path.name)) == remote.checksum
    return is_right or (None if remote.may_differ else False)


def unpack(archive: BinaryIO, members: str, folder: Path) -> None:
    """Put the regular files below the archive's folder `members` into `folder`, which appears with all of them at once.

    Everything else in the archive is ignored, links too; a path that leads out of the folder is refused.
    """
    cure = f"remove it and fetch it again, or put the files below {members} by hand into {folder}"
    staging = folder.with_name(f"{folder.name}.unpacking")
    shutil.rmtree(staging, ignore_errors=True)  # left by a process that was killed
    try:
        with reading_untrusted(getattr(archive, "name", "the archive"), "a whole tar archive", cure):
            with tarfile.open(fileobj=archive) as tar:
                below = PurePosixPath(members)
                wanted = [member for member in tar if member.isreg() and below in PurePosixPath(member.name).parents]
                if not wanted:
                    raise UserError(f"the archive holds no files below {members}; put them by hand into {folder}")
                staging.mkdir(parents=True)
                check_space(staging, sum(member.size for member in wanted), "unpacking the archive")
                tar.extractall(staging, wanted, filter="data")
                (staging / members).replace(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


class Bar:
    """The progress bar of one file."""

    def __init__(self, progress: Progress, name: str) -> None:
        shortened = name if len(name) < 30 else f"{name[:8]}…{name[-20:]}"  # leaves room for the bar in 80 columns
        self._progress, self._task = progress, progress.add_task(shortened, total=None, doing="")

    def start(self, doing: str, done: int = 0, total: int | None = None) -> None:
        self._progress.reset(self._task, completed=done, total=total, doing=doing)

    def advance(self, amount: int) -> None:
        self._progress.advance(self._task, amount)

    def finish(self) -> None:
        self._progress.update(self._task, doing="done")

    def reading(self, path: Path, doing: str) -> BinaryIO:
        """Open the file; the bar follows how much of it is read."""
        self.start(doing)
        return self._progress.open(path, "rb", task_id=self._task)

    def say(self, message: str) -> None:
        self._progress.console.print(message, markup=False, highlight=False)


def _progress(console: Console | None) -> Progress:
    """Return a progress display with name, activity, bytes, speed and time left per file; on stderr by default."""
    name, doing = text_column("{task.description}"), text_column("{task.fields[doing]}")
    numbers = DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    return Progress(name, doing, BarColumn(None), *numbers, console=console or Console(stderr=True), expand=True)


def _part_of(file: Path) -> Path:
    """Return the path of the bytes received so far."""
    return file.with_name(f"{file.name}.part")


def _length(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _digest(path: Path, checksum: str, bar: Bar) -> str:
    """Return the checksum of a file, with the algorithm and in the format of `checksum`."""
    algorithm = checksum.partition(":")[0]
    found = hashlib.new(algorithm, usedforsecurity=False)
    with bar.reading(path, "checking") as handle:
        while piece := handle.read(_PIECE):
            found.update(piece)
    return f"{algorithm}:{found.hexdigest()}"


class _Dropped(Exception):  # noqa: N818 (no error yet: the next attempt may succeed)
    """The server did not send the requested bytes; the message says why."""


class Transfer:
    """A download from `address` to `file`."""

    def __init__(self, address: str, file: Path, remote: Remote, bar: Bar) -> None:
        self.address, self.file, self.checksum, self.size = address, file, remote.required, remote.size
        self.bar, self.part = bar, _part_of(file)
        self.version = self.part.with_name(f"{self.part.name}.version")  # the server's version tag for `part`

    def run(self, pauses: Sequence[float]) -> None:
        """Receive the missing bytes; the file is renamed if its checksum is right, and removed if it is wrong."""
        self._receive_all(pauses)
        if self.checksum and (found := _digest(self.part, self.checksum, self.bar)) != self.checksum:
            self._discard()
            raise UserError(
                f"{self.address} is not the published {self.file.name} (expected {self.checksum}, found {found}); "
                "it was removed: try again, or name another server with --mirror"
            )
        with written_whole(self.file) as draft:
            self.part.replace(draft)
        self._discard()

    def _receive_all(self, pauses: Sequence[float]) -> None:
        """Retry until complete: only received bytes earn new attempts, so a server that never answers costs no wait."""
        furthest, attempts = _length(self.part), iter(pauses[:0])
        while _length(self.part) != self.size:
            try:
                is_sent = self._request(_length(self.part))
                if not is_sent and (not self.checksum or _digest(self.part, self.checksum, self.bar) != self.checksum):
                    self._request(0)  # the server cannot resume, and the existing bytes are wrong
                return
            except _Dropped as reason:
                if _length(self.part) > furthest:
                    furthest, attempts = _length(self.part), iter(pauses)
                pause = next(attempts, None)
                if pause is None:
                    raise UserError(
                        f"cannot fetch {self.address}: {reason}; try again later (received bytes are kept), "
                        f"name another server with --mirror, or put the file by hand at {self.file}"
                    ) from reason
                self.bar.start("waiting", _length(self.part))
                time.sleep(pause)

    def _request(self, done: int) -> bool:
        """Receive the bytes after the first `done`; False if the server answers that there are none."""
        headers = dict(_AS_STORED)
        if done:  # the remaining bytes if the file is unchanged, and all of it otherwise
            headers["Range"] = f"bytes={done}-"
            if version := self.version.read_text("latin-1").strip() if self.version.exists() else "":
                headers["If-Range"] = version
        try:
            with requests.get(self.address, headers=headers, stream=True, timeout=TIMEOUT) as response:
                start = _first_byte(response)
                if done and start not in (0, done):
                    return False
                if not response.ok or start not in (0, done):
                    raise _Dropped(f"the server answers {response.status_code} {response.reason}")
                self._store(response, start)
        except (requests.RequestException, HTTPError) as error:
            raise _Dropped(_innermost_reason(error)) from error
        return True

    def _store(self, response: requests.Response, start: int) -> None:
        rest = _content_length(response.headers)
        total = None if rest is None else start + rest
        if total is not None:  # refuse, before anything is written, what is not the published file or does not fit
            if self.size not in (None, total):
                raise UserError(
                    f"{self.address} has {total} bytes but {self.file.name} was published with {self.size}; "
                    "name another server with --mirror"
                )
            freed = 0 if start else _length(self.part)
            check_space(self.part.parent, total - start - freed, f"{self.file.name} (see $LDDR_DATA)")
        self.bar.start("fetching", start, total)
        with self.part.open("ab" if start else "wb") as handle:
            if not start:  # after the old bytes are gone: a version tag must never be newer than the bytes
                self.version.write_text(_version_tag(response.headers), "latin-1")
            for piece in response.raw.stream(_PIECE, decode_content=False):
                handle.write(piece)
                self.bar.advance(len(piece))
            handle.flush()
            os.fsync(handle.fileno())
        if total is not None and _length(self.part) < total:  # urllib3 before 2 does not check this
            raise _Dropped("the connection was closed too early")

    def _discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.version.unlink(missing_ok=True)


def _content_length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None


def _first_byte(response: requests.Response) -> int:
    """Return the offset of the response's first byte in the file; -1 if it is not the requested range."""
    if response.status_code == requests.codes.requested_range_not_satisfiable:
        return -1
    if response.status_code != requests.codes.partial_content:
        return 0
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(found[1]) if found else -1


def _version_tag(headers: Mapping[str, str]) -> str:
    """Return the server's version tag of the file: a strong ETag, else its date, else an empty string."""
    tag = headers.get("ETag", "W/")
    return headers.get("Last-Modified", "") if tag.startswith("W/") else tag


def _innermost_reason(error: BaseException) -> str:
    """Return the innermost cause: "Connection refused" rather than the connection pool it happened in."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
