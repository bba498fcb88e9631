import numpy as np
import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import figures
from lddr_paper.score_figures import efficiency_maps
from tests.report.grouped import grouped, invented


def run(seed, dataset="circles", model="dvae", **scores):
    named = {name.replace("__", "."): value for name, value in scores.items()}
    return invented(model, dataset, seed=seed, scores=named)


def test_efficiency_has_datasets_side_by_side_for_each_learner():
    made = [
        run(s, mig=m, dci=-m, downstream_logistic__efficiency=e) for s, (m, e) in enumerate(((1, 1), (2, 3), (3, 2)))
    ]
    made += [run(s, "rooms", mig=s, downstream_logistic__efficiency=-s) for s in range(3)]
    made += [
        run(s, model="vae", mig=-m, downstream_logistic__efficiency=m) for s, m in enumerate(range(9))
    ]  # no matter
    (found,) = efficiency_maps(grouped(made))
    assert (found.title, found.rows, found.columns) == ("logistic regression", ("MIG", "DCI"), ("Circles△", "rooms△"))
    assert found.values == pytest.approx(np.array([[0.5, -1], [-0.5, np.nan]]), nan_ok=True)
    made = [run(0, mig=1, downstream_boosting__efficiency=1.0)]
    with pytest.raises(
        UndefinedError, match="no 3 runs of the D-VAE on one dataset with metrics and downstream scores"
    ):
        figures["efficiency"].make(grouped(made))


def test_both_learners_have_a_panel():
    made = [
        run(seed, mig=seed, downstream_logistic__efficiency=seed, downstream_boosting__efficiency=-seed)
        for seed in range(3)
    ]
    *panels, _ = figures["efficiency"].make(grouped(made)).figure.axes
    assert [axes.get_title() for axes in panels] == ["logistic regression", "gradient boosting"]
    assert [axes.texts[0].get_text() for axes in panels] == ["1.00", "−1.00"]
