"""One file over HTTP: continued where it stopped, checked, and only then given its name.

Built on requests, because pooch cannot continue a partial file.
"""

import hashlib
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import requests
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn
from urllib3.exceptions import HTTPError

from lddr.console import text_column
from lddr.errors import UserError
from lddr.files import written_whole

_CHUNK = 1 << 16  # bytes: what a dropped connection may lose
_TIMEOUT = (10, 60)  # seconds: until connected, without a byte
_AS_STORED = {"Accept-Encoding": "identity"}  # sizes, ranges and checksums are those of the file as it is stored


class Bar:
    """The progress bar of one file."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(_shortened(name), total=None, doing="")

    def begin(self, doing: str, done: int = 0, total: int | None = None) -> None:
        """Start (again) with a part already done."""
        self._progress.reset(self._task, completed=done, total=total, doing=doing)

    def advance(self, amount: int) -> None:
        self._progress.advance(self._task, amount)

    def reading(self, path: Path, doing: str) -> BinaryIO:
        """The opened file; the bar follows the reading."""
        self.begin(doing)
        return self._progress.open(path, "rb", task_id=self._task)

    def say(self, message: str) -> None:
        self._progress.console.print(message, markup=False, highlight=False)

    def finish(self) -> None:
        self._progress.update(self._task, doing="done")


def bars(console: Console | None) -> Progress:
    """One line per file: name, what is being done, bytes, speed and time left; on stderr unless told otherwise."""
    name, doing = text_column("{task.description}"), text_column("{task.fields[doing]}")
    numbers = DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    return Progress(name, doing, BarColumn(None), *numbers, console=console or Console(stderr=True), expand=True)


def _shortened(name: str) -> str:
    """Both ends of a long name, so that there is room for the bar in 80 columns."""
    return name if len(name) < 30 else f"{name[:8]}…{name[-20:]}"


def part_of(file: Path) -> Path:
    """Where the bytes received so far are kept."""
    return file.with_name(f"{file.name}.part")


def length(path: Path) -> int:
    """The bytes of a file, 0 when it is not there."""
    return path.stat().st_size if path.exists() else 0


def digest(path: Path, checksum: str, bar: Bar) -> str:
    """The checksum of a file, of the same kind and in the same form as `checksum`."""
    kind = checksum.partition(":")[0]
    found = hashlib.new(kind, usedforsecurity=False)
    with bar.reading(path, "checking") as handle:
        while chunk := handle.read(_CHUNK):
            found.update(chunk)
    return f"{kind}:{found.hexdigest()}"


def size_offered(address: str) -> int | None:
    """How many bytes the server says the file has; None when it does not say."""
    try:
        response = requests.head(address, headers=_AS_STORED, timeout=_TIMEOUT, allow_redirects=True)
    except requests.RequestException:  # the download itself will say what is wrong
        return None
    return _content_length(response.headers) if response.ok else None


class _Dropped(Exception):  # noqa: N818 (no error yet: the next attempt may succeed)
    """The server did not send what it was asked for; the text says why."""


class Transfer:
    """A file on its way from `address` to `file`."""

    def __init__(self, address: str, file: Path, checksum: str | None, size: int | None, bar: Bar) -> None:
        self.address, self.file, self.checksum, self.size, self.bar = address, file, checksum, size, bar
        self.part = part_of(file)
        self.version = self.part.with_name(f"{self.part.name}.version")  # the server's mark for what `part` is part of

    def run(self, pauses: Sequence[float]) -> None:
        """Receive what is missing; with the right checksum the file gets its name, with a wrong one it is removed."""
        self._receive_all(pauses)
        if self.checksum and (found := digest(self.part, self.checksum, self.bar)) != self.checksum:
            self._discard()
            raise UserError(
                f"{self.address} is not the published {self.file.name} (expected {self.checksum}, found {found}); "
                "it was removed: try again, or name another server with --mirror"
            )
        with written_whole(self.file) as draft:
            self.part.replace(draft)
        self._discard()

    def _receive_all(self, pauses: Sequence[float]) -> None:
        """Try until all is there: only bytes gained earn new attempts, so a server that never answers costs no wait."""
        furthest, attempts = length(self.part), iter(pauses[:0])
        while length(self.part) != self.size:
            try:
                self._receive()
                break
            except _Dropped as reason:
                if length(self.part) > furthest:
                    furthest, attempts = length(self.part), iter(pauses)
                self._pause(next(attempts, None), reason)

    def _pause(self, pause: float | None, reason: _Dropped) -> None:
        if pause is None:
            raise UserError(
                f"cannot fetch {self.address}: {reason}; try again later (what has come is kept), "
                f"name another server with --mirror, or put the file by hand at {self.file}"
            ) from reason
        self.bar.begin("waiting", length(self.part))
        time.sleep(pause)

    def _receive(self) -> None:
        """Ask for what is missing; if the server cannot continue what is there, and that is wrong, for everything."""
        if self._ask(length(self.part)):
            return
        if not self.checksum or digest(self.part, self.checksum, self.bar) != self.checksum:
            self._ask(0)

    def _ask(self, done: int) -> bool:
        """Receive the bytes after the first `done`; False when the server answers that there are no such bytes."""
        headers = _AS_STORED | (self._continuing(done) if done else {})
        try:
            with requests.get(self.address, headers=headers, stream=True, timeout=_TIMEOUT) as response:
                return self._take(response, done)
        except (requests.RequestException, HTTPError) as error:
            raise _Dropped(_reason(error)) from error

    def _continuing(self, done: int) -> dict[str, str]:
        """Ask for the rest, provided that the file there is still the same: otherwise the server sends all of it."""
        version = self.version.read_text("latin-1").strip() if self.version.exists() else ""
        return {"Range": f"bytes={done}-"} | ({"If-Range": version} if version else {})

    def _take(self, response: requests.Response, done: int) -> bool:
        start = _first_byte(response)
        expected = start in (0, done)
        if done and not expected:
            return False
        if not (response.ok and expected):
            raise _Dropped(f"the server answers {response.status_code} {response.reason}")
        rest = _content_length(response.headers)
        total = None if rest is None else start + rest
        self._admit(start, total)
        self.bar.begin("fetching", start, total)
        self._store(response, start)
        if total is not None and length(self.part) < total:  # urllib3 before 2 does not notice by itself
            raise _Dropped("the connection was closed too early")
        return True

    def _admit(self, start: int, total: int | None) -> None:
        """Refuse, before anything is written, a file that is not the published one or has no room here."""
        if total is None:
            return
        if self.size is not None and total != self.size:
            raise UserError(
                f"{self.address} has {total} bytes but {self.file.name} was published with {self.size}; "
                "name another server with --mirror"
            )
        free = shutil.disk_usage(self.part.parent).free + (0 if start else length(self.part))
        if total - start > free:
            raise UserError(
                f"{self.file.name} needs {decimal(total - start)} but only {decimal(free)} are free "
                f"in {self.part.parent}; make room or choose another folder with $LDDR_DATA"
            )

    def _store(self, response: requests.Response, start: int) -> None:
        with self.part.open("ab" if start else "wb") as handle:
            if not start:  # after the old bytes are gone: a mark must never be newer than they are
                self.version.write_text(_mark(response.headers), "latin-1")
            for chunk in response.raw.stream(_CHUNK, decode_content=False):
                handle.write(chunk)
                self.bar.advance(len(chunk))
            handle.flush()
            os.fsync(handle.fileno())

    def _discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.version.unlink(missing_ok=True)


def _content_length(headers: Mapping[str, str]) -> int | None:
    text = headers.get("Content-Length", "")
    return int(text) if text.isdigit() else None


def _first_byte(response: requests.Response) -> int:
    """Which byte of the file the answer begins with; -1 when it is not the range that was asked for."""
    if response.status_code == requests.codes.requested_range_not_satisfiable:
        return -1
    if response.status_code != requests.codes.partial_content:
        return 0
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(found[1]) if found else -1


def _mark(headers: Mapping[str, str]) -> str:
    """The server's mark for this version of the file: a strong ETag, else its date, else nothing."""
    tag = headers.get("ETag", "W/")
    return headers.get("Last-Modified", "") if tag.startswith("W/") else tag


def _reason(error: BaseException) -> str:
    """The innermost cause in plain words: "Connection refused" rather than the connection pool it happened in."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
