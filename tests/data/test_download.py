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
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from rich.console import Console

from lddr.data.download import Bar, bytes_left, fetch, has_checksum, unpack
from lddr.data.official import Remote
from lddr.errors import UserError

CONTENT = random.Random(0).randbytes(1 << 20)
NO_PAUSES = (0.0, 0.0, 0.0)


class Request(NamedTuple):
    method: str
    path: str
    range: str | None
    if_range: str | None
    sent: int


class Server(ThreadingHTTPServer):
    """Serves `files` by name, in the manner its switches say."""

    daemon_threads = False  # closing the server waits for its threads, so that no socket is left open

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server_port}"
        self.files = {"data.bin": CONTENT}
        self.ranges = True  # understand Range
        self.lengths = True  # send Content-Length
        self.tags = True  # send ETag
        self.encoding = ""  # send Content-Encoding
        self.surplus = 0  # send a Content-Length that is wrong by so much
        self.shift = 0  # answer with a range that starts so much later than requested
        self.drops = []  # for each answer: close the connection after so many bytes
        self.holds = False  # do not close dropped connections before `release` is set
        self.release = threading.Event()
        self.requests = []

    def gets(self):
        return [request for request in self.requests if request.method == "GET"]

    def ranges_asked(self):
        return [request.range for request in self.gets()]

    def bytes_sent(self):
        return sum(request.sent for request in self.gets())


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *arguments):
        pass

    def do_HEAD(self):
        self.answer(with_body=False)

    def do_GET(self):
        self.answer(with_body=True)

    def answer(self, with_body):
        server = self.server
        if self.path.startswith("/moved/"):
            self.send_response(302)
            self.send_header("Location", self.path.removeprefix("/moved"))
            self.end_headers()
            return
        content = server.files.get(self.path.rpartition("/")[2], b"")
        tag, asked = f'"{hashlib.md5(content).hexdigest()}"', self.headers["Range"]
        is_whole = not server.ranges or asked is None or self.headers["If-Range"] not in (None, tag)
        start = None if is_whole else int(asked.removeprefix("bytes=").removesuffix("-"))
        body = content[start:]
        keep = server.drops.pop(0) if with_body and server.drops else len(body)
        sent = body[:keep] if with_body else b""
        server.requests.append(Request(self.command, self.path, asked, self.headers["If-Range"], len(sent)))
        with suppress(ConnectionError):
            self.send_response(404 if not content else 200 if start is None else 206 if start < len(content) else 416)
            if start is not None:
                self.send_header("Content-Range", f"bytes {start + server.shift}-{len(content) - 1}/{len(content)}")
            if server.lengths:
                self.send_header("Content-Length", str(len(body) + server.surplus))
            if server.tags:
                self.send_header("ETag", tag)
            if server.encoding:
                self.send_header("Content-Encoding", server.encoding)
            self.end_headers()
            self.wfile.write(sent)
        if server.holds and keep < len(body):
            server.release.wait(30)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")  # the lower-case name is the one that wins
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.release.set()
        server.shutdown()
        thread.join()


def sha256(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def remote_at(server, **changes):
    settings = {"path": "some/data.bin", "url": f"{server.address}/data.bin", "checksum": sha256(CONTENT)} | changes
    return Remote(**settings)


def get(remote, folder, mirror=None):
    """Fetch one remote without pauses; returns what was shown meanwhile."""
    shown = io.StringIO()
    fetch([remote], folder, mirror, Console(file=shown, width=200), NO_PAUSES)
    return shown.getvalue()


def visible(folder):
    """The files below the folder, without locks."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    return {name for name in files if not name.endswith(".lock")}


def is_complete(folder, content=CONTENT):
    return visible(folder) == {"some/data.bin"} and (folder / "some/data.bin").read_bytes() == content


def start_with(folder, content, tag=None):
    (folder / "some").mkdir(parents=True)
    (folder / "some/data.bin.part").write_bytes(content)
    if tag is not None:
        (folder / "some/data.bin.part.version").write_text(tag)


def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


@pytest.mark.parametrize(
    ("size", "checksum", "lengths"),
    [(len(CONTENT), sha256(CONTENT), True), (None, f"md5:{hashlib.md5(CONTENT).hexdigest()}", False)],
)
def test_a_file_is_downloaded_with_a_bar(server, tmp_path, size, checksum, lengths):
    server.lengths = lengths
    shown = get(remote_at(server, size=size, checksum=checksum), tmp_path)
    assert is_complete(tmp_path)
    assert "data.bin" in shown
    assert "1.0/1.0 MB" in shown


def test_progress_goes_to_stderr_and_a_file_named_twice_is_fetched_once(server, tmp_path, capsys):
    fetch([remote_at(server), remote_at(server)], tmp_path)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "data.bin" in captured.err
    assert len(server.gets()) == 1


def test_redirects_are_followed(server, tmp_path):
    remote = remote_at(server, url=f"{server.address}/moved/data.bin")
    server.drops = [300_000]
    assert bytes_left([remote], tmp_path) == len(CONTENT)
    get(remote, tmp_path)
    assert is_complete(tmp_path)
    assert server.ranges_asked() == [None, "bytes=300000-"]


def test_a_compressed_file_stays_compressed(server, tmp_path):
    """Some servers declare a stored .gz to be the encoding of something else; the checksum is that of the .gz."""
    packed = gzip.compress(CONTENT)
    server.files["data.bin"], server.encoding = packed, "gzip"
    get(remote_at(server, checksum=sha256(packed)), tmp_path)
    assert is_complete(tmp_path, packed)


def test_existing_files_are_not_requested(server, tmp_path):
    (tmp_path / "some").mkdir()
    (tmp_path / "some/data.bin").write_bytes(b"put by hand")
    get(remote_at(server), tmp_path)
    assert server.requests == []


def test_dropped_connections_resume_and_received_bytes_earn_new_attempts(server, tmp_path):
    server.drops = [50_000] * 20  # far more often than there are pauses
    get(remote_at(server), tmp_path)
    assert is_complete(tmp_path)
    assert server.ranges_asked()[:3] == [None, "bytes=50000-", "bytes=100000-"]
    assert server.bytes_sent() == len(CONTENT)


def test_the_next_call_resumes(server, tmp_path):
    server.drops = [300_000, 0, 0, 0]
    with pytest.raises(UserError, match=r"cannot fetch http.*data\.bin: .*; try again"):
        get(remote_at(server), tmp_path)
    assert visible(tmp_path) == {"some/data.bin.part", "some/data.bin.part.version"}
    get(remote_at(server), tmp_path)
    assert is_complete(tmp_path)
    assert server.bytes_sent() == len(CONTENT)


def test_a_killed_download_resumes(server, tmp_path):
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
    server.release.set()
    kept = part.stat().st_size
    get(remote, tmp_path)
    assert is_complete(tmp_path)
    assert server.ranges_asked()[-1] == f"bytes={kept}-"


def test_a_download_interrupted_by_the_user_resumes(server, tmp_path, monkeypatch):
    def interrupt(bar, amount):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Bar, "advance", interrupt)
        with pytest.raises(KeyboardInterrupt):
            get(remote_at(server), tmp_path)
    kept = (tmp_path / "some/data.bin.part").stat().st_size
    assert 0 < kept < len(CONTENT)
    get(remote_at(server), tmp_path)
    assert is_complete(tmp_path)
    assert server.ranges_asked()[-1] == f"bytes={kept}-"


def test_a_server_without_ranges_is_asked_for_everything_again_but_not_forever(server, tmp_path):
    server.ranges, server.drops = False, [300_000]
    get(remote_at(server), tmp_path)
    assert is_complete(tmp_path)
    assert [request.sent for request in server.gets()] == [300_000, len(CONTENT)]
    server.drops, server.requests = [300_000] * 100, []
    with pytest.raises(UserError, match="cannot fetch"):
        get(remote_at(server), tmp_path / "again")
    assert len(server.gets()) == 1 + len(NO_PAUSES)


@pytest.mark.parametrize("tags", [True, False])
def test_a_file_that_changed_meanwhile(server, tmp_path, tags):
    """With a tag the server sends the new file whole; without one the checksum finds the mixture and removes it."""
    server.tags, server.drops = tags, [300_000, 0, 0, 0]
    new = CONTENT[::-1]
    remote = remote_at(server, checksum=sha256(new))
    with pytest.raises(UserError, match="cannot fetch"):
        get(remote, tmp_path)
    server.files["data.bin"] = new
    if not tags:
        with pytest.raises(UserError, match="is not the published"):
            get(remote, tmp_path)
        assert visible(tmp_path) == set()
    get(remote, tmp_path)
    assert is_complete(tmp_path, new)


@pytest.mark.parametrize("size", [len(CONTENT), None])
def test_a_complete_part_only_needs_its_name(server, tmp_path, size):
    start_with(tmp_path, CONTENT)
    get(remote_at(server, size=size), tmp_path)
    assert is_complete(tmp_path)
    assert server.bytes_sent() == 0
    assert len(server.gets()) == (1 if size is None else 0)


@pytest.mark.parametrize(("part", "shift"), [(CONTENT[::-1] + b"more", 0), (CONTENT[:1000], 7)])
def test_a_part_that_cannot_be_resumed_is_started_over(server, tmp_path, part, shift):
    """It is too long, or the server sends another range than was requested."""
    start_with(tmp_path, part)
    server.shift = shift
    get(remote_at(server), tmp_path)
    assert is_complete(tmp_path)
    assert server.ranges_asked() == [f"bytes={len(part)}-", None]


def test_the_version_tag_is_sent_back(server, tmp_path):
    start_with(tmp_path, CONTENT[:1000], tag='"of another file"\n')
    get(remote_at(server), tmp_path)
    assert is_complete(tmp_path)
    assert [request.if_range for request in server.gets()] == ['"of another file"']


@pytest.mark.parametrize("surplus", [0, -10])
def test_another_file_leaves_nothing(server, tmp_path, surplus):
    server.surplus = surplus
    expected = sha256(CONTENT if surplus else b"something else")
    with pytest.raises(UserError, match="is not the published") as raised:
        get(remote_at(server, checksum=expected), tmp_path)
    assert visible(tmp_path) == set()
    for word in ("data.bin", expected, "try again", "--mirror"):
        assert word in str(raised.value)


def test_a_wrong_size_is_refused_before_anything_is_overwritten(server, tmp_path):
    """A page that asks to log in is no reason to lose what has been received."""
    start_with(tmp_path, CONTENT[:1000])
    server.files["data.bin"], server.ranges = b"<html>Please log in</html>", False
    with pytest.raises(UserError, match=f"has 26 bytes but data.bin was published with {len(CONTENT)}"):
        get(remote_at(server, size=len(CONTENT)), tmp_path)
    assert (tmp_path / "some/data.bin.part").read_bytes() == CONTENT[:1000]


def test_a_missing_file_is_a_sentence(server, tmp_path):
    with pytest.raises(UserError) as raised:
        get(remote_at(server, url=f"{server.address}/gone.bin"), tmp_path)
    for word in (f"{server.address}/gone.bin", "404 Not Found", "--mirror", f"by hand at {tmp_path / 'some/data.bin'}"):
        assert word in str(raised.value)
    assert visible(tmp_path) == set()
    assert len(server.gets()) == 1


@pytest.mark.parametrize(("listens", "reason"), [(False, "Connection refused"), (True, "timed out")])
def test_a_server_that_does_not_answer_is_a_sentence(server, tmp_path, monkeypatch, listens, reason):
    monkeypatch.setattr("lddr.data.download.TIMEOUT", 0.05)
    with socket.socket() as silent:  # bound, so that no other process takes the port
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/data.bin"
        with pytest.raises(UserError, match=f"^cannot fetch {address}: {reason}; .*--mirror"):
            get(remote_at(server, url=address), tmp_path)
        assert bytes_left([remote_at(server, url=address)], tmp_path) is None


def test_a_mirror_replaces_the_address(server, tmp_path):
    remote = remote_at(server, url="https://official.invalid/deep/in/data.bin?raw=true")
    for mirror in ("nowhere/files", "gopher://nowhere"):
        with pytest.raises(UserError, match=f"cannot fetch {mirror}/data.bin"):
            get(remote, tmp_path, mirror)
    mirror = f"{server.address}/mirrored/files/"
    assert bytes_left([remote], tmp_path, mirror) == len(CONTENT)
    get(remote, tmp_path, mirror)
    assert is_complete(tmp_path)
    assert {request.path for request in server.requests} == {"/mirrored/files/data.bin"}


@pytest.mark.parametrize("first", ["gone.bin", "other.bin", "copy.bin"])
def test_the_next_address_is_tried_and_resumes(server, tmp_path, first):
    server.files |= {"other.bin": b"not what was published", "copy.bin": CONTENT}
    if first == "copy.bin":
        server.drops = [300_000] + [0] * len(NO_PAUSES)
    remote = remote_at(server, url=f"{server.address}/{first}", others=(f"{server.address}/data.bin",))
    shown = get(remote, tmp_path)
    assert f"not from {server.address}/{first} (" in shown
    assert is_complete(tmp_path)
    assert server.gets()[-1].path == "/data.bin"
    if first == "copy.bin":
        assert server.bytes_sent() == len(CONTENT)


def test_if_no_address_has_the_file_the_last_is_named(server, tmp_path):
    remote = remote_at(server, url=f"{server.address}/gone.bin", others=(f"{server.address}/lost.bin",))
    with pytest.raises(UserError, match=f"^cannot fetch {server.address}/lost.bin: the server answers 404"):
        get(remote, tmp_path)


def test_a_file_that_was_replaced_since_has_no_wrong_checksum(server, tmp_path):
    start_with(tmp_path, bytes(len(CONTENT)))  # complete, but unverifiable: it is fetched again
    get(remote_at(server, may_differ=True), tmp_path)
    assert is_complete(tmp_path)
    server.files["data.bin"] = b"corrected by the owners"
    get(remote_at(server, may_differ=True), tmp_path / "later")
    assert is_complete(tmp_path / "later", b"corrected by the owners")


def test_too_little_space_and_an_impossible_folder_are_sentences(server, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
        with pytest.raises(UserError, match=r"data\.bin .*needs 1\.0 MB in .*some, where 1\.0 kB are free"):
            get(remote_at(server), tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/some").write_text("a file where the folder should be")
    with pytest.raises(UserError, match=r"cannot write .*some/data\.bin: File exists"):
        get(remote_at(server), tmp_path / "other")


@pytest.mark.parametrize("packed", [False, True])
def test_two_at_once_fetch_once(server, tmp_path, packed):
    remote = archive_at(server, GOOD) if packed else remote_at(server)
    server.drops, server.holds, shown = [50_000], True, io.StringIO()
    first = threading.Thread(target=get, args=(remote, tmp_path))
    second = threading.Thread(target=fetch, args=([remote], tmp_path, None, Console(file=shown, width=200)))
    first.start()
    wait_for(lambda: len(server.gets()) == 1)
    second.start()
    wait_for(lambda: "waiting for it" in shown.getvalue())
    server.release.set()
    first.join()
    second.join()
    assert remote.is_there(tmp_path)
    assert server.bytes_sent() == len(server.files[Path(remote.url).name])


def test_the_bytes_left_are_known_if_every_size_is(server, tmp_path):
    server.files |= {"small.bin": b"12345"}
    start_with(tmp_path, CONTENT[:1000])
    partial = remote_at(server, size=len(CONTENT))
    small = remote_at(
        server, path="small.bin", url=f"{server.address}/gone.bin", others=(f"{server.address}/small.bin",)
    )
    assert bytes_left([partial, small], tmp_path) == len(CONTENT) - 1000 + 5
    assert [request.method for request in server.requests] == ["HEAD", "HEAD"]
    server.lengths = False
    assert bytes_left([partial, small], tmp_path) is None


@pytest.mark.parametrize(
    ("path", "changes", "expected"),
    [
        ("good.bin", {"may_differ": True}, True),
        ("bad.bin", {}, False),
        ("bad.bin", {"may_differ": True}, None),
        ("missing.bin", {}, None),
        ("cars", {"members": "data/cars"}, None),  # the archive is gone
    ],
)
def test_checksums_decide_what_they_can(server, tmp_path, path, changes, expected):
    (tmp_path / "good.bin").write_bytes(CONTENT)
    (tmp_path / "bad.bin").write_bytes(b"broken")
    (tmp_path / "cars").mkdir()
    (tmp_path / "cars/a.mat").write_bytes(b"a")
    assert has_checksum(remote_at(server, path=path, **changes), tmp_path, Console(file=io.StringIO())) is expected


def member(name, content=b"content", kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, 0o000
    info.size = len(content) if kind == tarfile.REGTYPE else 0
    return info, content


GOOD = [
    member("data/cars", kind=tarfile.DIRTYPE),
    member("data/cars/b.mat", CONTENT[:100_000]),
    member("./data/cars/a.mat", b"a"),
    member("data/cars/deep/c.mat", b"c"),
    member("data/ships/d.mat", b"d"),
    member("data/cars.txt", b"next to the folder"),
    member("data/link", kind=tarfile.SYMTYPE, target="/etc/passwd"),
]
UNPACKED = {"cars/a.mat", "cars/b.mat", "cars/deep/c.mat"}


def archive_of(members):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return packed.getvalue()


def archive_at(server, members):
    server.files["all.tar.gz"] = archive_of(members)
    address, checksum = f"{server.address}/all.tar.gz", sha256(server.files["all.tar.gz"])
    return Remote("cars", address, checksum, members="data/cars")


def test_an_archive_is_unpacked_once(server, tmp_path):
    remote = archive_at(server, GOOD)
    (tmp_path / "cars").mkdir()  # an empty folder is not an unpacked archive
    get(remote, tmp_path)
    assert visible(tmp_path) == UNPACKED
    assert (tmp_path / "cars/a.mat").read_bytes() == b"a"
    assert (tmp_path / "cars/b.mat").read_bytes() == CONTENT[:100_000]
    get(remote, tmp_path)
    assert len(server.gets()) == 1


def test_an_archive_with_a_way_out_is_refused(server, tmp_path):
    with pytest.raises(UserError, match=r"expected a whole tar archive, found .* outside the destination"):
        get(archive_at(server, [*GOOD, member("data/cars/../../../../escaped")]), tmp_path / "outer/data")
    assert visible(tmp_path) == {"outer/data/all.tar.gz"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("/escaped", tarfile.REGTYPE),
        ("../escaped", tarfile.DIRTYPE),
        ("data/cars/link", tarfile.SYMTYPE),
        ("data/cars/link", tarfile.LNKTYPE),
        ("data/cars/device", tarfile.CHRTYPE),
        ("data/cars/pipe", tarfile.FIFOTYPE),
    ],
)
def test_anything_but_regular_files_of_the_folder_is_ignored(server, tmp_path, name, kind):
    get(archive_at(server, [member(name, kind=kind, target="/etc/passwd"), *GOOD]), tmp_path / "outer")
    assert visible(tmp_path) == {f"outer/{file}" for file in UNPACKED}
    assert not any(path.is_symlink() or path.name in ("escaped", "pipe", "device") for path in tmp_path.rglob("*"))


def test_a_killed_process_leaves_no_half_folder(server, tmp_path):
    """The archive is complete and a half-filled folder lies next to it: it is unpacked again, not fetched again."""
    remote = archive_at(server, GOOD)
    (tmp_path / "all.tar.gz").write_bytes(server.files["all.tar.gz"])
    (tmp_path / "cars.unpacking").mkdir()
    (tmp_path / "cars.unpacking/half.mat").write_bytes(b"half")
    assert bytes_left([remote], tmp_path) == 0
    get(remote, tmp_path)
    assert visible(tmp_path) == UNPACKED
    assert server.requests == []


def test_an_archive_put_by_hand_is_checked_and_kept(server, tmp_path):
    (tmp_path / "all.tar.gz").write_bytes(archive_of([member("data/cars/fake.mat")]))
    with pytest.raises(UserError, match=r"all\.tar\.gz is broken \(expected sha256:.*found sha256:.*remove it"):
        get(archive_at(server, GOOD), tmp_path)
    assert visible(tmp_path) == {"all.tar.gz"}


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (archive_of(GOOD)[:400], r"all\.tar\.gz: expected a whole tar archive, found .*; remove it and fetch it"),
        (b"x", r"all\.tar\.gz: expected a whole tar archive, found .*; remove it and fetch it"),
        (archive_of(GOOD[4:]), "holds no files below data/cars"),
    ],
)
def test_an_archive_without_the_files_is_a_sentence(server, tmp_path, content, sentence):
    server.files["all.tar.gz"] = content
    remote = Remote("cars", f"{server.address}/all.tar.gz", sha256(content), members="data/cars")
    with pytest.raises(UserError, match=sentence):
        get(remote, tmp_path)
    assert not list(tmp_path.glob("cars*"))


def test_an_archive_that_would_fill_the_disk_is_not_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=100_001))
    with pytest.raises(UserError, match=r"unpacking the archive needs 100\.0 kB in .*; make room"):
        unpack(io.BytesIO(archive_of(GOOD)), "data/cars", tmp_path / "cars")
    assert not list(tmp_path.iterdir())


def test_listing_datasets_imports_nothing_for_downloads():
    script = "import sys, lddr.data.official.dsprites; print(*{'requests', 'rich', 'filelock'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout == "\n"
