"""Downloads for real: an HTTP server on loopback that can drop, refuse, change and lie."""

import gzip
import hashlib
import io
import os
import random
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from urllib3 import HTTPResponse
from urllib3.exceptions import HTTPError

from lddr.data.archives import unpack
from lddr.data.download import Remote, bytes_left, fetch, is_right
from lddr.data.transfer import Bar
from lddr.errors import UserError

CONTENT = random.Random(0).randbytes(1 << 20)
NO_PAUSES = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    range: str | None
    if_range: str | None
    sent: int


class Server(ThreadingHTTPServer):
    """Serves `files` by name, in the manner its switches say."""

    daemon_threads = False  # closing the server waits for its threads, so that no socket is left open

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {"data.bin": CONTENT}
        self.ranges = True  # understand Range
        self.lengths = True  # say Content-Length
        self.marks = True  # say ETag
        self.encoding = ""  # say Content-Encoding
        self.surplus = 0  # say a Content-Length that is wrong by so much
        self.shift = 0  # answer with a range that begins so much later than asked
        self.drops: list[int] = []  # for each answer: close the connection after so many bytes
        self.holds = False  # do not close dropped connections before `go_on` is set
        self.go_on = threading.Event()
        self.requests: list[Request] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def gets(self) -> list[Request]:
        return [request for request in self.requests if request.method == "GET"]


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002 (the base class calls it so)
        pass

    def do_HEAD(self) -> None:
        self.answer(with_body=False)

    def do_GET(self) -> None:
        self.answer(with_body=True)

    def answer(self, with_body: bool) -> None:
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.end_headers()
            return
        content = self.server.files.get(self.path.rpartition("/")[2], b"")
        mark = f'"{hashlib.md5(content).hexdigest()}"'
        start = self.start(mark)
        body = content[start:]
        keep = self.server.drops.pop(0) if with_body and self.server.drops else len(body)
        sent = body[:keep] if with_body else b""
        note = Request(self.command, self.path, self.headers["Range"], self.headers["If-Range"], len(sent))
        self.server.requests.append(note)
        with suppress(ConnectionError):
            self.send_head(content, start, mark)
            self.wfile.write(sent)
        if self.server.holds and keep < len(body):
            self.server.go_on.wait(30)

    def send_head(self, content: bytes, start: int | None, mark: str) -> None:
        self.send_response(404 if not content else 200 if start is None else 206 if start < len(content) else 416)
        if start is not None:
            self.send_header("Content-Range", f"bytes {start + self.server.shift}-{len(content) - 1}/{len(content)}")
        if self.server.lengths:
            self.send_header("Content-Length", str(len(content[start:]) + self.server.surplus))
        if self.server.marks:
            self.send_header("ETag", mark)
        if self.server.encoding:
            self.send_header("Content-Encoding", self.server.encoding)
        self.end_headers()

    def start(self, mark: str) -> int | None:
        asked = self.headers["Range"]
        if not self.server.ranges or asked is None or self.headers["If-Range"] not in (None, mark):
            return None
        return int(asked.removeprefix("bytes=").removesuffix("-"))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # the lower-case name is the one that wins
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.go_on.set()
        server.shutdown()
        thread.join()


def sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def remote_at(server: Server, **changes: object) -> Remote:
    settings = {"path": "some/data.bin", "url": f"{server.address}/data.bin", "checksum": sha256(CONTENT)} | changes
    return Remote(**settings)  # type: ignore[arg-type]


def get(remote: Remote, folder: Path, mirror: str | None = None) -> str:
    """Fetch one remote without pauses; what was shown meanwhile."""
    shown = io.StringIO()
    fetch([remote], folder, mirror, Console(file=shown, width=200), NO_PAUSES)
    return shown.getvalue()


def visible(folder: Path) -> set[str]:
    """The files below the folder, locks left out."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in files if not name.endswith(".lock")}


def begin(folder: Path, content: bytes, mark: str | None = None) -> None:
    (folder / "some").mkdir(parents=True)
    (folder / "some/data.bin.part").write_bytes(content)
    if mark is not None:
        (folder / "some/data.bin.part.version").write_text(mark)


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


@pytest.mark.parametrize("size", [len(CONTENT), None])
@pytest.mark.parametrize("checksum", [sha256(CONTENT), f"md5:{hashlib.md5(CONTENT).hexdigest()}"])
@pytest.mark.parametrize("lengths", [True, False])
def test_complete(server: Server, tmp_path: Path, size: int | None, checksum: str, lengths: bool) -> None:
    server.lengths = lengths
    shown = get(remote_at(server, size=size, checksum=checksum), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert visible(tmp_path) == {"some/data.bin"}
    assert "data.bin" in shown
    assert "1.0/1.0 MB" in shown


def test_progress_goes_to_stderr(server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fetch([remote_at(server)], tmp_path)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "data.bin" in captured.err


def test_redirected(server: Server, tmp_path: Path) -> None:
    remote = remote_at(server, url=f"{server.address}/moved/data.bin")
    server.drops = [300_000]
    assert bytes_left([remote], tmp_path) == len(CONTENT)
    get(remote, tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert [request.range for request in server.gets()] == [None, "bytes=300000-"]


def test_a_compressed_file_stays_compressed(server: Server, tmp_path: Path) -> None:
    """Some servers say of a stored .gz that it is the encoding of something else; the checksum is that of the .gz."""
    packed = gzip.compress(CONTENT)
    server.files["data.bin"], server.encoding = packed, "gzip"
    get(remote_at(server, checksum=sha256(packed)), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == packed


def test_what_is_there_is_not_asked_for(server: Server, tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    (tmp_path / "some/data.bin").write_bytes(b"put by hand")
    get(remote_at(server), tmp_path)
    assert server.requests == []


def test_a_file_named_twice_is_fetched_once(server: Server, tmp_path: Path) -> None:
    fetch([remote_at(server), remote_at(server)], tmp_path, console=Console(file=io.StringIO()))
    assert len(server.gets()) == 1


@pytest.mark.parametrize("silently", [False, True])
def test_dropped_connections_are_continued(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silently: bool
) -> None:
    """Also with a urllib3 before 2, where a dropped answer just ends."""
    stream = HTTPResponse.stream

    def old_stream(response: HTTPResponse, amount: int, decode_content: bool) -> Iterator[bytes]:
        with suppress(HTTPError):
            yield from stream(response, amount, decode_content)

    if silently:
        monkeypatch.setattr(HTTPResponse, "stream", old_stream)
    server.drops = [300_000, 200_000]
    get(remote_at(server), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert [request.range for request in server.gets()] == [None, "bytes=300000-", "bytes=500000-"]
    assert sum(request.sent for request in server.gets()) == len(CONTENT)


def test_bytes_gained_earn_new_attempts(server: Server, tmp_path: Path) -> None:
    server.drops = [50_000] * 20  # far more often than there are pauses
    get(remote_at(server), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert len(server.gets()) == 21


def test_given_up_and_continued_by_the_next_call(server: Server, tmp_path: Path) -> None:
    server.drops = [300_000, 0, 0, 0]
    with pytest.raises(UserError, match=r"cannot fetch http.*data\.bin: .*; try again"):
        get(remote_at(server), tmp_path)
    assert visible(tmp_path) == {"some/data.bin.part", "some/data.bin.part.version"}
    get(remote_at(server), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert server.gets()[-1].range == "bytes=300000-"
    assert sum(request.sent for request in server.gets()) == len(CONTENT)
    assert visible(tmp_path) == {"some/data.bin"}


def test_killed_and_continued(server: Server, tmp_path: Path) -> None:
    server.drops, server.holds = [600_000], True
    remote = remote_at(server)
    script = (
        "import sys; from pathlib import Path; from lddr.data.download import Remote, fetch;"
        "fetch([Remote(*sys.argv[2:])], Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script, str(tmp_path), remote.path, remote.url, remote.checksum]
    part = tmp_path / "some/data.bin.part"
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        wait_for(lambda: part.exists() and part.stat().st_size >= 300_000)
        assert not (tmp_path / "some/data.bin").exists()
        os.kill(process.pid, signal.SIGKILL)
    server.go_on.set()
    kept = part.stat().st_size
    get(remote, tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert server.gets()[-1].range == f"bytes={kept}-"
    assert server.gets()[-1].sent == len(CONTENT) - kept


def test_interrupted_by_the_user(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(bar: Bar, amount: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Bar, "advance", interrupt)
        with pytest.raises(KeyboardInterrupt):
            get(remote_at(server), tmp_path)
    kept = (tmp_path / "some/data.bin.part").stat().st_size
    assert 0 < kept < len(CONTENT)
    get(remote_at(server), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert server.gets()[-1].range == f"bytes={kept}-"


def test_a_server_without_ranges_is_asked_for_everything_again(server: Server, tmp_path: Path) -> None:
    server.ranges, server.drops = False, [300_000]
    get(remote_at(server), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert [request.sent for request in server.gets()] == [300_000, len(CONTENT)]


def test_a_server_that_always_drops_is_given_up(server: Server, tmp_path: Path) -> None:
    server.ranges, server.drops = False, [300_000] * 100
    with pytest.raises(UserError, match="cannot fetch"):
        get(remote_at(server), tmp_path)
    assert len(server.gets()) == 1 + len(NO_PAUSES)


@pytest.mark.parametrize("marks", [True, False])
def test_a_file_that_changed_meanwhile(server: Server, tmp_path: Path, marks: bool) -> None:
    """With a mark the server sends the new file whole; without one the checksum finds the mixture and removes it."""
    server.marks, server.drops = marks, [300_000, 0, 0, 0]
    new = CONTENT[::-1]
    remote = remote_at(server, checksum=sha256(new))
    with pytest.raises(UserError, match="cannot fetch"):
        get(remote, tmp_path)
    server.files["data.bin"] = new
    if not marks:
        with pytest.raises(UserError, match="is not the published"):
            get(remote, tmp_path)
        assert visible(tmp_path) == set()
    get(remote, tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == new


@pytest.mark.parametrize("size", [len(CONTENT), None])
def test_a_complete_part_only_needs_its_name(server: Server, tmp_path: Path, size: int | None) -> None:
    begin(tmp_path, CONTENT)
    get(remote_at(server, size=size), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert sum(request.sent for request in server.gets()) == 0
    assert len(server.gets()) == (1 if size is None else 0)


@pytest.mark.parametrize("extra", [b"", b"more"])
def test_a_part_beyond_the_end_is_started_over(server: Server, tmp_path: Path, extra: bytes) -> None:
    begin(tmp_path, CONTENT[::-1] + extra)
    get(remote_at(server), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert [request.range for request in server.gets()] == [f"bytes={len(CONTENT + extra)}-", None]


def test_a_range_nobody_asked_for_is_not_appended(server: Server, tmp_path: Path) -> None:
    begin(tmp_path, CONTENT[:1000])
    server.shift = 7
    get(remote_at(server), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert [request.range for request in server.gets()] == ["bytes=1000-", None]


def test_the_mark_is_sent_back(server: Server, tmp_path: Path) -> None:
    begin(tmp_path, CONTENT[:1000], mark='"of another file"\n')
    get(remote_at(server), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert [request.if_range for request in server.gets()] == ['"of another file"']
    assert server.gets()[0].sent == len(CONTENT)


def test_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path) -> None:
    expected = sha256(b"something else")
    with pytest.raises(UserError) as raised:
        get(remote_at(server, checksum=expected), tmp_path)
    assert visible(tmp_path) == set()
    for word in ("data.bin", expected, sha256(CONTENT), "try again", "--mirror"):
        assert word in str(raised.value)


def test_wrong_size_is_refused_before_anything_is_overwritten(server: Server, tmp_path: Path) -> None:
    """A page that asks to log in is no reason to lose what has come."""
    begin(tmp_path, CONTENT[:1000])
    server.files["data.bin"], server.ranges = b"<html>Please log in</html>", False
    with pytest.raises(UserError, match=f"has 26 bytes but data.bin was published with {len(CONTENT)}"):
        get(remote_at(server, size=len(CONTENT)), tmp_path)
    assert (tmp_path / "some/data.bin.part").read_bytes() == CONTENT[:1000]


def test_a_server_that_promises_too_much_does_not_matter(server: Server, tmp_path: Path) -> None:
    server.surplus = 10
    get(remote_at(server), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT


def test_a_server_that_promises_too_little(server: Server, tmp_path: Path) -> None:
    server.surplus = -10
    with pytest.raises(UserError, match="is not the published"):
        get(remote_at(server), tmp_path)
    assert visible(tmp_path) == set()


def test_not_found(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        get(remote_at(server, url=f"{server.address}/gone.bin"), tmp_path)
    hand = str(tmp_path / "some/data.bin")
    for word in (f"{server.address}/gone.bin", "404 Not Found", "--mirror", f"by hand at {hand}"):
        assert word in str(raised.value)
    assert visible(tmp_path) == set()
    assert len(server.gets()) == 1


def test_connection_refused(server: Server, tmp_path: Path) -> None:
    with socket.socket() as unheard:  # bound, so that nobody else takes the port, but not listening
        unheard.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{unheard.getsockname()[1]}/data.bin"
        with pytest.raises(UserError, match=f"^cannot fetch {address}: Connection refused; .*--mirror"):
            get(remote_at(server, url=address), tmp_path)
        assert bytes_left([remote_at(server, url=address)], tmp_path) is None


def test_timeout(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lddr.data.transfer._TIMEOUT", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/data.bin"
        with pytest.raises(UserError, match=f"cannot fetch {address}: timed out; "):
            get(remote_at(server, url=address), tmp_path)


@pytest.mark.parametrize("mirror", ["nowhere/files", "gopher://nowhere"])
def test_a_mirror_that_is_no_address(server: Server, tmp_path: Path, mirror: str) -> None:
    with pytest.raises(UserError, match=f"cannot fetch {mirror}/data.bin"):
        get(remote_at(server), tmp_path, mirror)


@pytest.mark.parametrize("ending", ["", "/"])
def test_mirror(server: Server, tmp_path: Path, ending: str) -> None:
    remote = remote_at(server, url="https://official.invalid/deep/in/data.bin?raw=true")
    mirror = f"{server.address}/mirrored/files{ending}"
    assert bytes_left([remote], tmp_path, mirror) == len(CONTENT)
    get(remote, tmp_path, mirror)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert {request.path for request in server.requests} == {"/mirrored/files/data.bin"}


def test_a_mirror_must_have_the_right_file(server: Server, tmp_path: Path) -> None:
    server.files["data.bin"] = b"not what was published"
    with pytest.raises(UserError, match="is not the published"):
        get(remote_at(server, url="https://official.invalid/data.bin"), tmp_path, server.address)
    assert visible(tmp_path) == set()


@pytest.mark.parametrize("first", ["gone.bin", "other.bin"])
def test_the_next_address_is_tried(server: Server, tmp_path: Path, first: str) -> None:
    server.files["other.bin"] = b"not what was published"
    remote = remote_at(server, url=f"{server.address}/{first}", others=(f"{server.address}/data.bin",))
    shown = get(remote, tmp_path)
    assert f"not from {server.address}/{first} (" in shown
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert [request.path for request in server.gets()] == [f"/{first}", "/data.bin"]


def test_the_size_is_asked_for_at_every_address(server: Server, tmp_path: Path) -> None:
    remote = remote_at(server, url=f"{server.address}/gone.bin", others=(f"{server.address}/data.bin",))
    assert bytes_left([remote], tmp_path) == len(CONTENT)


def test_where_no_address_has_it_the_last_is_named(server: Server, tmp_path: Path) -> None:
    remote = remote_at(server, url=f"{server.address}/gone.bin", others=(f"{server.address}/lost.bin",))
    with pytest.raises(UserError, match=f"^cannot fetch {server.address}/lost.bin: the server answers 404"):
        get(remote, tmp_path)


def test_what_came_from_one_address_is_continued_from_the_next(server: Server, tmp_path: Path) -> None:
    server.files["copy.bin"] = CONTENT
    server.drops = [300_000] + [0] * len(NO_PAUSES)
    get(remote_at(server, url=f"{server.address}/copy.bin", others=(f"{server.address}/data.bin",)), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT
    assert sum(request.sent for request in server.gets()) == len(CONTENT)


@pytest.mark.parametrize("content", [CONTENT, b"corrected by the owners"])
def test_a_file_that_was_replaced_since_has_no_wrong_checksum(server: Server, tmp_path: Path, content: bytes) -> None:
    server.files["data.bin"] = content
    remote = remote_at(server, may_differ=True)
    get(remote, tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == content


def test_a_complete_part_without_a_checksum_is_fetched_again(server: Server, tmp_path: Path) -> None:
    begin(tmp_path, bytes(len(CONTENT)))
    get(remote_at(server, may_differ=True), tmp_path)
    assert (tmp_path / "some/data.bin").read_bytes() == CONTENT


def test_no_room(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(UserError, match=r"data\.bin needs 1\.0 MB but only 1\.0 kB are free in .*some"):
        get(remote_at(server), tmp_path)


def test_a_folder_that_cannot_be(server: Server, tmp_path: Path) -> None:
    (tmp_path / "some").write_text("a file where the folder should be")
    with pytest.raises(UserError, match=r"cannot write .*some/data\.bin: File exists"):
        get(remote_at(server), tmp_path)


@pytest.mark.parametrize("packed", [False, True])
def test_two_at_once_fetch_once(server: Server, tmp_path: Path, packed: bool) -> None:
    remote = archive_at(server, GOOD) if packed else remote_at(server)
    server.drops, server.holds, shown = [50_000], True, io.StringIO()
    first = threading.Thread(target=get, args=(remote, tmp_path))
    second = threading.Thread(target=fetch, args=([remote], tmp_path, None, Console(file=shown, width=200)))
    first.start()
    wait_for(lambda: len(server.gets()) == 1)
    second.start()
    wait_for(lambda: "waiting for it" in shown.getvalue())
    server.go_on.set()
    first.join()
    second.join()
    assert remote.is_there(tmp_path)
    assert sum(request.sent for request in server.gets()) == len(server.files[Path(remote.url).name])


def test_what_is_left_to_fetch(server: Server, tmp_path: Path) -> None:
    server.files |= {"small.bin": b"12345"}
    begin(tmp_path, CONTENT[:1000])
    begun = remote_at(server, size=len(CONTENT))
    small = remote_at(server, path="small.bin", url=f"{server.address}/small.bin")
    assert bytes_left([begun, small], tmp_path) == len(CONTENT) - 1000 + 5
    assert [(request.method, request.path) for request in server.requests] == [("HEAD", "/small.bin")]


@pytest.mark.parametrize("silent", ["no length", "not found"])
def test_what_is_left_is_unknown_without_a_size(server: Server, tmp_path: Path, silent: str) -> None:
    server.lengths = silent != "no length"
    unknown = remote_at(server, url=f"{server.address}/{'gone' if silent == 'not found' else 'data'}.bin")
    known = remote_at(server, path="known.bin", size=5)
    assert bytes_left([known, unknown], tmp_path) is None


@pytest.mark.parametrize(
    ("path", "changes", "expected"),
    [
        ("good.bin", {}, True),
        ("good.bin", {"may_differ": True}, True),
        ("bad.bin", {}, False),
        ("bad.bin", {"may_differ": True}, None),
        ("missing.bin", {}, None),
        ("cars", {"members": "data/cars"}, None),  # the archive is gone
    ],
)
def test_checksums_tell_what_they_can(server: Server, tmp_path: Path, path: str, changes: dict, expected: bool) -> None:
    (tmp_path / "good.bin").write_bytes(CONTENT)
    (tmp_path / "bad.bin").write_bytes(b"broken")
    (tmp_path / "cars").mkdir()
    (tmp_path / "cars/a.mat").write_bytes(b"a")
    assert is_right(remote_at(server, path=path, **changes), tmp_path, Console(file=io.StringIO())) is expected


def plain(name: str, content: bytes = b"content", kind: bytes = tarfile.REGTYPE, target: str = "") -> tuple:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, 0o000
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


GOOD = [
    plain("data", kind=tarfile.DIRTYPE),
    plain("data/cars", kind=tarfile.DIRTYPE),
    plain("data/cars/b.mat", CONTENT[:100_000]),
    plain("./data/cars/a.mat", b"a"),
    plain("data/cars/deep", kind=tarfile.DIRTYPE),
    plain("data/cars/deep/c.mat", b"c"),
    plain("data/ships/d.mat", b"d"),
    plain("data/cars.txt", b"beside"),
    plain("data/link", kind=tarfile.SYMTYPE, target="/etc/passwd"),
]
HOSTILE = {
    "parent": ("data/cars/../../../escaped", tarfile.REGTYPE),
    "absolute": ("{outside}/escaped", tarfile.REGTYPE),
    "drive": ("C:escaped", tarfile.REGTYPE),
    "backslashes": (r"data\..\..\escaped", tarfile.REGTYPE),
    "folder": ("../escaped", tarfile.DIRTYPE),
    "symbolic link": ("data/cars/link", tarfile.SYMTYPE),
    "hard link": ("data/cars/link", tarfile.LNKTYPE),
    "device": ("data/cars/device", tarfile.CHRTYPE),
    "pipe": ("data/cars/pipe", tarfile.FIFOTYPE),
}


def archive_of(members: list[tuple]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return packed.getvalue()


def archive_at(server: Server, members: list[tuple]) -> Remote:
    server.files["all.tar.gz"] = archive_of(members)
    address, checksum = f"{server.address}/all.tar.gz", sha256(server.files["all.tar.gz"])
    return Remote("cars", address, checksum, members="data/cars")


def test_archive(server: Server, tmp_path: Path) -> None:
    remote = archive_at(server, GOOD)
    get(remote, tmp_path)
    assert visible(tmp_path) == {"cars/a.mat", "cars/b.mat", "cars/deep/c.mat"}
    assert (tmp_path / "cars/a.mat").read_bytes() == b"a"
    assert (tmp_path / "cars/b.mat").read_bytes() == CONTENT[:100_000]
    (tmp_path / "new").touch()
    assert (tmp_path / "cars/a.mat").stat().st_mode == (tmp_path / "new").stat().st_mode
    get(remote, tmp_path)
    assert len(server.gets()) == 1


@pytest.mark.parametrize("position", [0, len(GOOD)])
@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_archive(server: Server, tmp_path: Path, kind: str, position: int) -> None:
    folder, (name, type_) = tmp_path / "outer/data", HOSTILE[kind]
    member = plain(name.format(outside=tmp_path), kind=type_, target="a.mat")
    with pytest.raises(UserError, match="not unpacked because it holds"):
        get(archive_at(server, [*GOOD[:position], member, *GOOD[position:]]), folder)
    everything = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert everything == {"outer", "outer/data", "outer/data/all.tar.gz", "outer/data/.all.tar.gz.lock"}


def test_archive_without_the_members(server: Server, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no files below data/cars"):
        get(archive_at(server, [plain("data/ships/d.mat")]), tmp_path)
    assert not (tmp_path / "cars").exists()


def test_killed_while_unpacking(server: Server, tmp_path: Path) -> None:
    """The archive is complete, a half filled folder lies beside the place: it is unpacked anew, not fetched anew."""
    remote = archive_at(server, GOOD)
    (tmp_path / "all.tar.gz").write_bytes(server.files["all.tar.gz"])
    (tmp_path / "cars.unpacking").mkdir()
    (tmp_path / "cars.unpacking/half.mat").write_bytes(b"half")
    assert bytes_left([remote], tmp_path) == 0
    get(remote, tmp_path)
    assert visible(tmp_path) == {"cars/a.mat", "cars/b.mat", "cars/deep/c.mat"}
    assert server.requests == []


def test_an_archive_put_by_hand_is_checked_and_kept(server: Server, tmp_path: Path) -> None:
    (tmp_path / "all.tar.gz").write_bytes(archive_of([plain("data/cars/fake.mat")]))
    with pytest.raises(UserError, match=r"all\.tar\.gz is broken \(expected sha256:.*found sha256:.*remove it"):
        get(archive_at(server, GOOD), tmp_path)
    assert visible(tmp_path) == {"all.tar.gz"}


def test_an_empty_folder_is_no_unpacked_archive(server: Server, tmp_path: Path) -> None:
    (tmp_path / "cars").mkdir()
    get(archive_at(server, GOOD), tmp_path)
    assert (tmp_path / "cars/a.mat").read_bytes() == b"a"


def test_remotes_are_quick_to_import() -> None:
    script = "import sys, lddr.data.download; print(*{'requests', 'rich', 'filelock'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout == "\n"


@pytest.mark.parametrize("left", [1, 20, 400])
def test_a_broken_archive_is_said_and_nothing_is_left(server: Server, tmp_path: Path, left: int) -> None:
    server.files["all.tar.gz"] = broken = archive_of(GOOD)[:left]
    remote = Remote("cars", f"{server.address}/all.tar.gz", sha256(broken), members="data/cars")
    with pytest.raises(
        UserError, match=r"all\.tar\.gz: expected a whole tar archive, found .*; remove it and fetch it"
    ):
        get(remote, tmp_path)
    assert not list(tmp_path.glob("cars*"))


def test_an_archive_that_would_fill_the_disk_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=100_001))
    with pytest.raises(UserError, match=r"unpacking the archive needs 0 MB in .*, where 0 MB are free; make room"):
        unpack(io.BytesIO(archive_of(GOOD)), "data/cars", tmp_path / "cars")
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=100_002))
    unpack(io.BytesIO(archive_of(GOOD)), "data/cars", tmp_path / "cars")
