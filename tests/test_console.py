"""Messages and progress displays, on pipes, files and terminals."""

import io
import os
import sys
import threading
from contextlib import contextmanager

import pytest

from lddr import console
from lddr.console import Progress, Task, say, table


class Clock:
    """A clock that only moves when it is told to."""

    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(console, "perf_counter", clock)
    return clock


@contextmanager
def training(total, start=0, quiet=False):
    with (
        Progress(quiet, lines_every=10.0, keep=True) as progress,
        progress.task("training", total, start, "steps") as task,
    ):
        yield task


def work(clock, task, steps, seconds):
    for step in steps:
        clock.now += seconds
        task.update(step, lambda: "elbo -112.3  kl 14.2")


@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1", "TERM": "xterm"}], ids=["plain", "colour wanted"])
def test_without_a_terminal_there_is_a_plain_line_now_and_then(clock, capsys, monkeypatch, environment):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with training(total=170, start=100) as progress:
        work(clock, progress, range(101, 141), 0.5)
        work(clock, progress, range(141, 151), 1.0)
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "training  120/170  71%  2.0 steps/s  ETA 0:00:25  elbo -112.3  kl 14.2",
        "training  140/170  82%  2.0 steps/s  ETA 0:00:15  elbo -112.3  kl 14.2",
        "training  150/170  88%  1.5 steps/s  ETA 0:00:13  elbo -112.3  kl 14.2",
        "training  150/170  88%  1.7 steps/s  took 0:00:30  elbo -112.3  kl 14.2",
    ]


def test_the_plain_lines_also_end_when_training_fails(clock, capsys):
    with pytest.raises(RuntimeError), training(total=10) as progress:
        work(clock, progress, [1], 1.0)
        raise RuntimeError
    assert capsys.readouterr().err == "training  1/10  10%  1.0 steps/s  took 0:00:01  elbo -112.3  kl 14.2\n"


def test_a_stalled_training_has_no_eta(clock, capsys):
    with training(total=10) as progress:
        work(clock, progress, [0], 60.0)
    assert "ETA -:--:--" in capsys.readouterr().err


def test_quiet_says_nothing(clock, capsys):
    with training(total=100, quiet=True) as progress:
        work(clock, progress, range(100), 60.0)
    assert capsys.readouterr() == ("", "")


class Counted:
    """A note that counts how often it is computed."""

    reads = 0

    def __call__(self):
        self.reads += 1
        return "kl 1"


def test_the_note_is_computed_only_when_it_is_shown(clock, capsys):
    counted = Counted()
    with training(total=10_000) as progress:
        for step in range(10_000):
            clock.now += 1 / 64
            progress.update(step, counted)
    assert counted.reads == len(capsys.readouterr().err.splitlines()) == 10_000 // 640 + 1


@pytest.fixture
def terminal(monkeypatch):
    """A function that makes a pseudo-terminal stderr, and one that then gives what was written to it."""
    pty = pytest.importorskip("pty")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    near, far = pty.openpty()
    stream, written = os.fdopen(far, "w"), []
    reader = threading.Thread(target=lambda: written.extend(iter(lambda: _read(near), b"")), daemon=True)

    def text():
        stream.close()
        reader.join()
        return b"".join(written).decode()

    def begin():
        monkeypatch.setattr(sys, "stderr", stream)  # not before the test runs: pytest's capturing sets it, too
        reader.start()
        return text

    yield begin
    stream.close()
    os.close(near)


def _read(handle):
    try:
        return os.read(handle, 4096)
    except OSError:  # the other side is closed
        return b""


def test_a_terminal_has_a_bar_with_the_time_left(clock, terminal):
    written = terminal()
    with training(total=100) as progress:
        work(clock, progress, range(1, 51), 0.5)
    text = written()
    assert "━━━" in text
    assert "50%" in text
    assert "2.0 steps/s  ETA 0:00:25" in text
    assert "elbo -112.3  kl 14.2" in text
    assert "took 0:00:25" in text


def test_a_terminal_is_drawn_to_at_most_five_times_a_second(clock, terminal):
    written, counted = terminal(), Counted()
    with training(total=1000) as progress:
        for step in range(1, 1001):
            clock.now += 0.001
            progress.update(step, counted)
    assert "1000.0 steps/s" in written()
    assert counted.reads <= 6


@pytest.mark.parametrize("setting", [{"quiet": True}, {"term": "dumb"}])
def test_no_bar_when_quiet_or_on_a_dumb_terminal(clock, terminal, monkeypatch, setting):
    monkeypatch.setenv("TERM", setting.get("term", "xterm"))
    written = terminal()
    with training(total=2, quiet=setting.get("quiet", False)) as progress:
        work(clock, progress, [1, 2], 0.5)
    expected = "" if "quiet" in setting else "training  2/2  100%  2.0 steps/s  took 0:00:01  elbo -112.3  kl 14.2\r\n"
    assert written() == expected


def pseudo_terminal():
    return pytest.importorskip("pty").openpty()


@pytest.mark.parametrize("connect", [os.pipe, pseudo_terminal])
def test_a_reader_that_goes_away_does_not_stop_training(clock, monkeypatch, connect):
    monkeypatch.setenv("TERM", "xterm-256color")
    near, far = connect()
    stream = os.fdopen(far, "w")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        with training(total=100) as progress:
            os.close(near)
            work(clock, progress, range(1, 101), 1.0)
    with pytest.raises(OSError, match=r"Broken pipe|Input/output error"):
        stream.close()


def test_the_speed_is_averaged_over_a_window_and_two_updates_at_least(clock, capsys):
    with Progress(lines_every=1.0) as progress:
        task = Task(progress, "work", 100, unit="steps", window=10.0)
        for seconds, done in [(60.0, 60), (5.0, 70)]:  # the first longer ago than the window
            clock.now += seconds
            task.update(done)
    assert capsys.readouterr().err.splitlines() == [
        "work  60/100  60%  1.0 steps/s  ETA 0:00:40",
        "work  70/100  70%  2.0 steps/s  ETA 0:00:15",
    ]


def test_tasks_that_take_long_are_lines_without_a_terminal(clock, capsys):
    with Progress() as progress:
        for seconds in (1.0, 3.0):
            with progress.task(f"{seconds:g} [long]") as advance:
                clock.now += seconds
                advance(0.5)
    with Progress(quiet=True) as progress, progress.task("unheard"):
        clock.now += 10.0
    assert capsys.readouterr() == ("", "3 [long]  100%  took 0:00:03\n")


def test_the_time_left_of_a_task_is_that_at_the_speed_it_has(clock, capsys):
    with Progress() as progress, progress.task("gap") as advance:
        for batch in range(100):
            clock.now += 1.0 if batch < 60 else 4.0  # somebody else wants the processor, too
            advance(0.01)
    assert capsys.readouterr().err.splitlines() == [
        "gap  30%  ETA 0:01:10",
        "gap  60%  ETA 0:00:40",
        "gap  68%  ETA 0:02:08",
        "gap  76%  ETA 0:01:36",
        "gap  84%  ETA 0:01:04",
        "gap  92%  ETA 0:00:32",
        "gap  100%  ETA 0:00:00",
        "gap  100%  took 0:03:40",
    ]


def test_a_sentence_is_a_line_on_stderr(capsys, monkeypatch):
    say("look [here]")
    assert capsys.readouterr() == ("", "lddr: look [here]\n")
    monkeypatch.setattr(sys, "stderr", None)
    say("unheard")
    assert capsys.readouterr().out == ""


def test_a_table_folds_what_is_too_long():
    shown, written = table("name", numbers=["words"]), io.StringIO()
    shown.add_row("[a]", "b" * 40)
    console.show(shown, width=20, file=written)
    assert written.getvalue().count("b") == 40
    assert "[a]" in written.getvalue()
