"""Tests that would fail if learning were broken."""

import numpy as np
import pytest

import lddr
from lddr.data.factors import Factor, FactorGrid
from lddr.data.in_memory import ArrayDataset
from lddr.models import models
from lddr.runs.folder import read_log
from lddr.runs.run import Machine, run

LONG = pytest.mark.long
QUIET = Machine(device="cpu", threads=1, quiet=True)


SHORT = ("vae", "factor-dvae", "qlae")  # of each kind of latent, with and without a discriminator


@pytest.mark.parametrize("model", [pytest.param(name, marks=() if name in SHORT else LONG) for name in models])
def test_200_steps_improve_the_bound_clearly(model, tmp_path):
    from lddr.config import configure

    settings = {
        "annealed": {"capacity_steps": 100},
        "factor": {"discriminator_width": 100},
        "tripod": {"decoder": "deconvolution", "hessian_weight": 1e-4},  # decodes much; the weight published for MPI3D
    }.get(models[model].objective, {})
    settings |= {"mean_bias": False}  # to become dark is most of what is learned in so few steps
    config = configure(model, "circles", "quick", resolution=16, width=8, steps=200, learning_rate=1e-3, **settings)
    errors = [line["reconstruction"] for line in read_log(run(config, tmp_path, QUIET) / "log.jsonl")]
    first, last = np.mean(errors[:5]), np.mean(errors[5:])
    untrained = 16 * 16 * np.log(2)  # a guess of one half for every pixel
    assert first < 0.8 * untrained
    assert last < 0.75 * first


def test_a_single_categorical_latent_recovers_a_single_factor():
    columns = np.arange(16)
    images = np.zeros((8, 16, 16, 1), np.uint8)
    for value in range(8):
        images[value, :, (columns >= 2 * value) & (columns < 2 * value + 2)] = 255
    dataset = ArrayDataset(images, FactorGrid((Factor("column", 8),)))
    settings = {
        "num_latents": 1,
        "num_categories": 16,
        "width": 8,
        "steps": 1500,
        "learning_rate": 1e-3,
        "noise_end": 1.0,
    }
    model = lddr.train(dataset, "dvae", preset="paper", machine=QUIET, **settings)
    categories = model.categories(images)[:, 0]
    assert len(set(categories.tolist())) == 8, f"the eight images went to the categories {categories}"
    assert np.median(model.posterior(images).max(axis=2)) > 0.9  # discrete, but an image may share two neighbours
    assert np.mean((model.reconstruct(images) > 0.5) == (images > 0)) > 0.99
    assert np.mean((model.decode(categories[:, np.newaxis]) > 0.5) == (images > 0)) > 0.98
