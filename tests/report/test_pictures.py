from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lddr.data.rendered.circles import Circles
from lddr.report.figures import drawn_images, figures, run_figures
from lddr.report.pictures import animated, exemplary, write_traversals
from lddr.report.traversals import Traversal
from lddr.runs.index import Run, list_runs
from lddr.trained import Trained, train


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A VAE, and a D-VAE with masked categories: hardly trained, which is enough to be drawn."""
    out = tmp_path_factory.mktemp("runs")
    train("circles", "vae", "quick", out=out, steps=1, width=1, num_latents=3)
    train("circles", "dvae", "quick", out=out, steps=1, width=1, num_latents=3, supervision="masked")
    return {str(run.value("model")): run for run in list_runs(out)}


def test_reconstructions_stand_below_their_images(runs):
    figure = run_figures["reconstructions"].draw(runs["dvae"])
    rows = np.array(figure.axes).reshape(2, 10)
    assert [axes.get_ylabel() for axes in rows[:, 0]] == ["input", "output"]
    images = drawn_images(Circles(16), 10)
    outputs = Trained.load(runs["dvae"].folder).reconstruct(images)
    for top, bottom, image, output in zip(*rows, images, outputs, strict=True):
        assert np.array_equal(top.images[0].get_array(), np.broadcast_to(image, (16, 16, 3)))
        assert np.allclose(bottom.images[0].get_array(), np.broadcast_to(output, (16, 16, 3)))


def test_traversals_are_rows_of_pictures_with_names(runs):
    figure = run_figures["traversals"].draw(runs["dvae"])
    rows = np.array(figure.axes).reshape(2, 10)
    assert [axes.get_ylabel() for axes in rows[:, 0]] == ["x", "y"]
    assert [axes.get_title() for axes in rows[0][[0, -1]]] == ["0.2", "0.8"]
    assert "its active categories" in run_figures["traversals"].caption(runs["dvae"])
    assert "The latents in use" in run_figures["traversals"].caption(runs["vae"])


def test_the_report_shows_reconstructions_beside_traversals(runs):
    figure = figures["traversals"].draw([runs["dvae"]])
    rows = np.array(figure.axes).reshape(2, 2 + 1 + 10)
    assert [axes.get_title() for axes in rows[0, :2]] == ["input", "output"]
    assert [len(axes.images) for axes in rows[1]] == [1, 1, 0, *10 * [1]]


def test_the_masked_run_with_the_lowest_risk_is_the_example():
    def run(name, scores, **settings):
        return Run(Path(name), "finished", {"dataset": "circles", "model": "dvae"} | settings, scores)

    plain = [run("low", {"elbo": -9.0}), run("high", {"elbo": -3.0})]
    labelled = [run("labelled", {"validation_risk": 0.1}, supervision="cross-entropy")]
    masked = [run(f"masked-{risk}", {"validation_risk": risk}, supervision="masked") for risk in (3.0, 1.0, 2.0)]
    assert exemplary(plain).name == "high"
    assert exemplary([*plain, *labelled]).name == "labelled"
    assert exemplary([*plain, *labelled, *masked]).name == "masked-1.0"


def test_frames_go_there_and_back():
    greys = np.linspace(0, 1, 4, dtype=np.float32)
    steps = np.broadcast_to(greys[:, np.newaxis, np.newaxis, np.newaxis], (4, 8, 8, 1))
    rows = [Traversal(0, "four", steps, ("",) * 4), Traversal(1, "two", steps[[0, 3]], ("",) * 2)]
    frames = animated(rows, size=16, frames=4)
    assert len(frames) == 6
    centres = [[frame.getpixel((6 + 8 + number * 22, frame.height - 14))[0] for number in (0, 1)] for frame in frames]
    assert [four for four, _ in centres] == [0, 85, 170, 255, 170, 85]
    assert [two for _, two in centres] == [0, 0, 255, 255, 255, 0]


def test_the_gif_moves_and_loops(runs, tmp_path):
    write_traversals(runs["dvae"], tmp_path / "new" / "traversals.gif", size=32)
    with Image.open(tmp_path / "new" / "traversals.gif") as moving:
        assert moving.is_animated
        assert moving.info["loop"] == 0
        assert moving.size == (6 + 2 * 38, 26 + 32 + 6)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["traversals.gif"]
