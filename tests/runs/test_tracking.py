import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr import console
from lddr.errors import UserError
from lddr.runs.folder import RunFolder, read_log
from lddr.runs.tracking import Log, TensorBoard, TrainingLog

# the log

STEPS = range(100, 1100, 100)


def terms(step):
    return {"elbo": -1000 / step, "kl": step / 7}


def write(path, steps, resume_step=None):
    log = Log(path, resume_step)
    for step in steps:
        log.record(step, terms(step))
    log.sync()
    log.close()


@given(values=st.dictionaries(st.text().filter(lambda name: name != "step"), st.floats(allow_nan=False)))
def test_floats_come_back_exactly(tmp_path_factory, values):
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    log = Log(path)
    log.record(3, values)
    assert read_log(path) == [{"step": 3} | values]
    log.close()


def test_a_record_is_one_line_and_there_at_once(tmp_path):
    log = Log(tmp_path / "run" / "log.jsonl")
    log.record(100, {"elbo": 0.1, "kl": 1e-9})
    content = (tmp_path / "run" / "log.jsonl").read_text()
    assert content == '{"step": 100, "elbo": 0.1, "kl": 1e-09}\n'
    log.close()


@given(data=st.data())
def test_an_interrupted_log_ends_with_the_same_bytes(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("log")
    write(folder / "whole.jsonl", STEPS)
    whole = (folder / "whole.jsonl").read_bytes()
    cut = data.draw(st.integers(0, len(whole)))  # killed while it was writing this byte
    lines = whole[:cut].count(b"\n")
    resume = data.draw(st.none() | st.integers(0, 100 * lines + 99))  # from a checkpoint it had the lines for
    (folder / "log.jsonl").write_bytes(whole[:cut])
    write(folder / "log.jsonl", [step for step in STEPS if step > (resume or 0)], resume)
    assert (folder / "log.jsonl").read_bytes() == whole
    assert sorted(path.name for path in folder.iterdir()) == ["log.jsonl", "whole.jsonl"]


def test_the_line_of_the_step_itself_stays(tmp_path):
    write(tmp_path / "log.jsonl", STEPS)
    Log(tmp_path / "log.jsonl", 300).close()
    assert [record["step"] for record in read_log(tmp_path / "log.jsonl")] == [100, 200, 300]


@pytest.mark.parametrize("tail", [b'{"step": 1100, "elbo": -0', b'{"step": 1100}', b"\0\0\0\0", b"12\n"])
def test_a_torn_last_line_is_left_out(tmp_path, tail):
    path = tmp_path / "log.jsonl"
    write(path, STEPS)
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert [record["step"] for record in read_log(path)] == list(STEPS)
    Log(path, 10_000).close()
    assert path.read_bytes() == whole


def test_a_damaged_line_in_the_middle_is_a_sentence_and_mended_by_resuming(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(UserError, match=r"line 2 of .* is damaged; delete that line"):
        read_log(path)
    Log(path, 3).close()
    assert read_log(path) == [{"step": 1}]


def test_a_missing_log_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match=r"there is no log .*train first"):
        read_log(tmp_path / "log.jsonl")


def test_an_unwritable_log_is_a_sentence(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(UserError, match=r"cannot write .*log\.jsonl: .*; free it or choose another place"):
        Log(tmp_path / "run" / "log.jsonl")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_a_sentence(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    log._file.close()
    with Path("/dev/full").open("ab", buffering=0) as log._file:
        with pytest.raises(UserError, match="No space left on device"):
            log.record(1, {})


def test_a_line_that_fits_only_in_part_is_a_full_disk(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    log._file.close()

    class Short:
        def write(self, line):
            return len(line) - 1

    log._file = Short()
    with pytest.raises(UserError, match="No space left on device"):
        log.record(1, {})


# TensorBoard


def events(folder):
    """(step, value) of the term "kl", as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    accumulator = EventAccumulator(str(folder))
    accumulator.Reload()
    return [(event.step, event.value) for event in accumulator.Scalars("kl")]


@pytest.mark.parametrize("torn", [0, 5])
def test_resumed_event_files_show_every_step_once(tmp_path, torn):
    pytest.importorskip("tensorboard")
    killed = TensorBoard(tmp_path)
    for step in range(1, 6):
        killed.record(step, {"kl": -1.0 if step > 3 else float(step)})
    killed.close()
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[: len(file.read_bytes()) - torn])
    resumed = TensorBoard(tmp_path, resume_step=3)
    for step in range(4, 8):
        resumed.record(step, {"kl": step})
    resumed.sync()
    assert events(tmp_path) == [(step, step) for step in range(1, 8)]
    resumed.close()


def test_event_files_that_begin_anew_show_nothing_old(tmp_path):
    pytest.importorskip("tensorboard")
    for value in (1.0, 2.0):
        board = TensorBoard(tmp_path)
        board.record(0, {"kl": value})
        board.close()
    assert events(tmp_path) == [(0, 2.0)]


def test_tensorboard_that_is_not_installed_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(UserError, match=r'get it with: pip install "lddr\[tensorboard\]"'):
        TrainingLog(RunFolder(tmp_path / "run"), 10, tensorboard=True)
    assert not (tmp_path / "run").exists()


# all of it


def test_a_tracker_records_and_shows(tmp_path, monkeypatch, capsys):
    pytest.importorskip("tensorboard")
    seconds = [0.0]
    monkeypatch.setattr(console, "perf_counter", lambda: seconds[-1])
    with TrainingLog(RunFolder(tmp_path / "run"), total_steps=4, tensorboard=True) as tracker:
        for step in range(1, 4):
            seconds.append(step)
            tracker.record(step, {"kl": float(step)})
            tracker.show(step, {"kl": float(step)})
        tracker.sync()
    with TrainingLog(
        RunFolder(tmp_path / "run"), total_steps=4, resume_step=2, quiet=True, tensorboard=True
    ) as tracker:
        tracker.record(3, {"kl": 30.0})
    assert [record["kl"] for record in read_log(tmp_path / "run" / "log.jsonl")] == [1.0, 2.0, 30.0]
    assert capsys.readouterr().err == "training  3/4  75%  1.0 steps/s  took 0:00:03  kl 3\n"
    assert events(tmp_path / "run" / "tensorboard") == [(1, 1.0), (2, 2.0), (3, 30.0)]
