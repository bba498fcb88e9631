import numpy as np
import pytest

from lddr.report.exhibits import figures
from lddr_paper.score_figures import selector_maps
from tests.report.grouped import gapped_runs, grouped


def test_selectors_are_turned_so_that_a_good_choice_is_positive():
    (found,) = selector_maps(grouped(gapped_runs()), ["dvae"])
    assert found.title == "Circles (4 runs)△"
    assert found.rows == ("small Gap_ST", "large ELBO")
    assert found.columns == ("MIG", "DCI")
    assert found.values == pytest.approx(np.array([[1, -1], [0.8, -0.8]]))


def test_gaussian_models_and_other_discrete_ones_do_not_count_for_the_dvae():
    others = [*gapped_runs(model="factor-dvae"), *gapped_runs(model="vae"), *gapped_runs("rooms", gaps=(1.0, 2.0))]
    assert [found.title for found in selector_maps(grouped([*gapped_runs(), *others]), ["dvae"])] == [
        "Circles (4 runs)△"
    ]


def test_a_panel_per_dataset_with_its_numbers():
    figure = figures["selectors"].make(grouped([*gapped_runs(), *gapped_runs("rooms")])).figure
    *panels, bar = figure.axes
    assert [axes.get_title() for axes in panels] == ["Circles (4 runs)△", "rooms (4 runs)△"]
    for axes in panels:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["MIG", "DCI"]
        assert [text.get_text() for text in axes.texts] == ["1.00", "−1.00", "0.80", "−0.80"]
        assert axes.images[0].get_clim() == (-1, 1)
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["small Gap_ST", "large ELBO"]
    assert bar.get_ylabel() == "Spearman correlation"
