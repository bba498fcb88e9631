import threading

import numpy as np
import pytest
import torch

from lddr.config import configure
from lddr.data.dataset import as_floats, stream
from lddr.data.factors import Factor, FactorTable
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset
from lddr.training import accelerator
from lddr.training.accelerator import BatchesAhead
from lddr.training.batches import Batches, as_tensor
from lddr.training.trainer import Trainer

CPU = torch.device("cpu")


def trainer_of(dataset, model="dvae", **settings):
    size = dataset.image_shape[0]
    config = configure(
        model, "circles", "quick", **{"resolution": size, "width": 4, "batch_size": 8, "steps": 250} | settings
    )
    return Trainer(config, dataset, CPU)


def few(name):
    whole = load_dataset(name, 32)
    return ArrayDataset(whole.images(np.arange(0, len(whole), len(whole) // 500)))


@pytest.mark.parametrize("name", ["dsprites", "rooms"])
def test_images_kept_on_the_device_make_the_same_batches(name):
    images = few(name)
    trainer = trainer_of(images, seed=3)
    looked_up, kept = Batches(trainer, images), BatchesAhead(trainer, images, keep=True)
    for step in range(3):
        batch = looked_up.batch(step).images
        assert torch.equal(batch, as_tensor(images.batch(3, step, 8), CPU))
        assert torch.equal(batch, kept.batch(step).images)
        assert kept.batch(step).images.is_contiguous(memory_format=torch.channels_last)


def test_images_become_channels_last_tensors():
    images = np.random.default_rng(0).random((2, 4, 4, 3), np.float32)
    tensor = as_tensor(images, CPU)
    assert tensor.shape == (2, 3, 4, 4)
    assert tensor.is_contiguous(memory_format=torch.channels_last)
    assert np.array_equal(tensor.permute(0, 2, 3, 1), images)


def test_labelled_batches_are_stateless_and_come_from_the_labelled_images():
    dataset = load_dataset("color_dsprites", 32)
    trainer = trainer_of(dataset, "vae", supervision="l2", labels=20, seed=5, num_latents=6)
    batches = Batches(trainer, dataset)
    images, targets, known = batches.batch(4).labelled
    assert known.all()
    assert torch.equal(images, batches.batch(4).labelled.images)
    assert not torch.equal(images, batches.batch(5).labelled.images)
    numbers, unseen = trainer.config.supervision.split(dataset)
    known = as_tensor(as_floats(dataset.images(numbers, stream(5, "labelled images"))), CPU)
    factors = dataset.space.factors_of(numbers) / (np.array(dataset.space.sizes) - 1)
    for image, target in zip(images, targets, strict=True):
        (place,) = [number for number in range(len(known)) if torch.equal(known[number], image)]
        assert np.allclose(target, factors[place])
    assert len(batches.validation.targets) == len(unseen) == 2


def test_labels_that_are_unknown_are_marked_and_the_images_are_those_of_the_labels():
    rows = np.array([[0, 2], [-1, 1], [1, -1], [-1, -1], [-1, 0]])
    space = FactorTable((Factor("a", 2), Factor("b", 3)), np.tile(rows, (4, 1)))
    dataset = ArrayDataset(np.arange(20, dtype=np.uint8)[:, None, None] * np.ones((16, 16), np.uint8), space)
    trainer = trainer_of(dataset, "dvae", supervision="masked", labels=16, num_latents=3, num_categories=5)
    batches = Batches(trainer, dataset)
    seen = set()
    for step in range(20):
        labelled = batches.batch(step).labelled
        numbers = (labelled.images[:, 0, 0, 0] * 255).round().long()
        assert labelled.images.is_contiguous(memory_format=torch.channels_last)
        assert np.array_equal(labelled.known, space.known[numbers])
        values = torch.where(labelled.known, labelled.targets, -1)
        places = {0: [0, 4], 1: [0, 2, 4]}  # of each value among five categories
        expected = [[places[column][value] if value >= 0 else -1 for column, value in enumerate(space.rows[number])]
                    for number in numbers]  # fmt: skip
        assert values.tolist() == expected
        seen |= set(numbers.tolist())
    train, _ = trainer.config.supervision.split(dataset)
    assert seen == set(train.tolist())


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        ("annealed-vae", {"schedule": "cosine"}),
        ("factor-dvae", {}),
        ("dvae", {"supervision": "masked", "labels": 20}),
        ("categorical+nhp", {}),
    ],
)
@pytest.mark.parametrize("largest", [accelerator.BLOCK_BYTES, 200_000])
def test_blocks_made_ahead_hold_the_same_numbers(model, settings, largest, monkeypatch):
    monkeypatch.setattr(accelerator, "BLOCK_BYTES", largest)
    dataset = load_dataset("circles", 16)
    trainer = trainer_of(dataset, model, **settings)
    plain, ahead = Batches(trainer, dataset), BatchesAhead(trainer, dataset)
    for step in (0, 1, 99, 100, 101, 137, 199, 7, 200, 249):  # over the ends of blocks, and back
        one, other = plain.batch(step), ahead.batch(step)
        for name in ("images", "noise", "random"):
            assert getattr(one, name) is getattr(other, name) is None or torch.equal(
                getattr(one, name), getattr(other, name)
            )
        for name in ("noise_scale", "learning_rate", "schedule"):
            assert getattr(other, name).item() == np.float32(getattr(one, name))
        if one.labelled is not None:
            assert all(map(torch.equal, one.labelled, other.labelled))


def test_the_next_block_is_made_by_a_thread_and_none_after_the_last(monkeypatch):
    dataset = load_dataset("circles", 16)
    batches = BatchesAhead(trainer_of(dataset), dataset)
    made, draw = [], type(dataset).draw

    def noted(self, generator, count):
        made.append(threading.current_thread())
        return draw(self, generator, count)

    monkeypatch.setattr(type(dataset), "draw", noted)
    for step, blocks_by_then in ((0, 200), (99, 200), (100, 250), (200, 250), (249, 250)):
        batches.batch(step)
        batches._coming.result()
        assert len(made) == blocks_by_then
    assert threading.main_thread() not in made


def test_an_error_of_the_thread_reaches_who_trains(monkeypatch):
    dataset = load_dataset("circles", 16)
    batches = BatchesAhead(trainer_of(dataset), dataset)
    monkeypatch.setattr(type(dataset), "draw", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        batches.batch(0)
