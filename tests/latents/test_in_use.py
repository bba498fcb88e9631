"""The discrete latents in a run folder, in Python and in the explorer."""

import numpy as np
import pytest

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.explorer.open_model import open_model
from lddr.latents import latents
from lddr.runs.run import Machine, run
from lddr.trained import Trained

QUIET = Machine(device="cpu", threads=1, quiet=True)
SMALL = {"resolution": 16, "width": 4, "steps": 3, "batch_size": 8, "num_latents": 3}
POINTS = {name: {"latent": name} for name in latents if latents[name].is_discrete}
POINTS["categorical, both"] = {"latent": "categorical", "hard": True, "learn_positions": True}


@pytest.fixture(scope="module", params=POINTS.values(), ids=POINTS)
def folder(request, tmp_path_factory):
    config = configure(objective="elbo", dataset="circles", preset="quick", **request.param | SMALL)
    return run(config, tmp_path_factory.mktemp("runs"), QUIET)


def test_a_trained_model_answers_in_values(folder):
    model, images = Trained.load(folder), load_dataset("circles", 16).images(np.arange(0, 1600, 200))
    values = np.stack([model.values_of(latent) for latent in range(3)])
    assert values.shape == (3, model.config.latent.num_categories)
    assert (np.diff(values) >= 0).all()
    posterior, categories = model.posterior(images), model.categories(images)
    assert np.allclose(posterior.sum(2), 1, atol=1e-5)
    assert model.traverse(images[0], 1).shape == (values.shape[1], 16, 16, 1)
    taken = values[np.arange(3), categories]
    if model.vae.latent.name != "categorical" or model.vae.latent.hard_codes:
        assert np.array_equal(model.represent(images), taken)
        assert np.array_equal(model.reconstruct(images), model.decode(categories))
    else:
        assert np.allclose(model.represent(images), (posterior * values).sum(2), atol=1e-5)


def test_a_copy_says_the_same(folder, tmp_path):
    model, images = Trained.load(folder), load_dataset("circles", 16).images([3, 700])
    model.save(tmp_path)
    assert np.array_equal(Trained.load(tmp_path).represent(images), model.represent(images))


def test_the_explorer_has_its_values_and_tells_latents_that_never_move(folder):
    model = open_model(folder, "cpu")
    codes = model.trained.represent(model.dataset.images(np.arange(1600)))
    for about in model.description()["latents"]:
        number = about["number"]
        assert about["values"] == model.trained.values_of(number).tolist()
        assert about["categories"] == list(range(about["of"]))
        assert not (about["active"] and np.ptp(codes[:, number]) == 0)
    answer = model.encode({"index": 5})
    assert [sum(row) for row in answer["probabilities"]] == pytest.approx([1, 1, 1], abs=1e-5)
    assert model.traverse(answer["values"], 0).shape[0] == 16
