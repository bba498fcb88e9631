from dataclasses import replace
from pathlib import Path

import pytest

from lddr.config import configure
from lddr.files import alone
from lddr.hardware import Machine
from lddr.runs.folder import RunFolder
from lddr.sweeps import cluster as worker
from lddr.sweeps.cluster import RunTask, TaskResult, mark_of, run_task

pytestmark = pytest.mark.usefixtures("short_evaluation")


@pytest.fixture
def order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # put back afterwards: a worker goes to where the sweep was started
    config = configure("dvae", "circles", "quick", resolution=16, width=4, steps=5, batch_size=4)
    return RunTask(config, tmp_path, mark_of(tmp_path), tmp_path, ("mig",), {}, Machine("cpu", 1, quiet=True))


@pytest.fixture
def folder(order):
    return order.out / configure("dvae", "circles", "quick", resolution=16, width=4, steps=5, batch_size=4).run_name


def test_a_run_is_trained_and_evaluated_once(order, folder):
    assert run_task(replace(order, metrics=())) == TaskResult("finished", trained=True)
    weights = (folder / "model.safetensors").stat()
    assert run_task(order) == TaskResult("finished", trained=False)
    assert '"mig"' in (folder / "scores.json").read_text()
    scores = (folder / "scores.json").stat()
    assert run_task(order) == TaskResult("finished", trained=False)
    assert (folder / "model.safetensors").stat().st_mtime_ns == weights.st_mtime_ns
    assert (folder / "scores.json").stat().st_mtime_ns == scores.st_mtime_ns


def test_the_settings_of_the_metrics_are_the_studys(order, folder):
    assert run_task(replace(order, scoring={"mig": {"num_bins": 7}})).state == "finished"
    assert RunFolder(folder).scores["metrics"]["mig"]["settings"]["num_bins"] == 7
    assert run_task(order).state == "finished"  # the published ones again
    assert RunFolder(folder).scores["metrics"]["mig"]["settings"]["num_bins"] == 20


@pytest.mark.parametrize("lock", ["sweep", "run"])  # of another sweep, of `lddr train`
def test_a_run_somebody_else_is_at_is_left_to_them(order, folder, lock):
    with alone(folder / lock):
        assert run_task(order) == TaskResult("busy")
    assert not (folder / "config.json").exists()
    assert run_task(order).state == "finished"


def test_what_goes_wrong_is_kept_and_gone_when_it_went_well(order, folder, monkeypatch):
    def odd(*given):
        raise ValueError("odd")

    with monkeypatch.context() as patch:
        patch.setattr(worker, "loaded", odd)
        assert run_task(order) == TaskResult("failed", "ValueError: odd")
    assert "in odd" in (folder / "error.txt").read_text()
    assert run_task(order).state == "finished"
    assert not (folder / "error.txt").exists()


def test_a_users_mistake_is_refused(order):
    answer = run_task(replace(order, config=replace(order.config, dataset="./nowhere")))
    assert answer.state == "refused"
    assert "nowhere" in answer.error


@pytest.mark.parametrize("elsewhere", ["missing", "present"])
def test_a_folder_that_is_not_shared_is_refused(order, folder, tmp_path, elsewhere):
    other = tmp_path / "other"
    if elsewhere == "present":
        mark_of(other)
    answer = run_task(replace(order, out=other))
    assert answer.state == "refused"
    assert "does not see this" in answer.error
    assert not (other / folder.name).exists()


def test_a_relative_dataset_counts_from_where_the_sweep_was_started(order, tmp_path, monkeypatch):
    import numpy as np

    home = tmp_path / "home"
    home.mkdir()
    np.savez(home / "mine.npz", images=np.zeros((8, 16, 16), np.uint8))
    config = configure("vae", "mine.npz", "quick", resolution=16, width=4, steps=2, batch_size=4)
    answer = run_task(replace(order, config=config, home=home, metrics=()))
    assert answer == TaskResult("finished", trained=True)
    assert Path.cwd() == home


def test_a_mark_stays_what_it_is(tmp_path):
    assert mark_of(tmp_path) == mark_of(tmp_path)
    assert mark_of(tmp_path) != mark_of(tmp_path / "other")


def test_scores_are_worked_out_on_the_device_of_the_run(order, monkeypatch):
    devices = []
    monkeypatch.setattr("lddr.runs.run.run", lambda *given: None)
    monkeypatch.setattr("lddr.runs.evaluate.evaluate_run", lambda *given, device, **more: devices.append(device))
    run_task(replace(order, machine=Machine("cuda", 1, quiet=True)))
    assert devices == ["cuda"]
