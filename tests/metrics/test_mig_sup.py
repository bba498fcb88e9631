import numpy as np

from lddr.metrics.mig import mig_sup
from tests.metrics.published import mig_sup_gaps

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers([4, 5, 2], size=(3000, 3))
MIXED = FACTORS @ [[1.0, 0.4], [0.3, 1.0], [0.0, 2.0]] + GENERATOR.normal(size=(3000, 2))
BITS = np.stack(np.meshgrid([0, 1], [0, 1]), axis=-1).reshape(-1, 2)


def test_gaps_by_hand():
    codes = np.stack([BITS.sum(axis=1), BITS[:, 0], BITS[:, 0] ^ BITS[:, 1]], axis=1)
    result = mig_sup(codes, BITS)
    assert np.allclose(result.per_latent, [0, 1, 0])  # half a bit on both; one bit on one; nothing on either
    assert np.isclose(result.score, 1 / 3)
    assert np.allclose(result.mutual_information, np.log(2) * np.array([[0.5, 0.5], [1, 0], [0, 0]]))


def test_a_perfect_code_scores_1_whatever_the_order_and_sign_and_copies():
    codes = np.stack([-FACTORS[:, 1], FACTORS[:, 0], FACTORS[:, 2], FACTORS[:, 2]], axis=1)
    assert np.isclose(mig_sup(codes, FACTORS).score, 1, atol=0.01)
    assert np.isclose(mig_sup(codes[:, ::-1], FACTORS).score, mig_sup(codes, FACTORS).score)


def test_noise_scores_about_0():
    assert mig_sup(GENERATOR.normal(size=(3000, 4)), FACTORS).score < 0.01


def test_it_is_that_of_a_plain_loop():
    result, gaps = mig_sup(MIXED, FACTORS), mig_sup_gaps(MIXED, FACTORS)
    assert np.allclose(result.per_latent, gaps)
    assert np.isclose(result.score, np.mean(gaps))


def test_only_latents_above_the_variance_count():
    codes = np.concatenate([FACTORS, 0.09 * GENERATOR.normal(size=(3000, 1)), np.full((3000, 1), 0.1)], axis=1)
    result = mig_sup(codes, FACTORS)
    assert result.active == (True, True, True, False, False)
    assert result.score == mig_sup(codes[:, :3], FACTORS).score
    every = mig_sup(codes, FACTORS, active_variance=0)
    assert every.active == (True, True, True, True, False)
    assert every.score < 0.8
    assert every.settings == {"num_bins": 20, "active_variance": 0, "samples": 3000, "bin_edges": "float64"}


def test_degenerate_codes_and_factors_have_a_score():
    assert mig_sup(np.zeros((3000, 2)), FACTORS).score == 0
    assert mig_sup(MIXED, np.zeros_like(FACTORS)).score == 0
    assert mig_sup(MIXED[:1], FACTORS[:1]).score == 0
    assert np.isclose(mig_sup(FACTORS[:, :1], FACTORS[:, :1]).score, 1)
    constant = np.concatenate([FACTORS, np.zeros((3000, 1), int)], axis=1)
    assert mig_sup(MIXED, constant).score == mig_sup(MIXED, FACTORS).score
