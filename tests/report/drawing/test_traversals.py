import numpy as np
import pytest

from lddr.report import traversals as drawing
from lddr.report.traversals import LoadedRun, spread, traversals
from lddr.runs.information import Information


@pytest.mark.parametrize(
    ("count", "wanted", "places"), [(3, 8, [0, 1, 2]), (40, 4, [0, 13, 26, 39]), (64, 1, [0]), (1, 8, [0])]
)
def test_values_are_spread_evenly(count, wanted, places):
    assert spread(count, wanted).tolist() == places


def test_masked_latents_are_shown_with_the_values_of_their_factors(hardly_trained):
    loaded = hardly_trained["dvae"]
    rows = traversals(loaded, columns=4)
    assert [row.title for row in rows] == ["x", "y"]  # the third latent is tied to nothing
    assert [row.labels for row in rows] == 2 * [("0.2", "0.4", "0.6", "0.8")]
    whole = loaded.model.traverse(loaded.images(1)[0], 1)
    assert len(whole) == 40  # one for each value, not for each of the 64 categories
    assert np.array_equal(rows[1].pictures, whole[[0, 13, 26, 39]])


def test_other_latents_are_shown_from_the_most_spread_to_the_least(hardly_trained):
    loaded = hardly_trained["vae"]
    rows = traversals(loaded)
    spreads = loaded.model.represent(loaded.images(256)).std(axis=0)
    assert [row.latent for row in rows] == np.argsort(-spreads)[: len(rows)].tolist()
    assert {row.title for row in rows} <= {"latent 0", "latent 1", "latent 2"}
    assert rows[0].labels[0] == "−2"
    assert rows[0].labels[-1] == "2"


def test_idle_latents_are_left_out(hardly_trained, monkeypatch):
    loaded = LoadedRun(hardly_trained["vae"].run)
    monkeypatch.setattr(loaded.model, "represent", lambda images: np.outer(np.arange(len(images)), [0.0, 1.0, 0.0]))
    monkeypatch.setattr(loaded.model, "traverse", lambda image, latent: np.zeros((10, 16, 16, 1)))
    assert [row.latent for row in traversals(loaded)] == [1]


def test_a_latent_is_named_after_the_factor_it_tells_enough_of(hardly_trained, monkeypatch):
    known = Information(["x", "y_position"], np.array([[0.05, 0.0], [0.1, 0.6], [0.0, 0.0]]), np.array([1.0, 1.0]))
    monkeypatch.setattr(drawing, "information_of", lambda folder: known)
    titles = {row.latent: row.title for row in traversals(hardly_trained["vae"])}
    assert titles[1] == "latent 1\ny position 60 %"
    assert titles[2] == "latent 2"
