"""A step on an accelerator never waits for the host: shown on torch's `meta` device, whose tensors have no values."""

import numpy as np
import pytest

from lddr.bench.launch import META, Launches, counted
from lddr.config import configure, supervisions
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset
from lddr.latents import latents
from lddr.models import models
from lddr.runs.folder import RunFolder
from lddr.runs.machine import Machine
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer
from lddr.training.averages import LOG_EVERY, LossAverages
from lddr.training.loop import train

SMALL = {"resolution": 16, "width": 4, "batch_size": 8, "steps": 1000}
TRICKS = {
    "schedule": "cosine",
    "weight_decay": 0.1,
    "clip": 1.0,
    "clip_of": "weights",
    "reconstruction_weight": 4.0,
    "discriminator_schedule": "model",
}
SUPERVISED = [
    (models.name_of(family, objective), loss)
    for loss, families in supervisions().items()
    for family in families
    for objective in ("elbo", "factor")
]


def config_of(model, **settings):
    narrow = {"discriminator_width": 20} if models[model].objective == "factor" else {}
    return configure(model, "circles", "quick", **SMALL | narrow | settings)


def assert_it_waits_for_nobody(found, at_least=50):
    assert sum(found.launches.values()) > at_least  # it did train
    assert not found.copies
    assert not found.reads
    assert not found.on_host


@pytest.mark.parametrize("model", [*models, "categorical+nhp"])
def test_no_model_copies_or_reads_anything_in_a_step(model):
    assert_it_waits_for_nobody(counted(config_of(model), load_dataset("circles", 16)))


@pytest.mark.parametrize(("model", "loss"), SUPERVISED)
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
    trainer = Trainer(config_of("dvae"), images, META)
    batches, averages = Batches(trainer, images, keep=True), LossAverages(0, None)
    batches.batch(0)
    with Launches() as counter:
        for step in range(LOG_EVERY):
            averages.add(trainer.step(batches.batch(step)))
    assert_it_waits_for_nobody(counter, LOG_EVERY * 50)
    assert counter.launches["_fused_adam_"] == LOG_EVERY
    with Launches() as counter:
        batches.batch(LOG_EVERY)
    assert 0 < sum(counter.copies.values()) <= 3  # a block: numbers of images, noise, schedules


def test_the_loop_reads_nothing_before_the_line_of_its_log(tmp_path, monkeypatch):
    dataset, taken, step = load_dataset("circles", 16), [], Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda self, inputs: taken.append(1) or step(self, inputs))
    trainer = Trainer(config_of("factor-vae"), dataset, META)
    batches = Batches(trainer, dataset)
    machine = Machine(quiet=False)  # showing how far it is shall not read anything
    with Launches() as counter, pytest.raises(NotImplementedError, match="meta"):
        train(trainer, batches, RunFolder(tmp_path), machine)
    assert len(taken) == LOG_EVERY
    assert sum(counter.reads.values()) == 1
    assert counter.copies == {"_to_copy": 5}  # one block: images, noise, permutations, schedules; images to watch


def test_a_learner_that_waits_would_be_found_out():
    trainer = Trainer(config_of("vae"), load_dataset("circles", 16), META)
    trainer.waits = True
    inputs = Batches(trainer, load_dataset("circles", 16)).batch(0)
    with Launches() as counter, pytest.raises(RuntimeError, match="item"):
        trainer.step(inputs)
    assert counter.reads == {"_local_scalar_dense": 1}
