"""Faults on a real Ray of several nodes: every run ends once, with the same bytes as one that was left alone."""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import torch

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.files import alone
from lddr.runs.evaluate import evaluate_run
from lddr.runs.run import Machine, run
from lddr.sweeps.cluster import SweepOptions, run_study
from lddr.sweeps.study import Study
from lddr.training import checkpoint
from lddr.training.trainer import Trainer

pytestmark = [
    pytest.mark.xdist_group("cluster"),  # in one process: the cluster is started once
    # Ray opens files and processes that it leaves to the end of the process
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

DEADLINE = 300.0  # seconds; everything here waits for files and processes, never for a time
RUNS = 4
NODE = {"num_cpus": 1, "object_store_memory": 80 * 2**20}
CHECKPOINTS = 0.1  # seconds between two
STUDY = Study(
    "faults",
    tuple(
        configure("dvae", "circles", "quick", seed=seed, resolution=16, width=4, steps=300, batch_size=8)
        for seed in range(RUNS)
    ),
    ("mig",),
    scoring={"mig": {"samples": 1000}},
)
DRIVER = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import test_cluster as here
outcome = here.run_study(here.STUDY, Path(sys.argv[2]), here.options(sys.argv[3]))
print(json.dumps({"trained": outcome.trained, "failures": len(outcome.failures)}))
"""


def options(address, **rest):
    return SweepOptions(address, checkpoint_seconds=CHECKPOINTS, **rest)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The same runs without Ray and without faults."""
    out = tmp_path_factory.mktemp("undisturbed")
    machine = Machine("cpu", 1, quiet=True, checkpoint_seconds=1000)
    for config in STUDY.configs:
        evaluate_run(run(config, out, machine), STUDY.metrics, settings=STUDY.scoring, quiet=True)
    return out


@pytest.fixture(scope="module")
def cluster():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args=NODE)
    started.add_node(**NODE)
    yield started
    started.shutdown()


def until(condition):
    """Wait for something to become true, and give what it became."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it never happened")


@contextmanager
def amid_a_run(out, node=None, steps=1):
    """Catch a process, of a node if given, in a run that has a checkpoint after so many steps; it stands still here."""
    process, folder = until(lambda: _caught(out, node, steps))
    yield process, folder
    with suppress(psutil.NoSuchProcess):
        process.resume()


def _caught(out, node, steps):
    begun = [path.parents[1] for path in out.glob("circles*/checkpoint/0*.safetensors") if int(path.stem) >= steps]
    processes = psutil.process_iter(["ppid", "cmdline"]) if begun else []
    for process in (process for process in processes if "ray::" in "".join(process.info["cmdline"] or [])):
        if node is None or process.info["ppid"] == node.all_processes["raylet"][0].process.pid:
            with suppress(psutil.Error):
                process.suspend()
                opened = [file.path for file in process.open_files()]
                for folder in begun:
                    if str(folder / "log.jsonl") in opened:
                        return process, folder
                process.resume()
    return None


def assert_same(out, undisturbed):
    for config in STUDY.configs:
        ours, theirs = out / config.run_name, undisturbed / config.run_name
        for name in ("model.safetensors", "log.jsonl", "scores.json"):
            assert (ours / name).read_bytes() == (theirs / name).read_bytes(), (config.run_name, name)
        assert not (ours / "checkpoint").exists()
        assert not (ours / "error.txt").exists()


@contextmanager
def held(out, configs):
    """Be another sweep that is at these runs."""
    with ExitStack() as stack:
        for config in configs:
            stack.enter_context(alone(out / config.run_name / "sweep"))
        yield stack


def test_killed_workers_lost_nodes_and_new_nodes_change_nothing(cluster, undisturbed, tmp_path, capsys):
    (second,) = cluster.worker_nodes
    with held(tmp_path, STUDY.configs[-2:]) as others, ThreadPoolExecutor(1) as thread:
        outcome = thread.submit(run_study, STUDY, tmp_path, options(cluster.address))
        with amid_a_run(tmp_path, cluster.head_node) as (process, killed):
            process.kill()
        with amid_a_run(tmp_path, second) as (_, lost):
            cluster.remove_node(second, allow_graceful=False)
        third = cluster.add_node(**NODE)
        others.close()  # so that there is work for the new node
        with amid_a_run(tmp_path, third):
            pass
        outcome = outcome.result(DEADLINE)
    assert (outcome.finished, outcome.trained, outcome.failures) == (RUNS, RUNS, [])
    assert_same(tmp_path, undisturbed)
    said = capsys.readouterr()
    assert said.out == ""
    for folder in (killed, lost):
        assert f"{folder.name} will be tried again: " in said.err


@contextmanager
def driver(out, cluster):
    command = [sys.executable, "-c", DRIVER, str(Path(__file__).parent), str(out), cluster.address]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process:
        yield process
        process.kill()


@pytest.mark.long
def test_a_killed_driver_and_two_at_once_train_every_run_once(cluster, undisturbed, tmp_path):
    with driver(tmp_path, cluster) as process:
        with amid_a_run(tmp_path, steps=100) as (_, folder):
            process.kill()
            process.wait()
    with alone(folder / "sweep"):  # its worker is dead, too
        leave_a_mark(folder)
        finished = len(list(tmp_path.glob("circles*/model.safetensors")))
    with driver(tmp_path, cluster) as process:
        outcome = run_study(STUDY, tmp_path, options(cluster.address))
        other = json.loads(process.communicate(timeout=DEADLINE)[0])
    assert outcome.trained + other["trained"] == RUNS - finished
    assert (outcome.failures, other["failures"]) == ([], 0)
    take_the_mark(folder)  # it is there: the run went on and did not start again
    assert_same(tmp_path, undisturbed)


def leave_a_mark(folder):
    """A word in the first line of the log, which survives only if training resumes after it."""
    first, *rest = (folder / "log.jsonl").read_text().splitlines(keepends=True)
    (folder / "log.jsonl").write_text("".join([first.replace('{"step": ', '{"mark": 1, "step": '), *rest]))


def take_the_mark(folder):
    log = (folder / "log.jsonl").read_text()
    assert log.count('"mark": 1, ') == 1
    (folder / "log.jsonl").write_text(log.replace('"mark": 1, ', ""))


def test_a_run_that_keeps_failing_is_reported_and_the_others_go_on(cluster, undisturbed, tmp_path, capsys):
    strange, foreign, good = (tmp_path / config.run_name for config in STUDY.configs[:3])
    foreign.mkdir()
    spoilt = Trainer(STUDY.configs[0], load_dataset("circles", 16), torch.device("cpu")).tensors()
    checkpoint.save(strange / "checkpoint", 5, spoilt | {"sums": torch.zeros(9, 9)}, {"format": 2})
    shutil.copy(undisturbed / good.name / "config.json", foreign)
    study = Study("failing", STUDY.configs[:3], STUDY.metrics, scoring=STUDY.scoring)
    outcome = run_study(study, tmp_path, options(cluster.address, retries=1))
    errors = {failure.folder: failure.error for failure in outcome.failures}
    assert errors.keys() == {strange, foreign}
    assert errors[strange].startswith("RuntimeError")
    assert "holds other settings than its name says" in errors[foreign]
    assert "Traceback" in (strange / "error.txt").read_text()
    assert (good / "model.safetensors").read_bytes() == (undisturbed / good.name / "model.safetensors").read_bytes()
    said = capsys.readouterr().err
    assert said.count(f"{strange.name} will be tried again") == 1
    assert f"{foreign.name} will be tried again" not in said  # only the user can fix that
    assert said.splitlines()[-1].endswith("3/3 runs  2 failed")
