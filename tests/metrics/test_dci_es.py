"""Explicitness and size from loss-capacity curves."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from lddr.errors import UserError
from lddr.metrics import dci_es
from lddr.metrics.dci_es import explicitness_of_curve
from lddr.metrics.metric import UndefinedError

pytestmark = pytest.mark.filterwarnings("ignore::lddr.metrics.metric.FewSamplesWarning")
SMALL = {"widths": (0, 4, 32), "depths": (1, 2, 8), "trees": 10, "epochs": 40}


def parts(codes, factors, train=600):
    return codes[:train], factors[:train], codes[train:], factors[train:]


@pytest.fixture(scope="module")
def factors():
    return np.random.default_rng(0).integers(8, size=(900, 2))


@pytest.mark.parametrize(
    ("losses", "explicitness"),
    [
        ([0.2, 0.2, 0.2], 1),  # the smallest probe is as good as any
        ([1.0, 0.5, 0.0], 0),  # decreases linearly from the baseline to 0
        ([1.0, 0.0, 0.0], 0.5),  # a triangle over half of the capacities
        ([1.0, 1.0, 0.0], -0.5),
        ([0.4, 0.7, 0.1], 1 - 2 * (0.3 + 0.15) / 2),  # 0.7 counts as 0.4, the minimum so far
    ],
)
def test_curves_worked_out_by_hand(losses, explicitness):
    assert np.isclose(explicitness_of_curve(np.array([1.0, 2.0, 3.0]), np.array(losses), 1.0), explicitness)
    assert np.isclose(explicitness_of_curve(np.array([0.0, 5.0, 10.0]), np.array(losses) * 0.3, 0.3), explicitness)


def test_a_linear_code_is_explicit_and_a_curved_one_less(factors):
    rotated = factors @ np.array([[1.0, 1.0], [1.0, -1.0]])
    linear = dci_es(*parts(rotated, factors), **SMALL)
    assert np.isclose(linear.score, 1, atol=0.01)
    assert (linear.size, linear.losses.shape) == (1.0, (2, 3))
    circle = np.concatenate([np.cos(factors * 0.8), np.sin(factors * 0.8)], axis=1)
    curved = dci_es(*parts(circle, factors), **SMALL)
    assert curved.score < 0.8
    assert curved.informativeness > 0.8
    assert curved.size == 0.5


def test_noise_scores_0_and_1_by_the_published_formula(factors):
    noise = np.random.default_rng(1).normal(size=(900, 3))
    small = {"widths": (0, 4), "epochs": 2}
    assert dci_es(*parts(noise, factors), **small).score == 0
    published = dci_es(*parts(noise, factors), **small, least_informative=0.0)
    assert published.score > 0.9
    assert published.informativeness < 0.05


def test_forests_worked_out_again(factors):
    codes = factors @ np.array([[1.0, 0.3], [0.2, 1.0]])
    found = dci_es(*parts(codes, factors), probe="trees", **SMALL)
    train, truth, test, asked = parts(codes, factors)
    scale = [(part - train.mean(axis=0)) / train.std(axis=0) for part in (train, test)]
    curve, before = [], np.inf
    for depth in (1, 2, 8):
        model = RandomForestRegressor(10, max_depth=depth, random_state=0).fit(scale[0], truth[:, 1])
        residuals = model.predict(scale[1]) - asked[:, 1]
        loss = (residuals**2).mean() / asked[:, 1].var()
        before = min(before, loss)
        curve.append(before)
    area = sum((x1 - x0) * (a + b - 2 * before) / 2 for x0, x1, a, b in [(1, 2, *curve[:2]), (2, 8, *curve[1:])])
    assert np.isclose(found.per_factor[1], 1 - 2 * area / 7, atol=0.01)
    assert np.allclose(np.minimum.accumulate(found.losses[1]), curve, atol=0.01)
    assert found.capacities.tolist() == [[1, 2, 8], [1, 2, 8]]


def test_categories_have_no_order(factors):
    shuffled = np.array([3, 0, 6, 1, 7, 4, 2, 5])[factors]
    one_hot = np.eye(8)[shuffled[:, 0]]
    given = parts(one_hot, shuffled[:, [0]])
    found = dci_es(*given, **SMALL, categorical=(0,))
    assert np.isclose(found.score, 1, atol=0.01)
    assert np.allclose(found.losses[0, [0, 2]], 0, atol=0.01)
    assert np.allclose(found.capacities[0, 0], np.log(9 * 8))


def test_mistakes_are_said(factors):
    given = parts(factors * 1.0, factors)
    with pytest.raises(UserError, match="at least two capacities"):
        dci_es(*given, widths=(4,))
    with pytest.raises(UserError, match="factor 2 cannot be categorical: there are 2"):
        dci_es(*given, categorical=(2,))
    with pytest.raises(UndefinedError, match="a factor that varies"):
        dci_es(*parts(factors * 1.0, factors * 0))
