"""Download one file over HTTP: the download resumes, the file is checked, and only then renamed.

It uses requests, because pooch cannot resume a partial file.
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

_CHUNK = 1 << 16  # bytes: the most that a dropped connection may lose
_TIMEOUT = (10, 60)  # seconds: to connect, and between two bytes
_AS_STORED = {"Accept-Encoding": "identity"}  # sizes, ranges and checksums refer to the file as it is stored


class Bar:
    """The progress bar of one file."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(_shortened(name), total=None, doing="")

    def begin(self, doing: str, done: int = 0, total: int | None = None) -> None:
        """Start (again), with a part already done."""
        self._progress.reset(self._task, completed=done, total=total, doing=doing)

    def advance(self, amount: int) -> None:
        self._progress.advance(self._task, amount)

    def reading(self, path: Path, doing: str) -> BinaryIO:
        """Open the file; the bar follows how much of it is read."""
        self.begin(doing)
        return self._progress.open(path, "rb", task_id=self._task)

    def say(self, message: str) -> None:
        self._progress.console.print(message, markup=False, highlight=False)

    def finish(self) -> None:
        self._progress.update(self._task, doing="done")


def bars(console: Console | None) -> Progress:
    """Return a progress display with name, activity, bytes, speed and time left per file; on stderr by default."""
    name, doing = text_column("{task.description}"), text_column("{task.fields[doing]}")
    numbers = DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()
    return Progress(name, doing, BarColumn(None), *numbers, console=console or Console(stderr=True), expand=True)


def _shortened(name: str) -> str:
    """Shorten a long name in the middle, so that there is room for the bar in 80 columns."""
    return name if len(name) < 30 else f"{name[:8]}…{name[-20:]}"


def part_of(file: Path) -> Path:
    """Return the path of the bytes received so far."""
    return file.with_name(f"{file.name}.part")


def length(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


def digest(path: Path, checksum: str, bar: Bar) -> str:
    """Return the checksum of a file, with the algorithm and in the format of `checksum`."""
    kind = checksum.partition(":")[0]
    found = hashlib.new(kind, usedforsecurity=False)
    with bar.reading(path, "checking") as handle:
        while chunk := handle.read(_CHUNK):
            found.update(chunk)
    return f"{kind}:{found.hexdigest()}"


def size_offered(address: str) -> int | None:
    """Return the size that the server reports in bytes; None if it does not."""
    try:
        response = requests.head(address, headers=_AS_STORED, timeout=_TIMEOUT, allow_redirects=True)
    except requests.RequestException:  # the download itself will report the error
        return None
    return _content_length(response.headers) if response.ok else None


class _Dropped(Exception):  # noqa: N818 (no error yet: the next attempt may succeed)
    """The server did not send the requested bytes; the message says why."""


class Transfer:
    """A download from `address` to `file`."""

    def __init__(self, address: str, file: Path, checksum: str | None, size: int | None, bar: Bar) -> None:
        self.address, self.file, self.checksum, self.size, self.bar = address, file, checksum, size, bar
        self.part = part_of(file)
        self.version = self.part.with_name(f"{self.part.name}.version")  # the server's version tag for `part`

    def run(self, pauses: Sequence[float]) -> None:
        """Receive the missing bytes; the file is renamed if its checksum is right, and removed if it is wrong."""
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
        """Retry until complete: only received bytes earn new attempts, so a server that never answers costs no wait."""
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
        """Request the missing bytes; if the server cannot resume and the existing bytes are wrong, request all."""
        if self._ask(length(self.part)):
            return
        if not self.checksum or digest(self.part, self.checksum, self.bar) != self.checksum:
            self._ask(0)

    def _ask(self, done: int) -> bool:
        """Receive the bytes after the first `done`; False if the server answers that there are none."""
        headers = _AS_STORED | (self._continuing(done) if done else {})
        try:
            with requests.get(self.address, headers=headers, stream=True, timeout=_TIMEOUT) as response:
                return self._take(response, done)
        except (requests.RequestException, HTTPError) as error:
            raise _Dropped(_reason(error)) from error

    def _continuing(self, done: int) -> dict[str, str]:
        """Return headers that request the remaining bytes if the file is unchanged, and all of it otherwise."""
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
        if total is not None and length(self.part) < total:  # urllib3 before 2 does not check this
            raise _Dropped("the connection was closed too early")
        return True

    def _admit(self, start: int, total: int | None) -> None:
        """Refuse, before anything is written, a file that is not the published one or does not fit on the disk."""
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
            if not start:  # after the old bytes are gone: a version tag must never be newer than the bytes
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
    """Return the offset of the response's first byte in the file; -1 if it is not the requested range."""
    if response.status_code == requests.codes.requested_range_not_satisfiable:
        return -1
    if response.status_code != requests.codes.partial_content:
        return 0
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return int(found[1]) if found else -1


def _mark(headers: Mapping[str, str]) -> str:
    """Return the server's version tag of the file: a strong ETag, else its date, else an empty string."""
    tag = headers.get("ETag", "W/")
    return headers.get("Last-Modified", "") if tag.startswith("W/") else tag


def _reason(error: BaseException) -> str:
    """Return the innermost cause: "Connection refused" rather than the connection pool it happened in."""
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
