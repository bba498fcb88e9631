import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

from lddr.errors import UserError
from lddr.metrics.information import discretised, entropy, mutual_information, mutual_information_matrix
from lddr.metrics.mig import mig
from tests.metrics import published

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers([4, 5], size=(4000, 2))


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 4)), min_size=1, max_size=60))
def test_mutual_information_is_that_of_scikit_learn(pairs):
    left, right = np.array(pairs).T
    assert np.isclose(mutual_information(left, right), mutual_info_score(left, right), atol=1e-12)
    assert np.isclose(entropy(left), mutual_info_score(left, left), atol=1e-12)


def test_bins_are_equal_and_the_last_edge_belongs_to_the_last_bin():
    codes = np.array([[0.0], [0.99], [1.0], [5.0], [9.99], [10.0]])
    assert discretised(codes, 10)[:, 0].tolist() == [1, 1, 2, 6, 10, 10]


@pytest.mark.parametrize("values", [11, 21, 41, 61, 81])
def test_edges_are_in_the_precision_of_the_codes(values):
    categories = GENERATOR.integers(values, size=(4000, 3))
    codes = np.linspace(-1, 1, values, dtype=np.float32)[categories]  # of saturated latents: they lie on the edges
    codes[:, 2] = codes[:, 0] * codes[:, 1]
    factors = categories[:, :2] // 3
    expected = published.mig(codes, factors)
    assert np.isclose(mig(codes, factors).score, expected, rtol=0, atol=1e-12)
    assert np.isclose(mig(codes.astype(np.float64), factors).score, expected, rtol=0, atol=1e-12)
    assert mig(codes, factors).settings["bin_edges"] == "float32"
    precise = codes + 1e-12 * GENERATOR.normal(size=codes.shape)
    assert np.isclose(mig(precise, factors).score, published.mig(precise, factors), rtol=0, atol=1e-12)
    assert mig(precise, factors).settings["bin_edges"] == "float64"


def test_the_precision_of_the_edges_matters():
    categories = GENERATOR.integers(41, size=(4000, 2))
    codes = np.linspace(-1, 1, 41, dtype=np.float32)[categories]
    factors = categories // 3
    assert abs(published.mig(codes, factors) - published.mig(codes.astype(np.float64), factors)) > 0.01


def test_codes_that_are_hardly_apart_have_bins():
    near = np.array([[1.0], [np.nextafter(np.float32(1), 2)]], np.float32)
    assert discretised(near.astype(np.float64), 20).min() >= 1
    assert discretised(np.full((3, 1), 0.1), 20)[:, 0].tolist() == [11, 11, 11]
    assert discretised(np.array([[-1e300], [1e300]]), 20)[:, 0].tolist() == [1, 20]


def test_a_perfect_code_scores_1_whatever_the_order_and_sign():
    assert np.isclose(mig(FACTORS.astype(float), FACTORS).score, 1, atol=0.01)
    flipped = np.stack([-FACTORS[:, 1], FACTORS[:, 0], np.zeros(4000)], axis=1)
    assert np.isclose(mig(flipped, FACTORS).score, mig(FACTORS, FACTORS).score)


def test_noise_scores_about_0_and_a_copied_latent_exactly_0():
    assert mig(GENERATOR.normal(size=(4000, 5)), FACTORS).score < 0.02
    assert mig(np.concatenate([FACTORS, FACTORS], axis=1), FACTORS).score == 0


def test_a_turned_code_scores_as_worked_out_by_hand():
    grid = np.stack(np.meshgrid([0, 1], [0, 1]), axis=-1).reshape(-1, 2)
    rotated = np.stack([grid.sum(axis=1), grid[:, 0] - grid[:, 1]], axis=1)
    result = mig(rotated, grid, num_bins=3)
    assert np.allclose(result.mutual_information, 0.5 * np.log(2))  # each latent tells each factor half of the time
    assert result.score == 0
    half = mig(np.stack([grid.sum(axis=1), grid[:, 0]], axis=1), grid, num_bins=3)
    assert np.allclose(half.per_factor, [0.5, 0.5])  # 1 - 1/2, and 1/2 - 0


def test_the_matrix_is_latents_by_factors():
    matrix = mutual_information_matrix(np.stack([FACTORS[:, 1], FACTORS[:, 0]], axis=1), FACTORS)
    assert matrix[1, 0] > 1.3
    assert matrix[0, 1] > 1.5
    assert matrix[0, 0] < 0.01


def test_factors_may_be_whole_numbers_of_any_type():
    codes = FACTORS + 0.1 * GENERATOR.normal(size=FACTORS.shape)
    expected = mig(codes, FACTORS).score
    for factors in (FACTORS.astype(float), FACTORS.astype(np.uint8)):
        assert mig(codes, factors).score == expected
    assert mig(codes, FACTORS > 1).score > 0


def test_degenerate_codes_have_a_score():
    assert mig(np.zeros((50, 3)), FACTORS[:50]).score == 0
    assert np.isclose(mig(FACTORS[:, :1], FACTORS[:, :1]).score, 1)
    constant = np.zeros((4000, 1), int)
    assert mig(FACTORS, constant).score == 0
    assert np.isclose(mig(FACTORS, np.concatenate([FACTORS, constant], axis=1)).score, mig(FACTORS, FACTORS).score)
    assert 0 <= mig(GENERATOR.normal(size=(5, 2)), FACTORS[:5]).score <= 1


@pytest.mark.parametrize(
    ("codes", "factors", "sentence"),
    [
        (np.full((9, 2), np.nan), np.zeros((9, 1), int), "NaN or infinite"),
        (np.zeros((9, 2)), np.zeros((8, 1), int), "got"),
        (np.zeros(9), np.zeros((9, 1), int), "expected codes"),
        (np.zeros((9, 2)), np.full((9, 1), 0.5), "whole numbers"),
        (np.zeros((9, 2)), np.full((9, 1), np.nan), "whole numbers"),
        (np.zeros((9, 2)), np.full((9, 1), "a"), "whole numbers"),
        (np.full((9, 2), "a"), np.zeros((9, 1), int), "table of numbers"),
        ([[1.0], [2.0, 3.0]], np.zeros((2, 1), int), "table of numbers"),
        (np.zeros((0, 2)), np.zeros((0, 1), int), "expected codes"),
    ],
)
def test_mistakes_are_sentences(codes, factors, sentence):
    with pytest.raises(UserError, match=sentence):
        mig(codes, factors)
