from functools import partial

import joblib
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.metrics.sap import sap
from tests.metrics.published import gaps_of, sap_accuracies

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers([2, 3, 5], size=(900, 3))
BLURRED = FACTORS @ GENERATOR.normal(size=(3, 4)) + 0.1 * GENERATOR.normal(size=(900, 4))
SPREAD = np.array([[50.0, 40.0, 30.0]]) * (FACTORS - FACTORS.mean(axis=0))


def scored(codes, factors=FACTORS, **settings):
    return sap(codes[:600], factors[:600], codes[600:], factors[600:], **settings)


def test_it_is_a_naive_reimplementation():
    result = scored(BLURRED)
    accuracy = sap_accuracies(BLURRED[:600], FACTORS[:600], BLURRED[600:], FACTORS[600:])
    gaps = gaps_of(accuracy)
    assert np.isclose(result.score, np.mean(gaps), rtol=0, atol=1e-12)
    assert np.allclose(result.per_factor, gaps, rtol=0, atol=1e-12)
    assert np.array_equal(result.accuracy, accuracy)
    assert result.settings == {"regularisation": 0.01, "seed": 0, "train": 600, "test": 300}


def test_a_perfect_code_of_two_values_has_the_gap_to_guessing():
    codes = SPREAD[:, :2]
    result = scored(codes, FACTORS[:, :1])
    assert result.accuracy[0, 0] == 1
    guessed = result.accuracy[1, 0]  # by the latent of another factor
    assert abs(guessed - 0.5) < 0.1
    assert result.score == 1 - guessed


def test_a_constant_latent_guesses_as_in_the_reference():
    codes = np.concatenate([SPREAD[:, :1], np.zeros((900, 2))], axis=1)
    result = scored(codes, FACTORS[:, :1])
    shares = [np.mean(FACTORS[600:, 0] == value) for value in (0, 1)]
    assert result.accuracy[1, 0] in shares
    assert result.score == 1 - result.accuracy[1, 0]
    assert scored(np.zeros((900, 3))).score == 0


def test_order_and_sign_change_nothing():
    assert scored(-BLURRED[:, ::-1]).score == scored(BLURRED).score


def test_a_copied_latent_scores_exactly_0_and_noise_about_0():
    assert scored(np.repeat(BLURRED, 2, axis=1)).per_factor == (0, 0, 0)
    assert 0 <= scored(GENERATOR.normal(size=(900, 3))).score < 0.05


def test_a_single_latent_has_a_gap_to_0():
    assert scored(SPREAD[:, :1], FACTORS[:, :1]).score == 1


def test_a_factor_that_does_not_vary_is_no_part_of_the_mean():
    padded = scored(BLURRED, np.insert(FACTORS, 1, 4, axis=1))
    assert padded.score == scored(BLURRED).score
    assert padded.per_factor[1] == 0
    assert not padded.accuracy[:, 1].any()
    with pytest.raises(UndefinedError, match="more than one value"):
        scored(BLURRED, np.ones((900, 2), int))


def test_rare_and_unknown_classes_are_no_trouble():
    rare = FACTORS.copy()
    rare[0, 0], rare[600:615, 0] = 9, 11  # seen once; never seen before the test
    assert scored(SPREAD, rare).accuracy[0, 0] == 0.95  # all but those fifteen of three hundred


def test_a_solver_that_gives_up_does_not_say_so(monkeypatch):
    hasty = partial(LinearSVC, max_iter=1)
    with pytest.warns(ConvergenceWarning):
        hasty().fit(BLURRED, FACTORS[:, 2])
    monkeypatch.setattr("sklearn.svm.LinearSVC", hasty)
    assert 0 <= scored(BLURRED).score <= 1  # a warning would be an error


@pytest.mark.long
def test_two_jobs_give_the_same_scores():
    with joblib.parallel_config(n_jobs=2):
        together = scored(BLURRED)
    assert together.as_dict() == scored(BLURRED).as_dict()


@pytest.mark.parametrize(
    ("codes", "factors", "sentence"),
    [
        (BLURRED[:, :2], FACTORS, "same latents"),
        (BLURRED, FACTORS[:, :2], "same latents"),
        (1e60 * BLURRED, FACTORS, "scale them down"),
    ],
)
def test_mistakes_are_sentences(codes, factors, sentence):
    with pytest.raises(UserError, match=sentence):
        sap(BLURRED, FACTORS, codes, factors)


def test_codes_next_to_nothing_come_back():
    """The solver does not stop on codes whose squares underflow."""
    found = sap([[-2.7e-207], [-1.0], [1.0]], [[1], [0], [0]], [[-2.7e-207], [0.0]], [[1], [0]])
    assert found.score == sap([[0.0], [-1.0], [1.0]], [[1], [0], [0]], [[0.0], [0.0]], [[1], [0]]).score
