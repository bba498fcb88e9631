from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from lddr.errors import UserError
from lddr.report import traversals as drawing
from lddr.report.traversals import LoadedRun, Traversal, animation, evenly_spaced, most_changed, traversals
from lddr.report.traversals import frames as frames_of
from lddr.runs.information import Information
from lddr.trained import Trained
from tests.report.grouped import invented


def test_a_model_or_images_that_are_gone_are_a_sentence():
    for wanted in ("model", "dataset"):  # without its dataset, a run has the samples of its model
        with pytest.raises(UserError, match=r"there is no model .*circles-dvae"):
            getattr(LoadedRun(invented()), wanted)


def test_model_and_images_are_loaded_once(hardly_trained, monkeypatch):
    loads, load = [], Trained.load
    monkeypatch.setattr(Trained, "load", lambda folder: loads.append(folder) or load(folder))
    loaded = LoadedRun(hardly_trained["vae"].run)
    assert loaded.model is loaded.model
    assert loaded.dataset is loaded.dataset
    assert len(loads) == 1


@pytest.mark.parametrize(
    ("count", "wanted", "places"), [(3, 8, [0, 1, 2]), (40, 4, [0, 13, 26, 39]), (64, 1, [0]), (1, 8, [0])]
)
def test_values_are_spread_evenly(count, wanted, places):
    assert evenly_spaced(count, wanted).tolist() == places


def test_masked_latents_are_shown_with_the_values_of_their_factors(hardly_trained):
    loaded = hardly_trained["dvae"]
    rows = traversals(loaded, columns=4).rows
    assert [row.title for row in rows] == ["x", "y"]  # the third latent is tied to nothing
    assert [row.labels for row in rows] == 2 * [("0.2", "0.4", "0.6", "0.8")]
    whole = loaded.model.traverse(loaded.start, 1)
    assert len(whole) == 40  # one for each value, not for each of the 64 categories
    assert np.array_equal(rows[1].pictures, whole[[0, 13, 26, 39]])


def test_traversals_start_from_an_image_and_its_reconstruction(hardly_trained):
    loaded = LoadedRun(hardly_trained["vae"].run)
    found = traversals(loaded)
    assert found.start.labels == ("input", "reconstruction")
    assert found.start.pictures[0] * 255 == pytest.approx(loaded.start)
    assert found.start.pictures[1] == pytest.approx(loaded.model.reconstruct(loaded.start[np.newaxis])[0])
    code = loaded.model.represent(loaded.start[np.newaxis])[0]
    for row in found.rows:
        latent = int(row.title.split()[-1])
        values = np.array([float(label.replace("−", "-")) for label in row.labels])
        assert row.nearest == np.abs(values - code[latent]).argmin()
    other = LoadedRun(hardly_trained["vae"].run, like=loaded)
    assert other.start is loaded.start


class Painter:
    """A model whose first latent paints as many pixels as the second latent says."""

    num_latents = 2

    def represent(self, images):
        return images[:, 0, :2, 0] / 255

    def values_of(self, latent):
        return np.array([0.0, 1.0])

    def decode(self, codes):
        return (np.arange(8) < 8 * codes[:, 1:]).astype(float).reshape(-1, 1, 8, 1) * codes[:, :1, None, None]


def test_the_start_is_the_image_that_changes_most():
    images = np.zeros((3, 1, 8, 1), np.uint8)
    images[:, 0, 1, 0] = 30, 250, 100
    assert most_changed(Painter(), [0], images) == 1


def test_latents_without_a_factor_are_sorted_by_their_deviation(hardly_trained):
    loaded = hardly_trained["vae"]
    rows = traversals(loaded).rows
    order = np.argsort(-loaded.model.represent(loaded.images(256)).std(axis=0))
    assert [row.title for row in rows] == [f"latent {latent}" for latent in order[: len(rows)]]
    assert (rows[0].labels[0], rows[0].labels[-1]) == ("−2", "2")


def test_inactive_latents_are_left_out(hardly_trained, monkeypatch):
    loaded = LoadedRun(hardly_trained["vae"].run)
    monkeypatch.setattr(loaded.model, "represent", lambda images: np.outer(np.arange(len(images)), [0.0, 1.0, 0.0]))
    assert loaded.latents == [1]


def test_latents_are_grouped_by_the_factor_they_encode_most(hardly_trained, monkeypatch):
    known = Information(["x", "y_position"], np.array([[0.05, 0.0], [0.1, 0.6], [0.3, 0.0]]), np.array([1.0, 1.0]))
    monkeypatch.setattr(drawing, "information_of", lambda folder: known)
    loaded = LoadedRun(hardly_trained["vae"].run)
    monkeypatch.setitem(loaded.__dict__, "latents", [0, 1, 2])
    titles = [row.title for row in traversals(loaded).rows]
    assert titles == ["x 0.30\nlatent 2", "y position 0.60\nlatent 1", "latent 0"]


def test_frames_go_there_and_back():
    greys = np.linspace(0, 1, 4, dtype=np.float32)
    steps = np.broadcast_to(greys[:, np.newaxis, np.newaxis, np.newaxis], (4, 8, 8, 1))
    rows = [Traversal("four", steps, ("",) * 4), Traversal("two", steps[[0, 3]], ("",) * 2)]
    frames = frames_of(rows, size=16, count=4)
    assert len(frames) == 6
    centres = [[frame.getpixel((6 + 8 + number * 22, frame.height - 14))[0] for number in (0, 1)] for frame in frames]
    assert [four for four, _ in centres] == [0, 85, 170, 255, 170, 85]
    assert [two for _, two in centres] == [0, 0, 255, 255, 255, 0]


def test_the_gif_moves_and_loops(hardly_trained):
    with Image.open(BytesIO(animation(hardly_trained["dvae"], size=32))) as moving:
        assert moving.is_animated
        assert moving.info["loop"] == 0
        assert moving.size == (6 + 4 * 38, 26 + 32 + 6)  # with the image and its reconstruction
