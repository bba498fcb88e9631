import threading
import time

import numpy as np
import pytest
from torch.utils._python_dispatch import TorchDispatchMode

import lddr
from lddr.config import changed, configure
from lddr.errors import UserError
from lddr.hardware import Machine
from lddr.runs import tracking as trackers
from lddr.runs.folder import RunFolder
from lddr.runs.index import flat_scores, flat_settings
from lddr.runs.loop import Stopped
from lddr.runs.run import run
from lddr.sweeps import cluster as worker

CONFIG = configure("dvae", "circles", "quick", resolution=16, width=4, steps=32, batch_size=8)
pytestmark = [
    pytest.mark.usefixtures("short_evaluation"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:wandb"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:mlflow"),
]


def trained(out, config=CONFIG, **options):
    machine = Machine("cpu", 1, quiet=True, checkpoint_seconds=0, **options)
    return RunFolder(run(config, out, machine))


def stop_at(step):
    """A hook that ends a training at a step, as Ctrl-C does."""

    def hook(now, values):
        if now == step:
            raise Stopped

    return hook


@pytest.fixture(scope="module")
def plain(tmp_path_factory, short_evaluation):
    """The run without a tracker."""
    return trained(tmp_path_factory.mktemp("plain"))


def same(folder, other):
    return all(
        (folder.path / name).read_bytes() == (other.path / name).read_bytes()
        for name in ("model.safetensors", "log.jsonl", "scores.json")
    )


@pytest.fixture
def service(monkeypatch):
    """A tracker that only remembers, under the name of a package that is there."""
    monkeypatch.setattr(trackers, "check_installed", lambda package: None)

    class Memory(trackers.Tracker):
        package = "memory"
        logged, begun, ended = [], [], []

        def begin(self, run, settings, identity):
            self.begun.append((identity, dict(settings)))
            return identity or "first"

        def log(self, step, values):
            self.logged.append((step, dict(values)))

        def end(self, step, scores, is_finished):
            self.ended.append((step, dict(scores), is_finished))

    monkeypatch.setitem(trackers.TRACKERS, "memory", Memory)
    return Memory


def test_a_hook_gets_every_line_of_the_log(plain, tmp_path):
    logged = []
    folder = trained(tmp_path, on_log=lambda step, values: logged.append({"step": step} | values))
    assert logged == folder.log
    assert {type(value) for line in logged for name, value in line.items() if name != "step"} == {float}
    assert same(folder, plain)


def test_python_and_scikit_learn_take_a_hook():
    logged, machine = [], Machine("cpu", 1, quiet=True)
    images = np.random.default_rng(0).integers(256, size=(20, 16, 16), dtype=np.uint8)
    settings = {"steps": 10, "width": 4, "machine": machine, "on_log": lambda *line: logged.append(line)}
    lddr.train(images, "vae", **settings)
    lddr.DisentangledVAE("vae", **settings).fit(images)
    assert [step for step, _ in logged] == [*range(1, 11), *range(1, 11)]


def test_a_hook_costs_no_value_that_is_read_back(tmp_path):
    class Reads(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.count += function.overloadpacket.__name__ in ("_local_scalar_dense", "_to_copy")
            return function(*args, **(kwargs or {}))

    short = changed(CONFIG, {"steps": 5})
    with Reads() as without:
        trained(tmp_path / "without", short)
    with Reads() as hooked:
        trained(tmp_path / "hooked", short, on_log=lambda step, values: dict(values))
    assert hooked.count == without.count > 0


def test_what_a_hook_raises_ends_the_training(tmp_path):
    with pytest.raises(Stopped):
        trained(tmp_path, on_log=stop_at(21))
    assert RunFolder(tmp_path / CONFIG.run_name).state == "training"


def test_a_run_that_goes_on_is_the_same_for_the_tracker(service, plain, tmp_path):
    with pytest.raises(Stopped):
        trained(tmp_path, track="memory", on_log=stop_at(21))
    folder = trained(tmp_path, track="memory")
    assert [step for step, _ in service.logged] == [*range(3, 31, 3), 32]
    assert [identity for identity, _ in service.begun] == [None, "first"]
    assert service.begun[0][1] == flat_settings(CONFIG.as_dict())
    (first, nothing, stopped), (last, scores, finished) = service.ended
    assert (first, nothing, stopped, last, finished) == (18, {}, False, 32, True)
    assert scores == {f"final/{name}": value for name, value in flat_scores(folder.scores).items()}
    assert same(folder, plain)


@pytest.mark.parametrize("moment", [pytest.param("begin", marks=pytest.mark.long), "log", "end"])
def test_trouble_with_a_tracker_is_a_sentence_and_nothing_else(service, plain, tmp_path, monkeypatch, capsys, moment):
    def trouble(*words):
        raise ConnectionError("the network is down")

    monkeypatch.setattr(service, moment, trouble)
    assert same(trained(tmp_path, track="memory"), plain)
    logged = capsys.readouterr().err
    assert logged.count("\n") == 2  # with the warning that so few steps teach nothing
    assert "memory no longer tracks circles_dvae_seed=0_" in logged
    assert "(the network is down); training continues" in logged


def test_a_tracker_that_never_answers_holds_up_nothing(service, plain, tmp_path, monkeypatch, capsys):
    answer = threading.Event()
    monkeypatch.setattr(service, "log", lambda *words: answer.wait())
    monkeypatch.setattr(trackers, "PATIENCE", 0.1)
    assert same(trained(tmp_path, track="memory"), plain)
    assert "memory did not take everything" in capsys.readouterr().err
    answer.set()


def test_a_sweep_tells_the_scores_of_its_metrics(service, tmp_path):
    machine = Machine("cpu", 1, quiet=True, track="memory")
    mark, metrics = worker.mark_of(tmp_path), {"mig": {"samples": 1000}}
    order = worker.RunTask(CONFIG, tmp_path, mark, tmp_path, ("mig",), metrics, machine)
    assert worker.run_task(order).state == "finished"
    assert [identity for identity, _ in service.begun] == [None, "first"]
    assert service.ended[-1][1]["final/mig"] == RunFolder(tmp_path / CONFIG.run_name).metrics["mig"]["score"]


def test_a_tracker_that_is_not_known_or_not_there_is_a_sentence(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="unknown tracker 'wandbb'; did you mean 'wandb'"):
        trained(tmp_path, track="wandbb")
    monkeypatch.setattr("lddr.errors.find_spec", lambda package: None)
    with pytest.raises(UserError, match="Trackio is not installed; get it with: pip install trackio"):
        trained(tmp_path, track="trackio")
    with pytest.raises(UserError, match="give a function, not 5"):
        trained(tmp_path, on_log=5)
    assert not list(tmp_path.iterdir())


def test_mlflow_has_the_run_from_beginning_to_end(plain, tmp_path, monkeypatch):
    import mlflow

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    with pytest.raises(Stopped):
        trained(tmp_path, track="mlflow", on_log=stop_at(21))
    folder = trained(tmp_path, track="mlflow")
    client = mlflow.MlflowClient(trackers.MLflow.local_uri(folder))
    (found,) = client.search_runs([client.get_experiment_by_name("lddr").experiment_id])
    assert found.info.run_id == folder.tracked_as["mlflow"]["id"]
    assert (found.info.run_name, found.info.status) == (CONFIG.run_name, "FINISHED")
    assert found.data.params["num_categories"] == "64"
    assert found.data.metrics["final/elbo"] == folder.scores["training"]["elbo"]
    history = {metric.step: metric.value for metric in client.get_metric_history(found.info.run_id, "loss")}
    assert history == {line["step"]: line["loss"] for line in folder.log}
    assert same(folder, plain)


def test_wandb_keeps_an_offline_run_in_the_folder(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    with pytest.raises(Stopped):
        trained(tmp_path, track="wandb", on_log=stop_at(21))
    folder = trained(tmp_path, track="wandb")
    identity = folder.tracked_as["wandb"]["id"]
    kept = list(folder.path.glob(f"wandb/offline-run-*/run-{identity}.wandb"))
    assert len(kept) == len(list(folder.path.glob("wandb/offline-run-*"))) == 2  # one for each time it was begun
    for word in ("num_categories", "final/elbo", CONFIG.run_name):
        deadline = time.monotonic() + 60  # a process of its own writes them
        while not any(word.encode() in file.read_bytes() for file in kept):
            assert time.monotonic() < deadline, word
            time.sleep(0.05)
    assert same(folder, plain)


def test_wandb_without_a_login_is_refused_before_training(tmp_path, monkeypatch):
    import wandb

    def login():
        raise wandb.errors.UsageError("No API key configured.")

    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setattr(wandb, "login", login)
    with pytest.raises(UserError, match=r"wandb cannot be used \(No API key configured.*WANDB_MODE=offline"):
        trained(tmp_path, track="wandb")
    assert not list(tmp_path.glob("*/config.json"))


def test_trackio_has_the_run_from_beginning_to_end(plain, tmp_path, monkeypatch):
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    with pytest.raises(Stopped):
        trained(tmp_path, track="trackio", on_log=stop_at(21))
    folder = trained(tmp_path, track="trackio")
    import trackio

    (found,) = trackio.Api().runs("lddr")
    assert found.name == folder.tracked_as["trackio"]["id"] == CONFIG.run_name
    assert same(folder, plain)
