import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from sklearn.metrics import mutual_info_score

from lddr.errors import UserError
from lddr.metrics.information import discretised
from lddr.metrics.metric import metrics
from lddr.metrics.unsupervised import unsupervised

GENERATOR = np.random.default_rng(0)
CODES = GENERATOR.normal(size=(2000, 4)) @ GENERATOR.normal(size=(4, 4))


def test_two_latents_by_hand():
    codes = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0], [-1.0, 1.0], [3.0, 3.0], [-3.0, -3.0]])
    result = unsupervised(codes)
    correlation = 18 / 22  # Σ xy / Σ x²
    assert np.isclose(result.score, -0.5 * np.log(1 - correlation**2))
    # Σ = 22/5 [[1, c], [c, 1]] and D = 22/5: the root of D^½ Σ D^½ has the trace 22/5 (√(1 + c) + √(1 - c))
    expected = 2 * 22 / 5 * (2 - np.sqrt(1 + correlation) - np.sqrt(1 - correlation))
    assert np.isclose(result.wasserstein_correlation, expected)
    assert np.isclose(result.wasserstein_correlation_normalised, expected / (2 * 22 / 5))


def test_the_scores_are_those_of_the_definitions():
    covariance, bins = np.cov(CODES.T), discretised(CODES, 20)
    diagonal, result = np.diag(np.diag(covariance)), unsupervised(CODES)
    divergence = 0.5 * (np.linalg.slogdet(diagonal)[1] - np.linalg.slogdet(covariance)[1])
    assert np.isclose(result.score, divergence)
    distance = np.trace(covariance + diagonal - 2 * sqrtm(sqrtm(diagonal) @ covariance @ sqrtm(diagonal)).real)
    assert np.isclose(result.wasserstein_correlation, distance)
    pairs = [mutual_info_score(bins[:, i], bins[:, j]) for i in range(4) for j in range(4) if i != j]
    assert np.isclose(result.mutual_information_score, np.mean(pairs))
    assert np.allclose(result.variances, CODES.var(axis=0))


def test_independent_latents_score_about_0():
    result = unsupervised(GENERATOR.normal(size=(5000, 3)))
    assert 0 <= result.score < 0.005
    assert result.mutual_information_score < 0.1  # 20 bins each: biased by 19² / (2 · 5000) at most
    assert result.wasserstein_correlation_normalised < 0.005
    assert result.active_units == result.directions == 3


@given(st.permutations(range(4)), st.lists(st.sampled_from([-3.0, -1.0, 0.5, 2.0]), min_size=4, max_size=4))
def test_total_correlation_does_not_depend_on_order_sign_and_scale(order, scales):
    assert np.isclose(unsupervised(CODES[:50, order] * scales).score, unsupervised(CODES[:50]).score)


def test_latents_count_as_active_by_their_variance():
    codes = np.concatenate([CODES, 0.09 * CODES[:, :1], np.full((2000, 1), 0.1)], axis=1)
    codes[:, 4] /= CODES[:, 0].std()
    result = unsupervised(codes)
    assert result.active_units == 4
    assert np.isclose(result.score, unsupervised(CODES).score)
    assert unsupervised(codes, active_variance=0).active_units == 5


def test_collinear_latents_are_told_and_score_as_the_smallest_eigenvalue_allows():
    pair = CODES[:, [0, 0]]
    result = unsupervised(pair)
    assert (result.active_units, result.directions) == (2, 1)
    assert np.isclose(result.score, -0.5 * np.log(2 * 1e-12))  # eigenvalues 2 and "0"
    assert np.isclose(unsupervised(pair, smallest_eigenvalue=1e-6).score, -0.5 * np.log(2 * 1e-6))
    few = unsupervised(CODES[:3])
    assert few.directions == 2
    assert np.isfinite(few.score)


@pytest.mark.parametrize("codes", [np.zeros((9, 3)), np.full((9, 3), 0.1), CODES[:1], CODES[:9, :1]])
def test_degenerate_codes_score_0(codes):
    result = unsupervised(codes)
    assert result.score == 0
    assert np.isclose(result.mutual_information_score, 0)
    assert np.isclose(result.wasserstein_correlation, 0, atol=1e-12)
    assert np.isclose(result.wasserstein_correlation_normalised, 0)


@pytest.mark.parametrize("codes", [1.0, [1.0, 2.0], [[np.nan]], np.zeros((0, 3))])
def test_mistakes_are_sentences(codes):
    with pytest.raises(UserError):
        unsupervised(codes)


def test_the_metric_needs_no_labels():
    assert not metrics["unsupervised"].labels
