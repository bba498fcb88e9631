"""A step on an accelerator never waits for the host: shown on torch's `meta` device, whose tensors have no values.

Recorded and replayed steps are shown on the CPU, with a stand-in for the graph.
"""

import math

import numpy as np
import pytest
import torch

from benchmarks.launch import META, Launches, counted
from lddr.config import configure, supervisions
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset
from lddr.hardware import Machine
from lddr.latents import latents
from lddr.models import models
from lddr.runs.folder import RunFolder
from lddr.runs.loop import train
from lddr.training.accelerator import WARM_UP, AsynchronousTrainer, BatchesAhead, batches_for, trainer_on
from lddr.training.batches import Batches
from lddr.training.trainer import LOG_EVERY, LossAverages, Trainer, log_interval

SMALL = {"resolution": 16, "width": 4, "batch_size": 8, "steps": 1000}
TRICKS = {
    "schedule": "cosine",
    "weight_decay": 0.1,
    "clip": 1.0,
    "clip_of": "weights",
    "reconstruction_weight": 4.0,
    "discriminator_schedule": "model",
}
FAST = {"annealed-dvae", "dip-dvae-i", "dip-vae-ii", "factor-qvae", "one-hot-vae", "qlae", "tc-dvae", "tripod", "vae"}
FAST |= {"von-mises-vae", "vq-vae", "categorical+nhp"}
SUPERVISED = [
    (models.name_of(family, objective), loss)
    for loss, families in supervisions().items()
    for family in families
    for objective in ("elbo", "factor")
]


def some(cases, is_fast):
    """All cases, of which only the fast ones do not wait for `make test-long`."""
    return [pytest.param(*case, marks=() if is_fast(case) else pytest.mark.long) for case in cases]


def config_of(model, **settings):
    narrow = {"discriminator_width": 20} if models[model].objective == "factor" else {}
    return configure(model, "circles", "quick", **SMALL | narrow | settings)


def assert_it_waits_for_nobody(found, at_least=50):
    assert sum(found.launches.values()) > at_least  # it did train
    assert not found.copies
    assert not found.reads
    assert not found.on_host


@pytest.mark.parametrize(
    "model", some([(model,) for model in (*models, "categorical+nhp")], lambda case: case[0] in FAST)
)
def test_no_model_copies_or_reads_anything_in_a_step(model):
    assert_it_waits_for_nobody(counted(config_of(model), load_dataset("circles", 16)))


@pytest.mark.parametrize(
    ("model", "loss"),
    some(
        SUPERVISED,
        lambda case: case[1] != "cross-entropy" and (models[case[0]].objective == "elbo" or case[0] == "factor-dvae"),
    ),
)
def test_nor_does_a_supervised_one(model, loss):
    found = counted(config_of(model, supervision=loss, labels=20), load_dataset("circles", 16))
    assert_it_waits_for_nobody(found)


def test_every_family_with_supervision_was_tried():
    tried = {(models[model].latent, loss) for model, loss in SUPERVISED}
    assert tried == {(name, loss) for name in latents for loss in latents[name].supervisions}


def test_nor_do_a_schedule_decay_and_clipping():
    assert_it_waits_for_nobody(counted(config_of("factor-dvae", **TRICKS), load_dataset("circles", 16)))


def test_nor_do_images_that_are_kept_on_the_device():
    images = ArrayDataset(np.zeros((50, 16, 16, 3), np.uint8))
    trainer = trainer_on(META, config_of("dvae"), images)
    batches, averages = BatchesAhead(trainer, images, keep=True), LossAverages(0, None)
    batches.batch(0)
    with Launches() as counter:
        for step in range(10):
            averages.add(trainer.step(batches.batch(step)))
        batches.batch(LOG_EVERY - 1)  # the last of the block
    assert_it_waits_for_nobody(counter, 10 * 50)
    assert counter.launches["_fused_adam_"] == 10
    with Launches() as counter:
        batches.batch(LOG_EVERY)
    assert 0 < sum(counter.copies.values()) <= 3  # a block: numbers of images, noise, schedules


def test_the_loop_reads_nothing_before_the_line_of_its_log(tmp_path, monkeypatch):
    dataset, taken, step = load_dataset("circles", 16), [], AsynchronousTrainer.step
    monkeypatch.setattr(AsynchronousTrainer, "step", lambda self, batch: taken.append(1) or step(self, batch))
    trainer = trainer_on(META, config_of("factor-vae", steps=100), dataset)
    batches = batches_for(trainer, dataset)
    machine = Machine(quiet=False, checkpoint_seconds=math.inf)  # showing progress must not read; a checkpoint does
    with Launches() as counter, pytest.raises(NotImplementedError, match="meta"):
        train(trainer, batches, RunFolder(tmp_path), machine)
    assert len(taken) == log_interval(100) == 10
    assert sum(counter.reads.values()) == 1
    assert counter.copies == {"_to_copy": 5}  # one block: images, noise, permutations, schedules; images to watch


def test_a_trainer_that_waits_would_be_found_out():
    dataset = load_dataset("circles", 16)
    trainer = Trainer(config_of("vae"), dataset, META)
    batch = batches_for(trainer, dataset).batch(0)
    with Launches() as counter, pytest.raises(RuntimeError, match="item"):
        trainer.step(batch)
    assert counter.reads == {"_local_scalar_dense": 1}


def test_only_devices_whose_adam_respects_found_inf_are_not_waited_for():
    dataset, cpu = load_dataset("circles", 16), torch.device("cpu")
    waiting, free = (trainer_on(device, config_of("vae"), dataset) for device in (cpu, META))
    assert (type(waiting), type(free)) == (Trainer, AsynchronousTrainer)
    assert (waiting.checks_every_step, free.checks_every_step) == (True, False)
    assert (type(batches_for(waiting, dataset)), type(batches_for(free, dataset))) == (Batches, BatchesAhead)


# replayed steps

STEPS = WARM_UP + 4
CIRCLES = load_dataset("circles", 16)
CASES = [
    ("annealed-vae", {"capacity_steps": 5, "schedule": "cosine"}),
    ("factor-dvae", {"discriminator_width": 20, "weight_decay": 0.1}),
    ("dvae", {"supervision": "masked", "labels": 20, "omega": 5.0}),
    ("gaussian+tripod", {}),
]


def trainer_of(model, settings):
    small = {"resolution": 16, "width": 4, "batch_size": 8, "steps": STEPS}
    return AsynchronousTrainer(configure(model, "circles", "quick", **small | settings), CIRCLES, torch.device("cpu"))


class Recorder:
    """Stands in for a CUDA graph: recording changes nothing, replaying writes where the recorded step wrote."""

    def __init__(self, trainer):
        self.trainer, self.replays = trainer, 0

    def __call__(self, body):
        before = {name: tensor.clone() for name, tensor in self.trainer.tensors().items()}
        assert all(weight.grad is None for weight in self.trainer.vae.parameters())
        terms = body()
        self.trainer.restore(before)

        def replay():
            self.replays += 1
            for name, value in body().items():
                terms[name].copy_(value)

        return terms, replay


@pytest.mark.parametrize(("model", "settings"), CASES)
def test_a_replayed_step_is_the_same_step(model, settings):
    plain, replayed = trainer_of(model, settings), trainer_of(model, settings)
    recorder = Recorder(replayed)
    replayed.replay(lambda step: step, recorder)
    for step in range(STEPS):
        expected, found = (each.step(BatchesAhead(each, CIRCLES).batch(step)) for each in (plain, replayed))
        assert list(found) == list(expected)
        assert all(torch.equal(found[name], expected[name]) for name in expected), step
    assert recorder.replays == STEPS - WARM_UP
    assert all(torch.equal(tensor, plain.tensors()[name]) for name, tensor in replayed.tensors().items())


def test_what_a_replayed_step_gives_stays_in_its_place():
    trainer = trainer_of("vae", {})
    trainer.replay(lambda step: step, Recorder(trainer))
    batches = BatchesAhead(trainer, CIRCLES)
    given = [trainer.step(batches.batch(step))["loss"].data_ptr() for step in range(STEPS)]
    assert len(set(given[WARM_UP:])) == 1
