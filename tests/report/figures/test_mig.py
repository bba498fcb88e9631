import pytest
from matplotlib.colors import to_rgba

from lddr.report.exhibits import figures
from lddr.report.style import colour as colour_of
from tests.report.grouped import grouped, runs_of


def halves(axes):
    return [(to_rgba(half.get_facecolor()[0]), half.get_paths()[0].get_extents()) for half in axes.collections]


def test_gaussian_halves_lie_to_the_left_and_discrete_ones_to_the_right(compared_runs):
    drawn = figures["mig"].make(grouped(run for run in compared_runs if run.value("dataset") == "circles"))
    (axes,) = drawn.figure.axes
    assert axes.get_title() == "D-VAE better in 1 of 1 cases"
    assert axes.get_ylabel() == "MIG"
    extents = {"vae": (0.1, 0.9), "dvae": (0.3, 0.5)}
    for (colour, box), (model, (low, high)) in zip(halves(axes), extents.items(), strict=True):
        assert colour == to_rgba(colour_of(model))
        assert (box.x0 >= 0) if model == "dvae" else (box.x1 <= 0)
        assert (box.y0, box.y1) == pytest.approx((low, high))
    medians = [line.get_ydata()[0] for line in axes.lines if len(line.get_ydata()) == 2]
    assert medians == pytest.approx([0.2, 0.4])
    assert axes.get_ylim() == pytest.approx((0, 1.08))
    assert drawn.caption.endswith("lines are medians. The discrete model is better in 1 of 1 cases.")


def test_few_runs_are_points_and_marked(compared_runs):
    """Five runs of each model on circles; two and three on rooms."""
    drawn = figures["mig"].make(grouped(compared_runs))
    (axes,) = drawn.figure.axes
    assert axes.get_title() == "D-VAE better in 1 of 2 cases△"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Circles\n+100 %", "rooms\n−25 %△"]
    assert len(halves(axes)) == 2  # those of circles
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert [sorted(line.get_ydata()) for line in points] == [[0.3, 0.5], [0.1, 0.3, 0.7]]
    assert points[0].get_xdata()[0] < 1 < points[1].get_xdata()[0]
    assert "△ and points: of fewer than five runs of a model" in drawn.caption


def test_every_pair_of_models_has_a_panel(compared_runs):
    more = [
        *compared_runs,
        *runs_of("factor-vae", "circles", "mig", (0.1, 0.2)),
        *runs_of("factor-dvae", "circles", "mig", (0.5, 0.6)),
    ]
    titles = [axes.get_title() for axes in figures["mig"].make(grouped(more)).figure.axes]
    assert titles == ["D-VAE better in 1 of 2 cases△", "FactorDVAE better in 1 of 1 cases△"]
