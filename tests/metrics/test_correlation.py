import numpy as np
from scipy.stats import spearmanr

from lddr.metrics import learned_correlation

X, Y, OTHER = np.random.default_rng(0).integers(10, size=(3, 5_000))
FACTORS = np.stack([X, Y, OTHER], axis=1)


def test_a_latent_for_each_factor_has_learned_no_correlation():
    codes = np.stack([-OTHER, Y, X], axis=1) * 0.3
    assert learned_correlation(codes, FACTORS, 0, 1) < 0.05


def test_one_latent_for_both_factors_is_fully_correlated():
    assert np.isclose(learned_correlation((10 * X + Y)[:, None], FACTORS, 0, 1), 1)


def test_it_is_the_rank_correlation_of_the_most_informative_latents():
    codes = np.stack([X + 0.5 * Y, OTHER, Y + 0.3 * X], axis=1)
    expected = abs(spearmanr(X + 0.5 * Y, Y + 0.3 * X).statistic)
    assert np.isclose(learned_correlation(codes, FACTORS, 0, 1), expected)
    assert np.isclose(learned_correlation(-codes, FACTORS, 1, 0), expected)
    # the linear correlation of x + y/2 and y + 0.3 x is 0.8 / sqrt(1.25 · 1.09) = 0.685; ranks lower it a little
    assert np.isclose(expected, 0.685, atol=0.04)


def test_codes_that_do_not_vary_have_none():
    assert np.isnan(learned_correlation(np.zeros((5_000, 2)), FACTORS, 0, 1))
