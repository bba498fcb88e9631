from dataclasses import asdict

import joblib
import numpy as np
import pytest
from scipy.stats import entropy

from lddr.errors import UserError
from lddr.metrics.dci import dci, entropy_concentration
from lddr.metrics.metric import UndefinedError
from tests.metrics import published

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers([2, 3], size=(250, 2))
NOISE = GENERATOR.normal(size=(250, 3))
BLURRED = np.concatenate([FACTORS @ [[1.0, 0.5], [0.2, 1.0]], np.zeros((250, 1))], axis=1) + 0.2 * NOISE
ESTIMATORS = pytest.mark.parametrize("estimator", ["published", "fast"])


def scored(codes, factors=FACTORS, estimator="published", **settings):
    return dci(codes[:150], factors[:150], codes[150:], factors[150:], estimator, **settings)


def naive(codes, factors):
    """Everything in loops over scikit-learn and scipy."""
    train, test = (codes[:150], factors[:150]), (codes[150:], factors[150:])
    disentanglement, completeness, informativeness, importance = published.dci(*train, *test)
    return {
        "disentanglement": disentanglement,
        "completeness": completeness,
        "informativeness": informativeness,
        "informativeness_train": published.dci(*train, *train)[2],
        "per_latent": [1 - entropy(row, base=factors.shape[1]) for row in importance],
        "per_factor": [1 - entropy(column, base=codes.shape[1]) for column in importance.T],
        "importance": importance,
    }


def test_the_published_one_is_a_naive_reimplementation():
    ours = asdict(scored(BLURRED))
    for name, value in naive(BLURRED, FACTORS).items():
        assert np.allclose(ours[name], value, rtol=0, atol=1e-12), name
    assert ours["score"] == ours["disentanglement"]
    assert ours["settings"] == {"estimator": "published", "seed": 0, "train": 150, "test": 100}


def test_the_fast_one_is_close_to_it():
    published, fast = scored(BLURRED), scored(BLURRED, estimator="fast")
    assert np.allclose(fast.importance, published.importance, atol=0.03)
    assert np.allclose(fast.score, published.score, atol=0.03)
    assert np.allclose(fast.accuracies, published.accuracies, atol=0.03)
    assert fast.settings["estimator"] == "fast"


def test_concentration_by_hand():
    rows, mean = entropy_concentration(np.array([[0.6, 0.0], [0.4, 0.4], [0.0, 0.0], [0.0, 0.6]]))
    assert np.allclose(rows, [1, 0, 0, 1])
    assert np.isclose(mean, 1.2 / 2)
    quarter = 1 + (0.25 * np.log(0.25) + 0.75 * np.log(0.75)) / np.log(2)
    assert np.isclose(entropy_concentration(np.array([[1.0, 3.0]]))[1], quarter)
    assert entropy_concentration(np.array([[2.0], [0.0]]))[0].tolist() == [
        1,
        0,
    ]  # with one column there is nothing to mix


@ESTIMATORS
def test_a_perfect_code_scores_1_whatever_the_order_and_sign(estimator):
    permuted = np.stack([np.zeros(250), -FACTORS[:, 1], FACTORS[:, 0]], axis=1)
    result = scored(permuted, estimator=estimator)
    assert np.allclose([result.score, result.completeness, result.informativeness], 1, atol=1e-6)
    assert np.allclose(result.importance, [[0, 0], [0, 1], [1, 0]], atol=1e-6)


def test_order_and_sign_change_an_imperfect_code_no_more_than_a_seed_does():
    moved = scored(-BLURRED[:, ::-1], estimator="fast")
    assert np.isclose(moved.score, scored(BLURRED, estimator="fast").score, atol=0.03)


@ESTIMATORS
def test_noise_scores_about_0_and_a_copied_latent_costs_completeness_only(estimator):
    noise = scored(NOISE, estimator=estimator)
    assert noise.score < 0.05
    assert noise.informativeness < 0.5
    copied = scored(np.concatenate([FACTORS, FACTORS], axis=1), estimator=estimator)
    assert np.isclose(copied.score, 1, atol=1e-6)
    assert np.isclose(copied.completeness, 0.5, atol=0.1)  # two of four latents, evenly


@ESTIMATORS
def test_degenerate_codes_and_factors_have_a_score(estimator):
    constant = scored(np.zeros((250, 3)), FACTORS[:, :1], estimator)
    assert (constant.score, constant.completeness) == (0, 0)
    one = scored(FACTORS[:, :1], FACTORS[:, [0, 0]], estimator)
    assert one.completeness == 1  # what a single latent tells is in one latent
    single = scored(BLURRED, FACTORS[:, :1], estimator)
    assert np.isclose(single.score, 1)
    blind = np.tile([[0.0], [1.0]], (126, 1))
    balanced = np.tile([[0], [0], [1], [1]], (63, 1))
    nothing = dci(blind[:152], balanced[:152], blind[152:], balanced[152:], estimator)
    assert nothing.score == 0  # every split is worth exactly nothing
    assert 0 <= dci(NOISE[:4], FACTORS[:4], NOISE[4:9], FACTORS[4:9], estimator).score <= 1


def test_a_factor_that_does_not_vary_changes_nothing_else():
    padded = np.insert(FACTORS, 1, 7, axis=1)
    result, plain = (asdict(scored(BLURRED, factors, "fast")) for factors in (padded, FACTORS))
    assert result["per_factor"][1] == result["accuracies"][1] == 0
    assert not result["importance"][:, 1].any()
    for name in ("score", "completeness", "informativeness", "informativeness_train", "per_latent"):
        assert result[name] == plain[name]
    with pytest.raises(UndefinedError, match="more than one value"):
        scored(BLURRED, np.ones((250, 2), int))


@ESTIMATORS
def test_rare_and_unknown_classes_are_no_trouble(estimator):
    rare = FACTORS.copy()
    rare[0, 0], rare[150:160, 0] = 9, 11  # seen once; never seen before the test
    result = scored(FACTORS, rare, estimator)
    assert result.accuracies == (0.9, 1)  # all but those ten of a hundred
    assert result.informativeness_train > 0.99


@pytest.mark.parametrize(
    ("estimator", "backend"), [pytest.param("published", "loky", marks=pytest.mark.long), ("fast", "threading")]
)
def test_the_same_seed_gives_the_same_scores_on_two_jobs(estimator, backend):
    alone = scored(BLURRED, estimator=estimator, seed=3)
    with joblib.parallel_config(backend, n_jobs=2):
        together = scored(BLURRED, estimator=estimator, seed=3)
    assert alone.as_dict() == together.as_dict()


@pytest.mark.parametrize(
    ("codes", "factors", "estimator", "sentence"),
    [
        (NOISE[:, :2], FACTORS, "published", "same latents"),
        (NOISE, FACTORS[:, :1], "published", "same latents"),
        (NOISE, FACTORS, "quick", "estimator must be one of published, fast"),
        (1e300 * NOISE, FACTORS, "published", "scale them down"),
    ],
)
def test_mistakes_are_sentences(codes, factors, estimator, sentence):
    with pytest.raises(UserError, match=sentence):
        dci(NOISE, FACTORS, codes, factors, estimator)
