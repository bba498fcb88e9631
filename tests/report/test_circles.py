from pathlib import Path

import numpy as np
import pytest

from lddr.config import configure
from lddr.metrics.metric import UndefinedError
from lddr.report import circles
from lddr.report.circles import FIRST, SECOND, latent_spaces, ordinal, ranked, shown_places
from lddr.report.figures import figures
from lddr.runs.index import Run, flat_settings
from lddr.trained import train


def run(model, mig, seed=0, **scores):
    return Run(Path(f"{model}-{seed}"), "finished", {"dataset": "circles", "model": model}, {"mig": mig} | scores)


@pytest.fixture
def turned(monkeypatch):
    """Models are not needed: a run's latent space is the grid, as large as its MIG."""
    grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0), indexing="ij"), axis=-1)
    monkeypatch.setattr(circles, "space_of", lambda run: (1 + run.scores["mig"]) * grid)


def test_a_panel_per_space_with_a_line_per_row_and_column():
    grid = np.stack(np.meshgrid(np.arange(4.0), np.arange(3.0), indexing="ij"), axis=-1)
    figure = latent_spaces({"one": grid, "two": -5 * grid}, "both")
    assert [axes.get_title() for axes in figure.axes] == ["one", "two"]
    for axes, points in zip(figure.axes, (grid, -5 * grid), strict=True):
        colours = [line.get_color() for line in axes.lines]
        assert colours.count(FIRST) == 4
        assert colours.count(SECOND) == 3
        drawn = np.concatenate([line.get_xydata() for line in axes.lines if line.get_color() == "black"])
        assert sorted(map(tuple, drawn)) == sorted(map(tuple, points.reshape(-1, 2)))
        low, high = axes.get_xlim()
        assert low < points[..., 0].min() < points[..., 0].max() < high


def test_a_collapsed_space_can_be_drawn():
    assert latent_spaces({"collapsed": np.zeros((3, 3, 2))}).axes[0].lines


@pytest.mark.parametrize(
    ("count", "places"), [(50, [1, 5, 10]), (10, [1, 5, 10]), (9, [1, 5, 9]), (2, [1, 2]), (1, [1])]
)
def test_best_fifth_and_tenth_are_shown_as_far_as_they_are_there(count, places):
    assert shown_places(count) == places


def test_places_have_names():
    assert [ordinal(place) for place in (1, 2, 3, 5, 10, 11, 21, 22)] == [
        "best",
        "2nd",
        "3rd",
        "5th",
        "10th",
        "11th",
        "21st",
        "22nd",
    ]


def test_runs_are_ranked_by_mig_and_others_left_out():
    runs = [run("dvae", 0.2, 0), run("dvae", 0.7, 1), run("vae", 0.9), run("dvae", 0.4, 2)]
    runs += [Run(Path("unscored"), "finished", {"dataset": "circles", "model": "dvae"}, {})]
    runs += [Run(Path("elsewhere"), "finished", {"dataset": "rooms", "model": "dvae"}, {"mig": 1.0})]
    assert [member.scores["mig"] for member in ranked(runs, "dvae")] == [0.7, 0.4, 0.2]


def test_the_paper_s_figure_has_a_row_of_five_panels_for_each_family(turned):
    runs = [run(model, (seed + bonus) / 20, seed) for seed in range(12) for model, bonus in (("vae", 1), ("dvae", 6))]
    figure = figures["circles"].draw(runs)
    rows = np.array(figure.axes).reshape(2, 5)
    assert [axes.get_title() for axes in rows[0, 2:]] == ["best: MIG 0.60", "5th: MIG 0.40", "10th: MIG 0.15"]
    assert [axes.get_title() for axes in rows[1, 2:]] == ["best: MIG 0.85", "5th: MIG 0.65", "10th: MIG 0.40"]
    assert [axes.get_title() for axes in rows[:, 1]] == ["VAE: 12 runs", "D-VAE: 12 runs"]
    for axes, median in zip(rows[:, 1], (0.325, 0.575), strict=True):
        dots, rings, star = axes.lines
        assert len(dots.get_xdata()) == 12
        assert list(rings.get_xdata()) == [1, 5, 10]
        assert star.get_marker() == "*"
        assert star.get_ydata()[0] == pytest.approx(median)
    assert rows[0, 1].get_ylim() == rows[1, 1].get_ylim()
    assert rows[0, 1].get_ylim()[1] > 0.85
    assert "12 runs of the D-VAE (median MIG 0.57)" in figures["circles"].caption(runs)


def test_the_positions_drawn_and_the_grid_lie_in_the_same_square(turned):
    figure = figures["circles"].draw([run("vae", 0.5), run("dvae", 0.6)])
    drawn, grid = figure.axes[0], figure.axes[len(figure.axes) // 2]
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("x", "y")
    assert drawn.get_xlim() == drawn.get_ylim() == grid.get_xlim() == (0, 1)
    positions = drawn.lines[0].get_xydata()
    assert positions.min() == pytest.approx(0.2, abs=0.01)
    assert positions.max() == pytest.approx(0.8, abs=0.01)
    assert grid.lines[-1].get_xydata().min() == pytest.approx(0.2)
    assert grid.lines[-1].get_xydata().max() == pytest.approx(0.8)


def test_the_sheet_shows_all_runs_best_first(turned):
    runs = [run("vae", seed / 100, seed, dci=0.5) for seed in range(13)]
    shown = [axes for axes in figures["circles-vae"].draw(runs).axes if axes.axison]
    assert [axes.get_title() for axes in shown] == [f"MIG {mig} · DCI 50" for mig in range(12, -1, -1)]
    assert (
        figures["circles-vae"].caption(runs).startswith("The latent spaces of all 13 runs of the VAE, with MIG and DCI")
    )


def test_one_family_alone_is_not_compared(turned):
    with pytest.raises(UndefinedError, match="no run of the D-VAE on circles with a MIG; get one with: lddr train"):
        figures["circles"].draw([run("vae", 0.5)])


def test_a_latent_space_comes_from_the_model_of_the_run(tmp_path):
    config = configure("vae", "circles", "quick", steps=1, width=1)
    model = train("circles", "vae", "quick", out=tmp_path, steps=1, width=1)
    one = Run(tmp_path / config.run_name, "finished", flat_settings(config.as_dict()), {})
    space = circles.space_of(one)
    assert space.shape == (14, 14, 2)
    dataset = circles.dataset_of(one)
    corner = dataset.images(dataset.space.indices_of([[39, 3]]))
    assert space[13, 1] == pytest.approx(model.represent(corner)[0], abs=1e-5)
