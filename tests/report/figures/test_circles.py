import numpy as np
import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import figures
from lddr_paper import latent_figures as circles
from lddr_paper.latent_figures import ordinal, ranked, shown_places
from tests.report.grouped import grouped, invented


def run(model, mig, seed=0):
    return invented(model, seed=seed, scores={"mig": mig})


@pytest.fixture
def turned(monkeypatch):
    """Models are not needed: a run's latent space is the grid, as large as its MIG."""
    grid = np.stack(np.meshgrid(np.arange(14.0), np.arange(14.0), indexing="ij"), axis=-1)
    monkeypatch.setattr(circles, "space_of", lambda run: (1 + run.scores["mig"]) * grid)


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
    runs += [invented(), invented(dataset="rooms", scores={"mig": 1.0})]
    assert [member.scores["mig"] for member in ranked(grouped(runs), "dvae")] == [0.7, 0.4, 0.2]


def test_the_paper_s_figure_has_a_row_of_five_panels_for_each_family(turned):
    runs = [run(model, (seed + bonus) / 20, seed) for seed in range(12) for model, bonus in (("vae", 1), ("dvae", 6))]
    drawn = figures["circles"].make(grouped(runs))
    rows = np.array(drawn.figure.axes).reshape(2, 5)
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
    assert "12 runs of the D-VAE (median MIG 0.57)" in drawn.caption


def test_the_positions_drawn_and_the_grid_lie_in_the_same_square(turned):
    figure = figures["circles"].make(grouped([run("vae", 0.5), run("dvae", 0.6)])).figure
    drawn, grid = figure.axes[0], figure.axes[len(figure.axes) // 2]
    assert (drawn.get_xlabel(), drawn.get_ylabel()) == ("x", "y")
    assert drawn.get_xlim() == drawn.get_ylim() == grid.get_xlim() == (0, 1)
    positions = drawn.lines[0].get_xydata()
    assert positions.min() == pytest.approx(0.2, abs=0.01)
    assert positions.max() == pytest.approx(0.8, abs=0.01)
    assert grid.lines[-1].get_xydata().min() == pytest.approx(0.2)
    assert grid.lines[-1].get_xydata().max() == pytest.approx(0.8)


def test_one_family_alone_is_not_compared(turned):
    with pytest.raises(UndefinedError, match="no run of the D-VAE on circles with a MIG; get one with: lddr train"):
        figures["circles"].make(grouped([run("vae", 0.5)]))
