import json
import multiprocessing
import os
import random
import shutil
import signal
import time
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.metrics.elbo import bounds
from lddr.runs import run as run_module
from lddr.runs.folder import RunFolder
from lddr.runs.loop import Stopped
from lddr.runs.run import Machine, run
from lddr.training import checkpoint
from lddr.training.accelerator import AsynchronousTrainer
from lddr.training.batches import Batches
from lddr.training.trainer import LossAverages, Trainer

QUIET = Machine(device="cpu", threads=1, quiet=True, checkpoint_seconds=0.05)
SETTINGS = {"resolution": 16, "width": 4, "steps": 400, "batch_size": 8}

WHOLE = replace(QUIET, checkpoint_seconds=1000.0)  # without interruption and without checkpoints
EVERY_STEP = replace(QUIET, checkpoint_seconds=0.0)

processes = multiprocessing.get_context("forkserver")  # imports torch once, not in every process
processes.set_forkserver_preload(["lddr.runs.run"])
pytestmark = pytest.mark.usefixtures("short_evaluation")


def config_of(model, steps):
    narrow = {"discriminator_width": 20} if model == "factor-vae" else {}
    return configure(model, "circles", "quick", **SETTINGS | {"steps": steps}, **narrow)


def train_in_process(model, out, steps):
    run_module.bounds = partial(bounds, batches=1)  # as the fixture does here
    run(config_of(model, steps), out, QUIET)


def start(model, out, steps):
    process = processes.Process(target=train_in_process, args=(model, out, steps))
    process.start()
    return process


def wait_for_checkpoint(out, after=0):
    """Wait until there is a checkpoint of a later step."""
    deadline = time.monotonic() + 60
    while True:
        steps = [int(file.stem) for file in out.glob("*/checkpoint/[0-9]*.safetensors")]
        if steps and max(steps) > after:
            return
        assert time.monotonic() < deadline
        time.sleep(0.01)


def content(folder):
    return {
        name: (folder / name).read_bytes() for name in ("model.safetensors", "log.jsonl", "scores.json", "config.json")
    }


@pytest.mark.parametrize(
    ("model", "steps", "kills"), [("factor-vae", 137, 2), pytest.param("dvae", 1234, 4, marks=pytest.mark.long)]
)  # the number of steps is no multiple of a line's
def test_a_run_killed_again_and_again_ends_with_the_same_bytes(model, steps, kills, tmp_path):
    whole = run(config_of(model, steps), tmp_path / "whole", WHOLE)
    chance, folder = random.Random(0), RunFolder(tmp_path / "killed" / whole.name)
    for _ in range(kills):
        before = folder.saved_step or 0
        process = start(model, tmp_path / "killed", steps)
        wait_for_checkpoint(tmp_path / "killed", after=before)
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
    killed = run(config_of(model, steps), tmp_path / "killed", WHOLE)
    assert killed.name == whole.name
    assert content(killed) == content(whole)
    assert RunFolder(killed).last_step == steps


def test_a_finished_run_does_nothing(tmp_path):
    config = configure("vae", "circles", "quick", **SETTINGS | {"steps": 30})
    folder = run(config, tmp_path, QUIET)
    before = {file: file.stat().st_mtime_ns for file in folder.rglob("*")}
    assert run(config, tmp_path, QUIET) == folder
    assert {file: file.stat().st_mtime_ns for file in folder.rglob("*")} == before


def test_a_corrupt_checkpoint_falls_back_to_the_one_before(tmp_path, monkeypatch, capfd):
    config, _ = half_done(tmp_path / "older", monkeypatch)
    *_, newest = sorted((tmp_path / "older").glob("*/checkpoint/*.safetensors"))
    spoiled = bytearray(newest.read_bytes())
    spoiled[-5] ^= 1
    newest.write_bytes(spoiled)
    assert content(run(config, tmp_path / "older", WHOLE)) == content(run(config, tmp_path / "whole", WHOLE))
    assert f"cannot use the checkpoint {newest}" in capfd.readouterr().err


@pytest.mark.parametrize("asynchronous", [False, True], ids=["looks at every step", "as on a GPU"])
def test_a_loss_that_is_not_finite_stops_the_run_and_names_the_term(tmp_path, monkeypatch, asynchronous):
    config = configure("beta-vae", "circles", "quick", **SETTINGS)
    original, calls = Trainer.loss, []

    def spoiled(self, batch):
        calls.append(type(self))
        loss, infinite = original(self, batch), torch.tensor(float("inf"))
        return replace(loss, kl=infinite, penalties={"kl": infinite}) if len(calls) == 21 else loss

    monkeypatch.setattr(Trainer, "loss", spoiled)
    monkeypatch.setattr("lddr.training.accelerator.FOUND_INF", ("cpu",) if asynchronous else ())
    with pytest.raises(UserError, match=r"diverged at step 20: kl is not finite; .*checkpoint.*lower learning rate"):
        run(config, tmp_path, QUIET)
    assert set(calls) == {AsynchronousTrainer if asynchronous else Trainer}
    (folder,) = tmp_path.iterdir()
    assert not (folder / "scores.json").exists()


@pytest.mark.parametrize(
    ("steps", "ends"),
    [
        (1, [1]),
        (5, [1, 2, 3, 4, 5]),
        (32, [*range(3, 31, 3), 32]),
        pytest.param(200, [*range(20, 201, 20)], marks=pytest.mark.long),
        pytest.param(1050, [*range(100, 1001, 100), 1050], marks=pytest.mark.long),
    ],
)
def test_every_line_of_the_log_is_the_mean_of_its_steps(steps, ends, tmp_path):
    config = configure("dvae", "circles", "quick", **SETTINGS | {"steps": steps})
    logged = []
    machine = replace(WHOLE, on_log=lambda step, values: logged.append({"step": step} | values))
    lines = RunFolder(run(config, tmp_path, machine)).log
    assert [line["step"] for line in lines] == ends
    assert logged == lines
    trainer = Trainer(config, load_dataset("circles", 16), torch.device("cpu"))
    batches = Batches(trainer, load_dataset("circles", 16))
    torch.set_num_threads(1)
    elbos = [trainer.step(batches.batch(step))["elbo"].item() for step in range(steps)]
    for line, first, end in zip(lines, [0, *ends], ends, strict=False):
        assert line["elbo"] == pytest.approx(np.mean(elbos[first:end]), abs=1e-9)


@pytest.mark.parametrize(
    ("steps", "stop", "number"),
    [
        (7, 3, signal.SIGTERM),
        (32, 31, signal.SIGINT),
        pytest.param(32, 7, signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(437, 430, signal.SIGTERM, marks=pytest.mark.long),
    ],
)
def test_a_run_that_was_stopped_saves_and_ends_with_the_same_bytes(steps, stop, number, tmp_path, monkeypatch):
    config = config_of("dvae", steps)
    whole = run(config, tmp_path / "whole", WHOLE)
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        interrupted_after(patch, stop, number)
        run(config, tmp_path / "stopped", WHOLE)
    assert RunFolder(tmp_path / "stopped" / config.run_name).saved_step == stop
    assert content(run(config, tmp_path / "stopped", WHOLE)) == content(whole)


def test_two_starts_at_once_train_one_run_once(tmp_path):
    both = [start("vae", tmp_path, 30) for _ in range(2)]
    for process in both:
        process.join()
        assert process.exitcode == 0
    (folder,) = [path for path in tmp_path.iterdir() if path.is_dir()]
    lines = (folder / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [*range(3, 31, 3)]


def test_an_unwritable_place_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    config = configure("vae", "circles", "quick", **SETTINGS)
    with pytest.raises(UserError, match="cannot write"):
        run(config, tmp_path / "file", QUIET)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def interrupted_after(monkeypatch, steps, number=signal.SIGINT):
    """Send a signal, that of Ctrl-C, at that step of every training."""
    original = Trainer.update

    def update(trainer, loss, batch):
        original(trainer, loss, batch)
        trainer.taken = getattr(trainer, "taken", 0) + 1
        if trainer.taken == steps:
            os.kill(os.getpid(), number)

    monkeypatch.setattr(Trainer, "update", update)


def test_ctrl_c_is_no_exception_and_says_how_to_resume(tmp_path, monkeypatch):
    interrupted_after(monkeypatch, 3)
    config = configure("vae", "circles", "quick", **SETTINGS)
    with pytest.raises(KeyboardInterrupt, match=r"stopped at step 3 of 400, saved in .*; start it again to resume"):
        try:
            run(config, tmp_path, QUIET)
        except Exception:
            pytest.fail("a handler of errors caught the interrupt")


def test_ctrl_c_in_a_grid_search_stops_all_of_it(monkeypatch):
    from sklearn.model_selection import GridSearchCV

    from lddr import DisentangledVAE

    interrupted_after(monkeypatch, 2)
    estimator = DisentangledVAE("vae", "quick", 50, settings={"width": 4}, machine=QUIET)
    search = GridSearchCV(estimator, {"random_state": [0, 1]}, cv=2, scoring=lambda model, images: 0.0)
    with pytest.raises(KeyboardInterrupt, match="nothing kept; with out=FOLDER it could be resumed"):
        search.fit(np.zeros((8, 16, 16), np.uint8))


def test_ctrl_c_at_the_last_step_finishes(tmp_path, monkeypatch):
    interrupted_after(monkeypatch, 5)
    config = configure("vae", "circles", "quick", **SETTINGS | {"steps": 5})
    assert RunFolder(run(config, tmp_path, QUIET)).is_finished


def half_done(out, monkeypatch, seed=0, meanwhile=None, model="vae"):
    """A run that ends in an accident at step 30, with its config; `meanwhile` is called with its folder at step 24."""
    config = configure(model, "circles", "quick", **SETTINGS | {"steps": 40}, seed=seed)
    update = Trainer.update

    def fragile(self, loss, batch):
        self.calls = getattr(self, "calls", -1) + 1
        if self.calls == 23 and meanwhile:
            meanwhile(out / config.run_name)
        if self.calls == 29:
            raise RuntimeError("an accident")
        return update(self, loss, batch)

    with monkeypatch.context() as patch, pytest.raises((RuntimeError, UserError)) as end:
        patch.setattr(Trainer, "update", fragile)
        run(config, out, EVERY_STEP)
    return config, end.value


@pytest.mark.parametrize("model", [pytest.param("dvae", marks=pytest.mark.long), "qlae"])  # with buffers, with weights
def test_a_checkpoint_of_a_version_that_called_the_latent_a_family_is_resumed(model, tmp_path, monkeypatch):
    config, _ = half_done(tmp_path / "older", monkeypatch, model=model)
    folder = RunFolder(tmp_path / "older" / config.run_name)
    found = checkpoint.load_newest(folder.checkpoints, pytest.fail)
    older = {name.replace("vae.latent.", "vae.family."): tensor for name, tensor in found.tensors.items()}
    assert older.keys() != found.tensors.keys()
    shutil.rmtree(folder.checkpoints)
    checkpoint.save(folder.checkpoints, found.step, older, found.facts)
    again = checkpoint.load_newest(folder.checkpoints, pytest.fail)
    assert again.tensors.keys() == found.tensors.keys()
    assert content(run(config, tmp_path / "older", QUIET)) == content(run(config, tmp_path / "whole", WHOLE))


def test_a_checkpoint_of_another_seed_is_refused(tmp_path, monkeypatch):
    config, _ = half_done(tmp_path, monkeypatch)
    other, _ = half_done(tmp_path, monkeypatch, seed=1)
    for file in (tmp_path / config.run_name / "checkpoint").iterdir():
        file.unlink()
    shutil.copytree(
        tmp_path / other.run_name / "checkpoint", tmp_path / config.run_name / "checkpoint", dirs_exist_ok=True
    )
    with pytest.raises(UserError, match=f"is of another run, '{other.fingerprint}', not of {config.fingerprint}"):
        run(config, tmp_path, QUIET)


def test_a_log_that_lost_lines_before_resuming_is_noticed(tmp_path, monkeypatch):
    config, _ = half_done(tmp_path, monkeypatch)
    (tmp_path / config.run_name / "log.jsonl").write_text("")
    with pytest.raises(UserError, match=r"log\.jsonl has no line of step 28, .*; move that folder away"):
        run(config, tmp_path, QUIET)


@pytest.mark.parametrize("lost", ["everything", pytest.param("config.json", marks=pytest.mark.long)])
def test_a_folder_that_vanishes_while_it_trains_is_a_sentence(tmp_path, monkeypatch, lost):
    def remove(folder):
        shutil.rmtree(folder) if lost == "everything" else (folder / lost).unlink()

    config, error = half_done(tmp_path, monkeypatch, meanwhile=remove)
    assert isinstance(error, UserError)
    assert "config.json has vanished while it trained; start the same command again" in str(error)
    assert run(config, tmp_path, QUIET)
    assert not RunFolder(tmp_path / config.run_name).missing


@pytest.mark.parametrize("lost", [pytest.param("everything", marks=pytest.mark.long), "log.jsonl"])
def test_a_folder_that_vanishes_at_the_end_is_no_finished_run(tmp_path, monkeypatch, lost):
    config = configure("vae", "circles", "quick", **SETTINGS | {"steps": 5})
    folder = tmp_path / config.run_name
    machine = replace(QUIET, checkpoint_seconds=600)  # a checkpoint would count on the lines of the log

    def remove(*given):
        shutil.rmtree(folder) if lost == "everything" else (folder / lost).unlink()
        return {"elbo": -1.0, "elbo_noiseless": -1.0}

    with monkeypatch.context() as patch, pytest.raises(UserError, match="has vanished while it trained"):
        patch.setattr("lddr.runs.run.bounds", remove)
        run(config, tmp_path, machine)
    assert not RunFolder(folder).is_finished
    run(config, tmp_path, machine)
    assert RunFolder(folder).is_finished


def test_a_run_that_reads_its_losses_at_lines_and_checkpoints_alone_is_the_same(tmp_path, monkeypatch):
    config = configure("factor-vae", "circles", "quick", **SETTINGS | {"steps": 57, "discriminator_width": 20})
    whole = run(config, tmp_path / "looking", WHOLE)
    reads, read = [], LossAverages.read
    monkeypatch.setattr(LossAverages, "read", lambda self: reads.append(read(self)) or reads[-1])
    monkeypatch.setattr("lddr.training.accelerator.FOUND_INF", ("cpu",))
    assert content(run(config, tmp_path / "blind", WHOLE)) == content(whole)
    assert list(map(len, reads)) == [5] * 11 + [2]


def of_an_older_version(folder):
    """Make its newest checkpoint one of before checkpoints had a format."""
    found = checkpoint.load_newest(folder.checkpoints, pytest.fail)
    facts = {"fingerprint": found.facts["fingerprint"]}
    checkpoint.save(folder.checkpoints, found.step, found.tensors, facts)
    return found.step


@pytest.mark.parametrize(
    ("model", "steps", "sentence"),
    [
        ("dvae", 40, "whose noise schedule ended a step earlier; resuming with the schedule of this version"),
        pytest.param("vae", 40, "", marks=pytest.mark.long),
        ("vae", 30, "which logged a run of 30 steps in other lines; starting from the beginning"),
    ],
)
def test_a_checkpoint_of_an_older_version_is_resumed_or_the_run_starts_again(
    model, steps, sentence, tmp_path, monkeypatch, capfd
):
    monkeypatch.setattr("lddr.runs.loop.LOG_EVERY", 4)  # runs of 40 steps and more logged the same lines then
    config = configure(model, "circles", "quick", **SETTINGS | {"steps": steps})
    whole, folder = run(config, tmp_path / "whole", WHOLE), RunFolder(tmp_path / "older" / config.run_name)
    with monkeypatch.context() as patch, pytest.raises(Stopped):
        interrupted_after(patch, 15)
        run(config, tmp_path / "older", WHOLE)
    assert of_an_older_version(folder) == 15
    capfd.readouterr()
    run(config, tmp_path / "older", WHOLE)
    said = capfd.readouterr().err
    older = f"the checkpoint of step 15 in {folder} is of an older version of lddr, {sentence}"
    assert older in said if sentence else "older version" not in said
    assert content(folder.path) == content(whole)
