from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from lddr.metrics.metric import UndefinedError
from lddr.report.correlations import HeatMap, correlations, efficiency_maps, heat_maps, selector_maps, spearman
from lddr.report.figures import figures
from lddr.runs.index import Run


def run(seed, dataset="circles", model="dvae", **scores):
    named = {name.replace("__", "."): value for name, value in scores.items()}
    return Run(Path(f"{dataset}-{model}-{seed}"), "finished", {"dataset": dataset, "model": model, "seed": seed}, named)


def runs_of(dataset="circles", model="dvae", gaps=(3.0, 1.0, 2.0, 4.0)):
    """MIG falls as the gap grows, but for DCI, which rises; the ELBO has one pair in the wrong order."""
    elbos = {3.0: -30.0, 1.0: -20.0, 2.0: -10.0, 4.0: -40.0}
    return [
        run(seed, dataset, model, gap=gap, mig=1 / gap, dci=gap / 10, elbo=elbos[gap]) for seed, gap in enumerate(gaps)
    ]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30))
def test_the_correlation_is_spearmans(pairs):
    left, right = (list(map(float, column)) for column in zip(*pairs, strict=True))
    found = spearman([*left, None, 1.0], [*right, 1.0, None])  # what only one side has does not count
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(left, right).statistic)


def test_two_runs_say_nothing():
    assert np.isnan(spearman([1, 2], [1, 2]))
    assert spearman([1, 2, 3], [10, 30, 20]) == pytest.approx(0.5)


def test_a_map_has_a_value_for_each_pair():
    found = correlations({"a": [1, 2, 3], "b": [3, 2, 1]}, {"c": [1, 2, 3], "d": [1, 3, 2], "e": [0, 0, 0]}, "title")
    assert (found.rows, found.columns) == (("a", "b"), ("c", "d", "e"))
    assert found.values == pytest.approx(np.array([[1, 0.5, np.nan], [-1, -0.5, np.nan]]), nan_ok=True)


def test_selectors_are_turned_so_that_a_good_choice_is_positive():
    (found,) = selector_maps(runs_of(), ["dvae"])
    assert found.title == "Circles (4 runs)"
    assert found.rows == ("small Gap$_{ST}$", "large ELBO")
    assert found.columns == ("MIG", "DCI")
    assert found.values == pytest.approx(np.array([[1, -1], [0.8, -0.8]]))


def test_gaussian_models_and_other_discrete_ones_do_not_count_for_the_dvae():
    others = [*runs_of(model="factor-dvae"), *runs_of(model="vae"), *runs_of("rooms", gaps=(1.0, 2.0))]
    assert [found.title for found in selector_maps([*runs_of(), *others], ["dvae"])] == ["Circles (4 runs)"]
    assert [found.title for found in selector_maps([*runs_of(), *others])] == ["rooms (2 runs)", "Circles (8 runs)"][1:]


def test_a_panel_per_dataset_with_its_numbers():
    figure = figures["selectors"].draw([*runs_of(), *runs_of("rooms")])
    *panels, bar = figure.axes
    assert [axes.get_title() for axes in panels] == ["Circles (4 runs)", "rooms (4 runs)"]
    for axes in panels:
        assert [label.get_text() for label in axes.get_xticklabels()] == ["MIG", "DCI"]
        assert [text.get_text() for text in axes.texts] == ["1.00", "−1.00", "0.80", "−0.80"]
        assert axes.images[0].get_clim() == (-1, 1)
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["small Gap$_{ST}$", "large ELBO"]
    assert bar.get_ylabel() == "Spearman correlation"


def test_what_is_undefined_is_a_dash():
    figure = heat_maps([HeatMap("one", ("a",), ("b", "c"), np.array([[np.nan, 0.25]]))])
    assert [text.get_text() for text in figure.axes[0].texts] == ["–", "0.25"]


def test_all_discrete_models_together_need_two_of_them():
    with pytest.raises(UndefinedError, match="no runs of two discrete models"):
        figures["selectors-combined"].draw(runs_of())
    both = [*runs_of(), *runs_of(model="factor-dvae")]
    assert figures["selectors-combined"].draw(both).axes[0].get_title() == "Circles (8 runs)"
    assert figures["selectors-combined"].caption(both).endswith("Models: D-VAE, FactorDVAE, ranked together.")


def test_efficiency_has_datasets_side_by_side_for_each_learner():
    made = [
        run(s, mig=m, dci=-m, downstream_logistic__efficiency=e) for s, (m, e) in enumerate(((1, 1), (2, 3), (3, 2)))
    ]
    made += [run(s, "rooms", mig=s, downstream_logistic__efficiency=-s) for s in range(3)]
    made += [
        run(s, model="vae", mig=-m, downstream_logistic__efficiency=m) for s, m in enumerate(range(9))
    ]  # no matter
    (found,) = efficiency_maps(made)
    assert (found.title, found.rows, found.columns) == ("logistic regression", ("MIG", "DCI"), ("Circles", "rooms"))
    assert found.values == pytest.approx(np.array([[0.5, -1], [-0.5, np.nan]]), nan_ok=True)
    made = [run(0, mig=1, downstream_boosting__efficiency=1.0)]
    with pytest.raises(
        UndefinedError, match="no 3 runs of the D-VAE on one dataset with metrics and downstream scores"
    ):
        figures["efficiency"].draw(made)


def test_both_learners_have_a_panel():
    made = [
        run(seed, mig=seed, downstream_logistic__efficiency=seed, downstream_boosting__efficiency=-seed)
        for seed in range(3)
    ]
    *panels, _ = figures["efficiency"].draw(made).axes
    assert [axes.get_title() for axes in panels] == ["logistic regression", "gradient boosted trees"]
    assert [axes.texts[0].get_text() for axes in panels] == ["1.00", "−1.00"]
