import numpy as np
import pytest

from lddr.selection.ranking import Encoded
from lddr.selection.selectors import alike, groups_to_compare, truths, vote_score

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.random((1000, 3))


def coded(codes):
    return Encoded(np.asarray(codes, np.float64))


def test_a_model_is_like_itself_and_like_its_latents_in_another_order_scale_and_sign():
    own, renamed = coded(FACTORS), coded(FACTORS[:, [2, 0, 1]] * [5, -1, 2] + 3)
    likeness = alike([own, renamed])
    assert likeness == pytest.approx(np.ones((2, 2)))


def test_a_model_that_mixes_is_less_like_and_noise_is_like_nothing():
    rotated = np.linalg.qr(GENERATOR.normal(size=(3, 3)))[0]
    likeness = alike([coded(FACTORS), coded(FACTORS @ rotated), coded(GENERATOR.random((1000, 3)))])
    assert likeness == pytest.approx(likeness.T)
    assert likeness[0, 0] > likeness[0, 1] > likeness[0, 2]
    assert likeness[0, 2] < 0.5  # about a third: there are three latents to guess from


def test_the_score_by_hand():
    truth = np.array([[0], [0], [1], [1]])
    assert vote_score(truth, coded([[0.0, 1.0], [0.0, 2.0], [5.0, 3.0], [5.0, 4.0]])) == 1.0  # one factor: always right
    two = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    factors, _ = groups_to_compare(two)
    alone = coded(10.0 * two[:, :1])  # its one latent is taken for the factor that is asked for most often
    assert vote_score(two, alone) == max(np.mean(factors == 0), np.mean(factors == 1))


def test_images_of_a_vote_share_the_value_of_its_factor():
    truth = GENERATOR.integers(4, size=(200, 2))
    factors, members = groups_to_compare(truth)
    for factor, group in zip(factors, members, strict=True):
        assert len(set(truth[group, factor])) == 1


def test_latents_that_are_not_in_use_do_not_count():
    codes = FACTORS.copy()
    codes[:, 1] = 0.5
    assert truths(coded(codes)).shape == (1000, 2)
    assert vote_score(truths(coded(FACTORS)), coded(np.zeros((1000, 3)))) == 0.0
