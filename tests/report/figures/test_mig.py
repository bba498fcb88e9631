import pytest
from matplotlib.colors import to_rgba

from lddr.report.figures.figure import figures
from lddr.report.palette import colour as colour_of
from tests.report.grouped import grouped, runs_of


def halves(axes):
    return [(to_rgba(half.get_facecolor()[0]), half.get_paths()[0].get_extents()) for half in axes.collections]


def test_gaussian_halves_lie_to_the_left_and_discrete_ones_to_the_right(compared_runs):
    drawn = figures["mig"].make(grouped(compared_runs))
    (axes,) = drawn.figure.axes
    assert axes.get_title() == "D-VAE better in 1 of 2 cases"
    assert axes.get_ylabel() == "MIG"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Circles\n+100 %", "rooms\n−25 %"]
    extents = [(0, 0.1, 0.9), (0, 0.3, 0.5), (1, 0.3, 0.5), (1, 0.1, 0.7)]
    for number, ((colour, box), (place, low, high)) in enumerate(zip(halves(axes), extents, strict=True)):
        model = ("vae", "dvae")[number % 2]
        assert colour == to_rgba(colour_of(model))
        assert (box.x0 >= place) if model == "dvae" else (box.x1 <= place)
        assert (box.y0, box.y1) == pytest.approx((low, high))
    medians = [line.get_ydata()[0] for line in axes.lines if len(line.get_ydata()) == 2]
    assert medians == pytest.approx([0.2, 0.4, 0.4, 0.3])
    assert axes.get_ylim() == pytest.approx((0, 1.08))
    assert "The discrete model is better in 1 of 2 cases." in drawn.caption


def test_every_pair_of_models_has_a_panel(compared_runs):
    more = [
        *compared_runs,
        *runs_of("factor-vae", "circles", "mig", (0.1, 0.2)),
        *runs_of("factor-dvae", "circles", "mig", (0.5, 0.6)),
    ]
    titles = [axes.get_title() for axes in figures["mig"].make(grouped(more)).figure.axes]
    assert titles == ["D-VAE better in 1 of 2 cases", "FactorDVAE better in 1 of 1 cases"]
