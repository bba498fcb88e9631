"""How the engine decides, on as much of Ray as it takes."""

import os
import re
import signal
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from lddr.config import configure
from lddr.errors import UserError
from lddr.sweeps import cluster as engine
from lddr.sweeps.cluster import SweepOptions, TaskResult, connected, room, run_study
from lddr.sweeps.study import Study


class FakeRay:
    """As much of Ray as the engine uses, with answers from a function of the run's seed and the attempt."""

    exceptions = SimpleNamespace(RayError=ConnectionError)

    def __init__(self, answer, cpus=4.0):
        self.answer, self.cpus = answer, cpus
        self.attempts, self.flying, self.cancelled, self.most = {}, [], [], 0

    def nodes(self):
        dead = {"Alive": False, "Resources": {"CPU": 100.0}}
        return [{"Alive": True, "Resources": {"CPU": self.cpus}}, dead]

    def remote(self, max_retries, num_cpus, num_gpus):
        return lambda function: SimpleNamespace(options=lambda name: SimpleNamespace(remote=self.submit))

    def submit(self, order):
        seed = order.config.training.seed
        self.attempts[seed] = self.attempts.get(seed, 0) + 1
        self.flying.append((seed, self.attempts[seed]))
        self.most = max(self.most, len(self.flying))
        return self.flying[-1]

    def wait(self, tasks, num_returns, timeout):
        return tasks[:num_returns], tasks[num_returns:]

    def cancel(self, task):
        self.cancelled.append(task)

    def get(self, task):
        self.flying.remove(task)
        return self.answer(*task)


@pytest.fixture
def fake_sweep(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "RETRY_SECONDS", 0.0)

    def carried_out(ray, runs, **given):
        configs = [configure("vae", "circles", "quick", seed=seed) for seed in range(runs)]
        monkeypatch.setattr(engine, "connected", lambda options: nullcontext(ray))
        return run_study(Study("fake", configs, ()), tmp_path, SweepOptions(quiet=True, **given))

    return carried_out


@pytest.mark.parametrize(("workers", "most"), [(None, 5), (2, 2), (100, 5)])  # 4 fit, and one more is asked for
def test_only_as_many_runs_are_in_flight_as_there_is_room_for(fake_sweep, workers, most):
    ray = FakeRay(lambda seed, attempt: TaskResult("finished", trained=True))
    outcome = fake_sweep(ray, 50, workers=workers)
    assert (outcome.finished, outcome.trained) == (50, 50)
    assert ray.most == most
    assert set(ray.attempts.values()) == {1}


def test_what_fails_is_tried_again_so_often_and_what_is_busy_as_long_as_it_takes(fake_sweep):
    def answer(seed, attempt):
        if seed == 0:  # a worker that is lost once
            if attempt == 1:
                raise ConnectionError("gone\nwith details")
        elif seed == 1:
            return TaskResult("failed", "again and again")
        elif seed == 2:
            return TaskResult("refused", "fix this")
        elif seed == 3 and attempt < 10:
            return TaskResult("busy")
        return TaskResult("finished", trained=seed != 3)

    ray = FakeRay(answer)
    outcome = fake_sweep(ray, 5, retries=2)
    assert ray.attempts == {0: 2, 1: 3, 2: 1, 3: 10, 4: 1}
    assert (outcome.finished, outcome.trained) == (3, 2)
    assert {failure.error for failure in outcome.failures} == {"again and again", "fix this"}


@pytest.mark.parametrize(
    ("resources", "needs", "runs"),
    [
        ({"CPU": 4.0}, {}, 4),
        ({"CPU": 4.0}, {"cpus_per_run": 3}, 1),
        ({"CPU": 4.0}, {"gpus_per_run": 0.25}, 0),
        ({"CPU": 64.0, "GPU": 2.0}, {"gpus_per_run": 0.1}, 20),
        ({"CPU": 4.0, "GPU": 2.0}, {"gpus_per_run": 0.25}, 4),
        ({}, {}, 0),
    ],
)
def test_the_scarcest_resource_says_how_many_runs_fit(resources, needs, runs):
    assert room(resources, SweepOptions(**needs)) == runs


@pytest.mark.parametrize("given", [{"workers": 0}, {"cpus_per_run": 0}, {"gpus_per_run": -0.5}, {"retries": -1}])
def test_impossible_options_are_a_sentence(given):
    with pytest.raises(UserError, match="at least one worker and one CPU per run"):
        SweepOptions(**given)


def test_too_much_for_this_machine_is_a_sentence(fake_sweep):
    with pytest.raises(UserError, match="a run needs 8 CPUs and 1 GPUs, more than there is here; lower --cpus-per-run"):
        fake_sweep(FakeRay(None), 1, cpus_per_run=8, gpus_per_run=1.0)


@pytest.mark.parametrize("address", ["nowhere", "127.0.0.1:1", "[::1]:1", "ray://127.0.0.1:1"])  # no service has port 1
def test_a_cluster_that_is_not_there_is_a_sentence(address):
    with pytest.raises(UserError, match=rf"cannot reach Ray at {re.escape(address)} .*; see docs/cluster.md"):
        with connected(SweepOptions(address)):
            pass


def test_a_machine_too_busy_to_start_ray_is_a_sentence(monkeypatch):
    def too_slow(**_):
        raise Exception("The current node timed out during startup.\nMore")

    monkeypatch.setattr("ray.init", too_slow)
    with pytest.raises(
        UserError, match=r"cannot reach Ray at this machine \(The current node timed out during startup"
    ):
        with connected(SweepOptions()):
            pass


def test_a_batch_system_that_ends_a_sweep_is_a_ctrl_c():
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt), engine.sigterm_is_ctrl_c():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
    assert signal.getsignal(signal.SIGTERM) is before


def test_stopping_cancels_what_is_in_flight_and_says_so(fake_sweep):
    def interrupted(seed, attempt):
        raise KeyboardInterrupt

    ray = FakeRay(interrupted)
    outcome = fake_sweep(ray, 10)
    assert outcome.stopped
    assert len(ray.cancelled) == 4  # five in flight, one of them had landed
    assert sum(ray.attempts.values()) == 5  # and none was begun after that
