"""Posterior collapse is noticed while a model trains, and the quick presets avoid it."""

import numpy as np
import pytest
import torch

from lddr import losses
from lddr.config import configure
from lddr.data.in_memory import ArrayDataset
from lddr.hardware import Machine
from lddr.likelihoods import Bernoulli
from lddr.runs.index import read_run
from lddr.runs.run import run
from lddr.training.batches import Batches, as_tensor
from lddr.training.collapse import LatentUse, collapse_warning, latent_use
from lddr.training.trainer import Trainer, reconstruction_weight

QUIET = Machine("cpu", 1, quiet=True)
NARROW = {"width": 8, "batch_size": 32}


def squares(background, colour, size=3, count=600, side=16):
    """A square of one colour somewhere on a background: what is on a stranger's pictures."""
    generator = np.random.default_rng(0)
    images = np.full((count, side, side, 3), background, np.uint8)
    for image, (x, y) in zip(images, generator.integers(0, side - size + 1, (count, 2)), strict=True):
        image[y : y + size, x : x + size] = colour
    return ArrayDataset(images)


def learned(dataset, steps=300, **settings):
    config = configure("dvae", "array", "quick", resolution=16, steps=4_000, **NARROW, **settings)
    trainer = Trainer(config, dataset, torch.device("cpu"))
    batches = Batches(trainer, dataset)
    for step in range(steps):
        trainer.step(batches.batch(step))
    return latent_use(trainer.vae, as_tensor(dataset.images(np.arange(256)) / np.float32(255), trainer.device))


@pytest.mark.parametrize(
    ("background", "colour"),
    [pytest.param(250, 40, id="light"), pytest.param(2, 200, id="dark", marks=pytest.mark.long)],
)
def test_quick_latents_do_not_saturate_on_light_or_dark_images(background, colour):
    dataset = squares(background, colour)
    saturated, usual = learned(dataset, mean_bias=False), learned(dataset)
    assert saturated.active == 0
    assert saturated.saturated >= 4  # of six: certain of one category, the same for all images
    assert usual.saturated == 0
    assert usual.active >= 2


def test_contrast_is_what_a_perfect_copy_gains_on_the_mean_image():
    images = torch.tensor([[0.2, 1.0], [0.6, 1.0]]).reshape(2, 1, 2, 1)

    def cost(wanted, given):
        return -wanted * np.log(given) - (1 - wanted) * np.log(1 - given)

    by_mean = (cost(0.2, 0.4) + cost(0.6, 0.4)) / 2  # the second pixel is always white and costs nothing
    by_copy = (cost(0.2, 0.2) + cost(0.6, 0.6)) / 2
    assert losses.mean_picture(images) == pytest.approx(by_mean)
    assert Bernoulli().contrast(images) == pytest.approx(by_mean - by_copy)


def test_the_reconstruction_weighs_more_only_where_contrast_is_missing():
    faint, clear = squares(128, 140), squares(250, 40)
    training = configure("dvae", "array", "quick", resolution=16).training
    assert training.min_contrast == 300
    assert reconstruction_weight(training, clear, Bernoulli()) == training.reconstruction_weight == 16
    images = torch.from_numpy(faint.images(np.arange(600)) / np.float32(255))
    assert reconstruction_weight(training, faint, Bernoulli()) * Bernoulli().contrast(images) == pytest.approx(
        300, rel=0.05
    )
    assert (
        reconstruction_weight(configure("dvae", "circles").training, faint, Bernoulli()) == 1
    )  # the paper's stays as it is


def test_a_saturated_model_is_reported_while_it_trains(tmp_path, capsys):
    config = configure("dvae", "array", "quick", resolution=16, steps=400, mean_bias=False)
    folder = run(config, tmp_path, QUIET, squares(250, 40))
    first, last = capsys.readouterr().err.splitlines()
    assert "after 320 steps 6 of 6 latents put every image into one category" in first
    assert first.endswith("--mean-bias")
    assert "has learned nothing" in last
    assert read_run(folder).collapsed
    assert read_run(folder).scores["saturated_latents"] == 6


def test_the_remedy_is_one_that_is_not_in_use_yet():
    saturated, inactive = LatentUse(6, 0, 6), LatentUse(6, 0, 0)
    plain, quick = configure("dvae", "circles"), configure("dvae", "array", "quick")
    assert collapse_warning(300, saturated, plain).endswith("--mean-bias")
    assert collapse_warning(300, saturated, quick).endswith("--learning-rate 0.00033")
    assert collapse_warning(1_000, inactive, plain).endswith("--min-contrast 300")
    assert "min-contrast" not in collapse_warning(1_000, inactive, quick)
