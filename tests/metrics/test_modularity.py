import joblib
import numpy as np
import pytest
from scipy.stats import mannwhitneyu
from sklearn.linear_model import LogisticRegression

from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.metrics.modularity import explicitness, modularities, modularity
from tests.metrics import published

GENERATOR = np.random.default_rng(0)
GRID = np.stack(np.meshgrid(range(3), range(4), indexing="ij"), axis=-1).reshape(-1, 2)
FACTORS = GENERATOR.integers([3, 5], size=(900, 2))
MIXED = FACTORS @ [[1.0, 0.4, 0.0], [0.3, 1.0, 0.0]] + GENERATOR.normal(size=(900, 3))
TRAIN, TEST = slice(0, 600), slice(600, 900)


def test_modularity_by_hand():
    information = np.array([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 3.0]])
    assert np.allclose(modularities(information), [1 - 1 / (4 * 2), 0, 0, 1])


def test_a_perfect_code_is_modular_whatever_the_order_and_sign_and_copies():
    assert np.isclose(modularity(GRID, GRID).score, 1)
    assert np.isclose(modularity(np.stack([-GRID[:, 1], GRID[:, 0], GRID[:, 0]], axis=1), GRID).score, 1)


def test_a_latent_that_tells_both_factors_alike_is_not_modular():
    bits = np.stack(np.meshgrid([0, 1], [0, 1]), axis=-1).reshape(-1, 2)
    result = modularity(np.stack([bits.sum(axis=1), bits[:, 0], bits[:, 0] ^ bits[:, 1]], axis=1), bits)
    assert np.allclose(result.per_latent, [0, 1, 0])  # the third tells neither factor, but for rounding
    assert np.isclose(result.score, 1 / 3)


def test_modularity_is_that_of_a_plain_loop():
    result, scores = modularity(MIXED, FACTORS), published.modularities(MIXED, FACTORS)
    assert np.allclose(result.per_latent, scores)
    assert np.isclose(result.score, np.mean(scores))
    assert result.settings == {"num_bins": 20, "samples": 900, "bin_edges": "float64"}


def test_degenerate_codes_and_factors_have_a_modularity():
    assert modularity(np.zeros((900, 3)), FACTORS).score == 0
    assert modularity(np.full((900, 1), 0.1), FACTORS).score == 0
    assert modularity(MIXED, np.zeros_like(FACTORS)).score == 0
    assert modularity(MIXED[:1], FACTORS[:1]).score == 0
    assert modularity(MIXED[:, :2], FACTORS[:, :1]).score == 1  # no other factor
    constant = np.concatenate([FACTORS, np.zeros((900, 1), int)], axis=1)
    assert np.isclose(modularity(MIXED, constant).score, modularity(MIXED, FACTORS).score)


def test_explicitness_is_that_of_a_plain_loop():
    area = published.explicitness(MIXED[TRAIN], FACTORS[TRAIN], MIXED[TEST], FACTORS[TEST])
    mean, spread = MIXED[TRAIN].mean(axis=0), MIXED[TRAIN].std(axis=0)
    train, test, factor_scores = (MIXED[TRAIN] - mean) / spread, (MIXED[TEST] - mean) / spread, []
    for factor in range(2):
        found = LogisticRegression().fit(train, FACTORS[TRAIN, factor]).predict_proba(test)
        areas = []
        for value in range(found.shape[1]):
            right = FACTORS[TEST, factor] == value
            wins = mannwhitneyu(found[right, value], found[~right, value]).statistic
            areas.append(wins / (right.sum() * (~right).sum()))
        factor_scores.append(2 * np.mean(areas) - 1)
    result = explicitness(MIXED[TRAIN], FACTORS[TRAIN], MIXED[TEST], FACTORS[TEST])
    assert np.allclose(result.per_factor, factor_scores, atol=1e-6)
    assert np.isclose(result.area, area, atol=1e-6)
    assert np.isclose(result.score, np.mean(factor_scores), atol=1e-6)
    assert np.isclose(result.area, (result.score + 1) / 2)
    assert 0.2 < result.score < 0.9
    assert result.settings == {"train": 600, "test": 300, "regularisation": 1.0, "iterations": 100}


def test_explicitness_of_a_perfect_code_is_1_and_of_noise_about_0():
    hot = np.concatenate([np.eye(3)[FACTORS[:, 0]], np.eye(5)[FACTORS[:, 1]]], axis=1)
    assert explicitness(hot[TRAIN], FACTORS[TRAIN], hot[TEST], FACTORS[TEST]).score == 1
    noise = GENERATOR.normal(size=(900, 2))
    assert abs(explicitness(noise[TRAIN], FACTORS[TRAIN], noise[TEST], FACTORS[TEST]).score) < 0.15


def test_explicitness_does_not_depend_on_the_order_sign_and_scale_of_latents_and_on_the_number_of_jobs():
    straight = explicitness(MIXED[TRAIN], FACTORS[TRAIN], MIXED[TEST], FACTORS[TEST])
    permuted = MIXED[:, [2, 0, 1]] * [-1, 3, -0.1]
    other = explicitness(permuted[TRAIN], FACTORS[TRAIN], permuted[TEST], FACTORS[TEST])
    assert np.allclose(other.per_factor, straight.per_factor, atol=2e-3)
    with joblib.parallel_config(n_jobs=2):
        side_by_side = explicitness(MIXED[TRAIN], FACTORS[TRAIN], MIXED[TEST], FACTORS[TEST])
    assert side_by_side.per_factor == straight.per_factor


def test_values_that_are_only_in_one_sample():
    train, taught = np.array([[-1.0], [1.0], [-1.0], [1.0]]), np.array([[0], [1], [0], [1]])
    test, asked = np.array([[-1.0], [1.0], [-5.0]]), np.array([[0], [1], [2]])
    # 0 is ahead of 1 and behind the third sample: ½; 1 is ahead of both: 1; 2 was never seen: ½
    assert np.isclose(explicitness(train, taught, test, asked).area, 2 / 3)
    assert explicitness(train, taught, test[:2], asked[:2]).area == 1
    untaught = explicitness(train, np.zeros((4, 1), int), test, asked)
    assert untaught.score == 0


def test_degenerate_codes_have_an_explicitness_or_a_reason():
    assert explicitness(np.full((600, 2), 0.1), FACTORS[TRAIN], np.full((300, 2), 0.1), FACTORS[TEST]).score == 0
    constant = np.zeros((900, 1), int)
    both = np.concatenate([constant, FACTORS], axis=1)
    result = explicitness(MIXED[TRAIN], both[TRAIN], MIXED[TEST], both[TEST])
    assert result.per_factor[0] == 0
    assert result.score == explicitness(MIXED[TRAIN], FACTORS[TRAIN], MIXED[TEST], FACTORS[TEST]).score
    with pytest.raises(UndefinedError, match="varies"):
        explicitness(MIXED[TRAIN], constant[TRAIN], MIXED[TEST], constant[TEST])
    with pytest.raises(UserError, match="2 latents"):
        explicitness(MIXED[TRAIN], FACTORS[TRAIN], MIXED[TEST, :2], FACTORS[TEST])
