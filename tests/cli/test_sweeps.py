"""`lddr sweep` from the study to the table, stopped and started again, with a Ray of its own."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lddr.cli import sweeps
from lddr.config import configure
from lddr.errors import UserError
from lddr.runs.folder import RunFolder
from lddr.sweeps.cluster import Failure, Outcome
from lddr.sweeps.progress import score_rows
from lddr.sweeps.study import Study
from tests.cli.words import called
from tests.run_folders import completed

STUDY = """
name = "tiny"
metrics = ["mig"]
[base]
dataset = "circles"
preset = "quick"
resolution = 16
width = 4
batch_size = 8
steps = 300
[[blocks]]
model = ["vae", "dvae"]
seeds = 1
"""
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # where the tests run in the background it may be ignored
from lddr.cli import main
main(["sweep", sys.argv[1], "--out", sys.argv[2], "--checkpoint-seconds", "1000"])
"""
DEADLINE = 300  # seconds


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(STUDY)
    return str(path)


def test_a_stopped_sweep_says_how_to_resume(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("lddr.sweeps.cluster.run_study", lambda *given: Outcome(stopped=True))
    with pytest.raises(SystemExit) as end:
        called("sweep", study, out=tmp_path)
    assert end.value.code == 130
    assert capsys.readouterr() == ("", "lddr: stopped; rerun the same command to resume\n")


@pytest.mark.long  # Ray is started twice; tests/sweeps has the parts
def test_a_stopped_sweep_saves_and_goes_on_when_started_again(study, tmp_path):
    out = tmp_path / "runs"
    command = [sys.executable, "-c", COMMAND, study, str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        first = _first_with_a_log_line(out)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 130, said
    assert printed == ""
    assert said.splitlines()[-1] == "lddr: stopped; rerun the same command to resume"
    assert list((first / "checkpoint").glob("*.safetensors"))  # none was due: it was saved because of the stop
    leave_a_mark(first)
    again = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, check=True)
    heading, *rows = again.stdout.splitlines()[1:]
    assert heading.split() == ["model", "runs", "elbo", "mig"]
    assert [row.split()[:2] for row in rows] == [["vae", "1/1"], ["dvae", "1/1"]]
    assert again.stderr.splitlines()[-1].endswith(f" existed, 0 failed; see {out}")
    assert '"mark": 1' in (first / "log.jsonl").read_text()  # it went on: a new training has a new log


def _first_with_a_log_line(out):
    """The first run amid its training."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        for log in out.glob("*/log.jsonl"):
            if log.stat().st_size and not (log.parent / "model.safetensors").exists():
                return log.parent
        time.sleep(0.02)
    raise AssertionError("no run was begun")


def leave_a_mark(folder):
    """A word in the first line of the log, which survives only if training resumes after it."""
    log = folder / "log.jsonl"
    log.write_text(log.read_text().replace('{"step": ', '{"mark": 1, "step": ', 1))


def test_failures_are_told_with_their_folders_and_are_an_exit_code(study, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "error.txt").write_text("Traceback …")
    failures = [Failure(folder, "ValueError: odd"), Failure(tmp_path / "lost", "the worker died")]
    monkeypatch.setattr(
        "lddr.sweeps.cluster.run_study", lambda *given: Outcome(there=1, finished=1, trained=1, failures=failures)
    )
    with pytest.raises(SystemExit) as end:
        called("sweep", study, out=tmp_path)
    assert end.value.code == 1
    said = capsys.readouterr()
    assert (
        f"  {folder}: ValueError: odd (more in {folder / 'error.txt'})\n  {tmp_path / 'lost'}: the worker died\n"
        in said.err
    )
    assert "1 run finished, 1 existed, 2 failed" in said.err
    assert "0/1" in said.out  # the table is printed all the same


def test_a_dry_run_starts_nothing(study, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("lddr.sweeps.cluster.run_study", lambda *given: pytest.fail("it was started"))
    called("sweep", study, out=tmp_path / "runs", dry_run=True)
    assert "2 runs" in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_size_that_a_dataset_has_not_is_refused_before_anything_begins(study, tmp_path, monkeypatch, dry_run):
    monkeypatch.setattr("lddr.sweeps.cluster.run_study", lambda *given: pytest.fail("it was started"))
    with pytest.raises(UserError, match="64x64 or 32x32, not 16x16"):
        called("sweep", study, out=tmp_path / "runs", dataset="dsprites", dry_run=dry_run)
    assert not (tmp_path / "runs").exists()


def test_images_that_are_not_here_are_one_sentence(study, tmp_path, monkeypatch):
    monkeypatch.setattr("lddr.sweeps.cluster.run_study", lambda *given: pytest.fail("it was started"))
    with pytest.raises(UserError, match="nowhere"):
        called("sweep", study, out=tmp_path / "runs", dataset="./nowhere")


def test_the_table_has_a_row_per_point_and_the_medians_over_its_seeds(tmp_path):
    gammas = {10: [0.1, 0.2, 0.6], 20: [0.5, None, 0.7]}
    configs = [configure("factor-vae", "circles", "quick", gamma=g, seed=seed) for g in gammas for seed in range(3)]
    configs += [configure("vae", "circles", "quick", seed=7)]
    migs = [*gammas[10], *gammas[20], 0.25]
    for config, mig in list(zip(configs, migs, strict=True))[:-1]:
        folder = RunFolder(tmp_path / config.run_name)
        folder.write_config(config, {}, {})
        folder.write_scores({"elbo": -1234.5, "elbo_noiseless": -1230.0})
        folder.add_scores({"mig": {"score": mig, "settings": {}}})
        completed(folder.path)
    rows = score_rows(Study("table", configs, ("mig",)), tmp_path)
    assert rows == [
        {"model": "factor-vae", "gamma": "10", "runs": "3/3", "elbo": "-1234", "mig": "0.2"},
        {"model": "factor-vae", "gamma": "20", "runs": "3/3", "elbo": "-1234", "mig": "0.6"},
        {"model": "vae", "gamma": "", "runs": "0/1", "elbo": "-", "mig": "-"},
    ]


def test_older_runs_are_in_the_table_with_what_they_have(tmp_path):
    configs = [configure("vae", "circles", "quick", seed=seed) for seed in range(2)]
    for config, scores in zip(configs, ({"elbo": -9.0, "elbo_noiseless": -7.0}, {"elbo": -5.0}), strict=True):
        folder = RunFolder(tmp_path / config.run_name)
        folder.write_config(config, {}, {})
        folder.write_scores(scores)
        completed(folder.path)
    (row,) = score_rows(Study("table", configs, ()), tmp_path)
    assert row == {"model": "vae", "runs": "2/2", "elbo_noiseless": "-6"}


def test_a_table_wider_than_the_screen_cuts_no_number(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    rows = [{"model": "dvae"} | {f"a_setting_with_a_long_name_{number}": f"0.{number}23456" for number in range(9)}]
    monkeypatch.setattr("lddr.sweeps.progress.score_rows", lambda study, out: rows)
    sweeps.print_scores(Study("wide", []), Path())
    said = capsys.readouterr().out
    assert all(value in said for value in rows[0].values())
    assert "…" not in said


def test_supervision_is_a_column_where_it_varies(tmp_path):
    given = [{}, {"supervision": "masked", "labels": 100}, {"supervision": "masked", "labels": 1000}]
    rows = score_rows(Study("labels", [configure("dvae", "circles", "quick", **s) for s in given], ()), tmp_path)
    assert [(row["supervision"], row["labels"]) for row in rows] == [("", ""), ("masked", "100"), ("masked", "1000")]
