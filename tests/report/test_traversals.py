import numpy as np
import pytest

from lddr.data.rendered.circles import Circles
from lddr.report.figures import drawn_images
from lddr.report.traversals import spread, traversals
from lddr.runs.index import list_runs
from lddr.trained import Trained, train


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A VAE, and a D-VAE with masked categories: hardly trained, which is enough to be drawn."""
    out = tmp_path_factory.mktemp("runs")
    train("circles", "vae", "quick", out=out, steps=1, width=1, num_latents=3)
    train("circles", "dvae", "quick", out=out, steps=1, width=1, num_latents=3, supervision="masked")
    return {str(run.value("model")): run for run in list_runs(out)}


@pytest.mark.parametrize(
    ("count", "wanted", "places"), [(3, 8, [0, 1, 2]), (40, 4, [0, 13, 26, 39]), (64, 1, [0]), (1, 8, [0])]
)
def test_values_are_spread_evenly(count, wanted, places):
    assert spread(count, wanted).tolist() == places


def test_masked_latents_are_shown_with_the_values_of_their_factors(runs):
    model, dataset = Trained.load(runs["dvae"].folder), Circles(16)
    image = drawn_images(dataset, 1)[0]
    rows = traversals(model, dataset, image, columns=4)
    assert [row.title for row in rows] == ["x", "y"]  # the third latent is tied to nothing
    assert [row.labels for row in rows] == 2 * [("0.2", "0.4", "0.6", "0.8")]
    whole = model.traverse(image, 1)
    assert len(whole) == 40  # one for each value, not for each of the 64 categories
    assert np.array_equal(rows[1].pictures, whole[[0, 13, 26, 39]])


def test_other_latents_are_shown_from_the_most_spread_to_the_least(runs):
    model, dataset = Trained.load(runs["vae"].folder), Circles(16)
    rows = traversals(model, dataset, drawn_images(dataset, 1)[0])
    spreads = model.represent(drawn_images(dataset, 256)).std(axis=0)
    assert [row.latent for row in rows] == np.argsort(-spreads)[: len(rows)].tolist()
    assert {row.title for row in rows} <= {"latent 0", "latent 1", "latent 2"}
    named = traversals(model, dataset, drawn_images(dataset, 1)[0], known={rows[0].latent: "x"})
    assert named[0].title == f"{rows[0].title}\nx"
    assert rows[0].labels[0] == "−2"
    assert rows[0].labels[-1] == "2"


def test_idle_latents_are_left_out(runs, monkeypatch):
    model, dataset = Trained.load(runs["vae"].folder), Circles(16)
    monkeypatch.setattr(model, "represent", lambda images: np.outer(np.arange(len(images)), [0.0, 1.0, 0.0]))
    monkeypatch.setattr(model, "traverse", lambda image, latent: np.zeros((10, 16, 16, 1)))
    assert [row.latent for row in traversals(model, dataset, drawn_images(dataset, 1)[0])] == [1]
