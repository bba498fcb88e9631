"""A short run of the fuzzer over every reader, and that the fuzzer sees what it is made for."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import numpy as np
import pytest

from lddr.errors import UserError
from lddr.files import reading_untrusted
from tests.fuzz import runner
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import READERS
from tests.fuzz.runner import Reader, run

FEW, CASES = 6, 12
TOP = Path(__file__).parents[2]


@pytest.mark.parametrize("name", READERS)
def test_whole_files_are_read(name, tmp_path):
    for file, content in READERS[name].files().items():
        (tmp_path / "case" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "case" / file).write_bytes(content)
    READERS[name].read(tmp_path / "case")


@pytest.mark.parametrize("name", READERS)
def test_no_damaged_file_ends_in_a_traceback(name):
    found = run(READERS[name], FEW)
    assert (found.cases, found.bad) == (FEW, {})


@pytest.mark.long
def test_the_command_finds_no_damaged_file_that_ends_in_a_traceback(tmp_path):
    command = [sys.executable, "-m", "tests.fuzz", "--cases", str(CASES), "--failures", str(tmp_path / "failures")]
    done = subprocess.run(command, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[1:]]
    assert [(name, cases, bad) for name, cases, _, _, bad, _ in rows] == [(name, str(CASES), "0") for name in READERS]
    never = ("checkpoints", "index")  # it goes back to older ones, and it is made anew
    assert all(int(refused) > 0 for name, _, _, refused, *_ in rows if name not in never)


def read(folder):
    return (folder / "a.json").read_bytes()


def crash(folder):
    os.kill(os.getpid(), signal.SIGSEGV)


def hang(folder):
    while True:
        pass


def wait(folder):
    time.sleep(60)


def take_memory(folder):
    with reading_untrusted("a file", "a small file"):
        np.zeros(1 << 40)


def say_two_lines(folder):
    raise UserError("one line\nand another")


def refuse(folder):
    raise UserError("a sentence")


@pytest.mark.parametrize(
    ("reader", "seen"),
    [
        (crash, "the process died: SIGSEGV"),
        (hang, "the process died: SIG"),  # SIGPROF, or SIGALRM on a busy machine
        (wait, "the process died: SIGALRM"),
        (take_memory, "it was refused only when the memory was gone"),
        (say_two_lines, "no sentence"),
        (lambda folder: {}[folder], "KeyError"),
        (lambda folder: sys.exit(0), "SystemExit"),
    ],
)
def test_the_fuzzer_sees_what_is_bad(reader, seen, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "SECONDS", 0.2)
    found = run(Reader("bad", lambda: {"a.json": b'{"b": 1}'}, reader), 2, failures=tmp_path)
    assert (found.cases, found.read, found.refused, len(found.bad)) == (2, 0, 0, 2)
    assert all(seen in what for what in found.bad.values())
    assert seen in (tmp_path / "bad-1.txt").read_text()


def test_what_is_read_or_refused_is_not_bad():
    for reader, counts in ((lambda folder: None, (50, 0)), (refuse, (0, 50))):
        found = run(Reader("good", lambda: {"a.json": b'{"b": 1}'}, reader), 50)
        assert (found.read, found.refused, found.bad) == (*counts, {})


def test_a_case_is_the_same_whenever_it_is_written(tmp_path):
    for name, reader in READERS.items():
        files = reader.files()
        for number in range(5):
            for place in ("once", "again"):
                runner.write_case(reader, files, number, 0, tmp_path / name / place / str(number))
        once, again = (
            {path.relative_to(tmp_path / name / place): path.is_file() and path.read_bytes() for path in found}
            for place in ("once", "again")
            for found in [sorted((tmp_path / name / place).rglob("*"))]
        )
        assert once == again, name


def test_damage_is_done():
    content = b'{"a": [1, 2.5, "x"], "b": {"c": null}}' * 3
    changed = [mutated(content, Random(number), is_text=number % 2 == 0) for number in range(200)]
    assert sum(other != content for other in changed) > 150
    assert len(set(changed)) > 120
