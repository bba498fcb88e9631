import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from lddr.data import array_files as conversion
from lddr.data.array_files import Chunk, MappedImages, converted
from lddr.errors import UserError

SHAPE = (600, 4, 3)


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(256, size=SHAPE, dtype=np.uint8)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.bin"
    path.write_bytes(b"anything")
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lddr" / "arrays"


@pytest.fixture
def mapped(tmp_path: Path, images: np.ndarray) -> MappedImages:
    (tmp_path / "rows").write_bytes(b"seven.." + images.tobytes())
    return MappedImages(tmp_path / "rows", SHAPE, offset=7)


def visible(folder: Path) -> list[str]:
    """What lies in the cache, but for the locks."""
    return sorted(path.name for path in folder.iterdir() if path.suffix != ".lock")


@pytest.mark.parametrize(
    "indices", [[3], [599, 0, 0, 17], [], [[1, 2, 3], [4, 5, 599]], 5, np.arange(600, dtype=np.uint16)]
)
def test_take_gives_copies_of_the_rows_in_any_order(mapped: MappedImages, images: np.ndarray, indices: object) -> None:
    rows = mapped.take(indices)
    np.testing.assert_array_equal(rows, images[np.asarray(indices, dtype=int)])
    rows[...] = 0  # a copy: it can be written to


@pytest.mark.parametrize(
    ("indices", "sentence"),
    [
        ([0, -1], "image number -1 is not in 0 … 599"),
        ([5, 600], "image number 600 is not in 0 … 599"),
        ([0.5], "must be integers, not float64"),
        (np.ones(600, bool), "must be integers, not bool"),
    ],
)
def test_take_refuses_what_is_no_row_number(mapped: MappedImages, indices: object, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        mapped.take(indices)


def test_a_file_too_short_for_its_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(bytes(99))
    with pytest.raises(UserError, match=r"short: expected 100 bytes, found 99"):
        MappedImages(tmp_path / "short", (10, 10))


def test_rows_are_right_after_the_pages_were_let_go(
    mapped: MappedImages, images: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversion, "MOST_RESIDENT", -(2**60))  # always too much
    for _ in range(3):
        np.testing.assert_array_equal(mapped.take(range(600)), images)


def counted(images: np.ndarray, calls: list[int]) -> Callable[[], Iterator[Chunk]]:
    def chunks() -> Iterator[Chunk]:
        calls.append(1)
        yield from np.split(images, 6)

    return chunks


def test_a_conversion_happens_once(cache: Path, source: Path, images: np.ndarray) -> None:
    calls: list[int] = []
    for _ in range(3):
        rows = converted("some", [source], 1, SHAPE, counted(images, calls))
        np.testing.assert_array_equal(rows.take(range(600)), images)
    assert len(calls) == 1
    assert [name.startswith("some-") for name in visible(cache)] == [True]
    np.testing.assert_array_equal(np.load(cache / visible(cache)[0]), images)


def test_another_source_or_version_is_another_conversion(source: Path, tmp_path: Path, images: np.ndarray) -> None:
    calls: list[int] = []

    def convert(path: Path, version: int = 1) -> int:
        converted("some", [path], version, SHAPE, counted(images, calls))
        return len(calls)

    copy = tmp_path / "copy.bin"
    copy.write_bytes(b"anything")
    assert convert(source) == 1
    assert convert(copy) == 2
    assert convert(source, version=2) == 3
    os.utime(source, ns=(0, 12345))
    assert convert(source) == 4
    source.write_bytes(b"anything else")
    os.utime(source, ns=(0, 12345))
    assert convert(source) == 5
    assert convert(source) == 5


@pytest.mark.parametrize("blank", [slice(0, 100), slice(500, 600), slice(0, 600)])
def test_blank_stretches_are_kept(source: Path, images: np.ndarray, blank: slice) -> None:
    images[blank] = 0
    rows = converted("some", [source], 1, SHAPE, counted(images, []))
    np.testing.assert_array_equal(rows.take(range(600)), images)


def test_chunks_may_come_in_any_order(source: Path, images: np.ndarray) -> None:
    images[100:300] = 0
    order = np.random.default_rng(1).permutation(600).reshape(6, 100)
    order[2].sort()
    rows = converted("some", [source], 1, SHAPE, lambda: ((numbers, images[numbers]) for numbers in order))
    np.testing.assert_array_equal(rows.take(range(600)), images)


def test_a_failed_conversion_leaves_nothing_behind(cache: Path, source: Path, images: np.ndarray) -> None:
    def chunks() -> Iterator[Chunk]:
        yield images[:100]
        raise UserError("the source is broken")

    with pytest.raises(UserError, match="the source is broken"):
        converted("some", [source], 1, SHAPE, chunks)
    assert visible(cache) == []


@pytest.mark.parametrize("rows", [599, 601])
def test_a_conversion_of_the_wrong_length_is_refused(cache: Path, source: Path, images: np.ndarray, rows: int) -> None:
    with pytest.raises(ValueError, match="the conversion of some"):
        converted("some", [source], 1, (rows, *SHAPE[1:]), counted(images, []))
    assert visible(cache) == []


def test_the_draft_of_a_killed_process_is_cleared_away(cache: Path, source: Path, images: np.ndarray) -> None:
    converted("some", [source], 1, SHAPE, counted(images, []))
    (name,) = visible(cache)
    (cache / name).rename(cache / f".{Path(name).stem}-01234567.npy")
    (cache / ".something-else-01234567.npy").write_bytes(b"another's")
    converted("some", [source], 1, SHAPE, counted(images, []))
    assert visible(cache) == [".something-else-01234567.npy", name]


def test_too_little_space_is_said_before_anything_is_written(
    cache: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=5_000_000))
    with pytest.raises(UserError, match=r"converting some once needs 6.1 GB in .*arrays, where 5.0 MB are free"):
        converted("some", [source], 1, (500_000, 64, 64, 3), counted(np.zeros(1, np.uint8), calls))
    assert not calls
    assert visible(cache) == []


def test_a_cache_that_cannot_be_written_is_said(
    tmp_path: Path, source: Path, images: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(source))  # a file, so that no folder can be made in it
    with pytest.raises(UserError, match=r"cannot write .*source.bin"):
        converted("some", [source], 1, SHAPE, counted(images, []))


@pytest.mark.parametrize("left", [0, 50, 1000])
def test_a_damaged_cache_file_is_said(cache: Path, source: Path, images: np.ndarray, left: int) -> None:
    converted("some", [source], 1, SHAPE, counted(images, []))
    os.truncate(cache / visible(cache)[0], left)
    with pytest.raises(UserError, match="is damaged; delete it"):
        converted("some", [source], 1, SHAPE, counted(images, []))


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_is_shown_on_a_terminal_only(
    source: Path, images: np.ndarray, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, terminal: bool
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    converted("some", [source], 1, SHAPE, counted(images, []))
    out, err = capsys.readouterr()
    assert not out
    assert ("converting some" in err) == terminal


PROCESS = """
import sys, time
import numpy as np
from pathlib import Path
from lddr.data.array_files import converted

source, log = map(Path, sys.argv[1:])
images = np.random.default_rng(0).integers(256, size=(600, 4, 3), dtype=np.uint8)

def chunks():
    with log.open("a") as file:
        file.write("converted\\n")
    for chunk in np.split(images, 6):
        time.sleep(0.05)  # long enough for the others to come
        yield chunk

rows = converted("some", [source], 1, images.shape, chunks)
print(np.array_equal(rows.take(range(600)), images))
"""


def test_processes_that_start_together_convert_once(source: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    command = [sys.executable, "-c", PROCESS, str(source), str(log)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.communicate()[0] for process in processes] == ["True\n"] * 3
    assert log.read_text() == "converted\n"
