from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from lddr.metrics.metric import UndefinedError
from lddr.models import models
from lddr.report.comparisons import PAIRS, Case, cases, profile, wins
from lddr.report.figures import figures
from lddr.report.style import COLOURS
from lddr.runs.index import Run


def runs_of(model, dataset, metric, values, **settings):
    return [
        Run(
            Path(f"{dataset}-{model}-{seed}"),
            "finished",
            {"dataset": dataset, "model": model} | settings,
            {metric: value},
        )
        for seed, value in enumerate(values)
    ]


@pytest.fixture
def runs():
    """The discrete median is 0.4 over 0.2 on circles and 0.3 over 0.4 on rooms."""
    return [
        *runs_of("vae", "circles", "mig", (0.1, 0.2, 0.9)),
        *runs_of("dvae", "circles", "mig", (0.3, 0.4, 0.5, 0.4)),
        *runs_of("vae", "rooms", "mig", (0.3, 0.5)),
        *runs_of("dvae", "rooms", "mig", (0.1, 0.3, 0.7)),
        *runs_of("dvae", "rooms", "mig", (0.99,), supervision="masked"),
        *runs_of("dvae", "dsprites", "mig", (0.99, 0.98)),
    ]


def test_pairs_share_their_objective():
    assert len(PAIRS) == len(models) / 2
    for gaussian, discrete in PAIRS:
        assert models[gaussian].objective == models[discrete].objective
        assert (models[gaussian].latent, models[discrete].latent) == ("gaussian", "categorical")


def test_medians_gains_and_wins_are_those_worked_out_by_hand(runs):
    circles, rooms = sorted(cases(runs, ("vae", "dvae")), key=lambda case: case.dataset)
    assert (circles.dataset, circles.medians, circles.is_won) == ("circles", (0.2, 0.4), True)
    assert circles.gain == pytest.approx(100)
    assert (rooms.dataset, rooms.medians, rooms.is_won) == ("rooms", (0.4, 0.3), False)
    assert rooms.gain == pytest.approx(-25)
    assert wins([circles, rooms]) == "better in 1 of 2 cases"


def test_nothing_gains_over_zero_and_a_draw_is_no_win():
    case = Case("circles", "mig", ("vae", "dvae"), (0.0, 0.0), (0.0, 0.0))
    assert case.gain is None
    assert not case.is_won


def halves(axes):
    return [(to_rgba(half.get_facecolor()[0]), half.get_paths()[0].get_extents()) for half in axes.collections]


def test_gaussian_halves_lie_to_the_left_and_discrete_ones_to_the_right(runs):
    figure = figures["mig"].draw(runs)
    (axes,) = figure.axes
    assert axes.get_title() == "D-VAE better in 1 of 2 cases"
    assert axes.get_ylabel() == "MIG"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["Circles\n+100 %", "rooms\n−25 %"]
    extents = [(0, 0.1, 0.9), (0, 0.3, 0.5), (1, 0.3, 0.5), (1, 0.1, 0.7)]
    for number, ((colour, box), (place, low, high)) in enumerate(zip(halves(axes), extents, strict=True)):
        model = ("vae", "dvae")[number % 2]
        assert colour == to_rgba(COLOURS[model])
        assert (box.x0 >= place) if model == "dvae" else (box.x1 <= place)
        assert (box.y0, box.y1) == pytest.approx((low, high))
    medians = [line.get_ydata()[0] for line in axes.lines if len(line.get_ydata()) == 2]
    assert medians == pytest.approx([0.2, 0.4, 0.4, 0.3])
    assert axes.get_ylim() == pytest.approx((0, 1.08))
    assert "The discrete model is better in 1 of 2 cases." in figures["mig"].caption(runs)


def test_every_pair_of_models_has_a_panel(runs):
    more = [
        *runs,
        *runs_of("factor-vae", "circles", "mig", (0.1, 0.2)),
        *runs_of("factor-dvae", "circles", "mig", (0.5, 0.6)),
    ]
    titles = [axes.get_title() for axes in figures["mig"].draw(more).axes]
    assert titles == ["D-VAE better in 1 of 2 cases", "FactorDVAE better in 1 of 1 cases"]


def test_datasets_are_rows_and_metrics_columns(runs):
    more = [*runs, *runs_of("vae", "rooms", "sap", (0.1, 0.2)), *runs_of("dvae", "rooms", "sap", (0.5, 0.6))]
    figure = figures["metrics"].draw(more)
    shown = np.array([axes.axison for axes in figure.axes]).reshape(2, 2)
    assert shown.tolist() == [[True, False], [True, True]]  # circles has no SAP
    assert [axes.get_ylabel() for axes in np.reshape(figure.axes, (2, 2))[:, 0]] == ["Circles", "rooms"]
    assert [axes.get_title() for axes in figure.axes] == ["MIG", "", "", "SAP"]
    assert figure.axes[3].get_xlabel() == "+267 %"
    assert figure.legends[0].get_title().get_text().startswith("D-VAE better in 2 of 3 cases")
    assert figures["metrics"].caption(more).endswith("the discrete model is better in 2 of 3 cases.")


def test_one_family_alone_is_not_compared(runs):
    with pytest.raises(UndefinedError, match="no two runs each of VAE and D-VAE with the same metric"):
        figures["metrics"].draw([run for run in runs if run.value("model") == "dvae"])


def test_a_profile_is_widest_where_most_scores_are():
    heights, widths = profile(np.array([0.0, 0.5, 0.5, 0.5, 1.0]))
    assert (heights[0], heights[-1]) == (0, 1)
    assert heights[widths.argmax()] == pytest.approx(0.5)
    assert widths.max() == 1


def test_scores_that_are_all_alike_are_a_line():
    heights, _ = profile(np.array([0.3, 0.3]))
    assert heights == pytest.approx([0.3, 0.3], abs=0.01)
