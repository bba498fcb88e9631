import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, mutual_info_score

from lddr.errors import UserError
from lddr.metrics.information import discretised
from lddr.metrics.metric import UndefinedError
from lddr.metrics.modularity import concentration, infomec, predicted_share
from tests.metrics.published import neighbour_information

GENERATOR = np.random.default_rng(0)
GRID = np.tile(np.stack(np.meshgrid(range(3), range(4), indexing="ij"), axis=-1).reshape(-1, 2), (20, 1))
FACTORS = GENERATOR.integers([3, 4], size=(500, 2))
MIXED = FACTORS @ [[1.0, 0.4, 0.0], [0.3, 1.0, 0.0]] + GENERATOR.normal(size=(500, 3))
BITS = np.stack(np.meshgrid([0, 1], [0, 1]), axis=-1).reshape(-1, 2)
ESTIMATORS = ("neighbours", "binned", "categories")


def naive(information, factors, codes, inputs):
    """The three scores with loops, from the mutual information (latents, factors)."""
    shares = information / [mutual_info_score(factor, factor) for factor in factors.T]
    latents, count = shares.shape
    tops = [max(row) / sum(row) if sum(row) else 1 / count for row in shares]
    infom = (np.mean(tops) - 1 / count) / (1 - 1 / count)
    infoc = np.mean([(max(column) / sum(column) - 1 / latents) / (1 - 1 / latents) for column in shares.T])
    infoe = []
    for factor in factors.T:
        losses = []
        for given in (inputs, np.zeros_like(codes)):
            model = LogisticRegression(C=np.inf, class_weight="balanced").fit(given, factor)
            losses.append(log_loss(factor, model.predict_proba(given)))
        infoe.append(1 - losses[0] / losses[1])
    return infom, infoc, np.mean(infoe)


def test_concentration_by_hand():
    rows = np.array([[3.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [0.0, 2.0, 0.0]])
    assert np.allclose(concentration(rows), [(3 / 4 - 1 / 3) / (2 / 3), 0, 0, 1])
    assert concentration(np.array([[0.2], [0.0]])).tolist() == [1, 0]
    assert concentration(np.zeros((2, 0))).tolist() == [0, 0]


def test_bits_by_hand():
    codes = np.stack([BITS.sum(axis=1), BITS[:, 0]], axis=1).astype(float)
    result = infomec(codes, BITS, estimator="categories")
    assert np.allclose(result.infom_per_latent, [0, 1])  # half a bit on both; a bit on one
    assert np.allclose(result.infoc_per_factor, [(1 / 1.5 - 0.5) / 0.5, 1])  # ½ and 1 on the first, ½ on the second
    assert np.allclose(result.infoe_per_factor, 1, atol=0.01)
    assert (result.score, result.infoc) == (np.mean(result.infom_per_latent), np.mean(result.infoc_per_factor))


def test_the_neighbours_are_those_of_the_published_estimator():
    codes = (MIXED - MIXED.mean(axis=0)) / MIXED.std(axis=0)
    information = np.array([[neighbour_information(code, factor) for factor in FACTORS.T] for code in codes.T])
    result = infomec(MIXED, FACTORS)
    assert np.allclose(result.mutual_information, information, atol=1e-6)
    expected = naive(information, FACTORS, MIXED, codes)
    assert np.allclose([result.score, result.infoc, result.infoe], expected, atol=1e-4)
    assert result.settings == {
        "estimator": "neighbours",
        "num_neighbours": 10,
        "num_bins": 20,
        "active_range": 0.05,
        "iterations": 100,
        "seed": 0,
        "samples": 500,
        "test": 0,
    }


@pytest.mark.parametrize("estimator", ["binned", "categories"])
def test_histograms_and_categories_are_those_of_plain_loops(estimator):
    codes = MIXED if estimator == "binned" else np.round(MIXED)
    symbols = discretised(codes, 20) if estimator == "binned" else codes.astype(int)
    hot = np.concatenate([column[:, None] == np.unique(column) for column in codes.T], axis=1).astype(float)
    inputs = (codes - codes.mean(axis=0)) / codes.std(axis=0) if estimator == "binned" else hot
    information = np.array([[mutual_info_score(code, factor) for factor in FACTORS.T] for code in symbols.T])
    result = infomec(codes, FACTORS, estimator=estimator, iterations=100)
    assert np.allclose(result.mutual_information, information)
    expected = naive(information, FACTORS, codes, inputs)
    assert np.allclose([result.score, result.infoc, result.infoe], expected, atol=1e-4)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_perfect_code_scores_1_whatever_the_order_and_sign(estimator):
    rotated = np.stack([-GRID[:, 1], GRID[:, 0]], axis=1).astype(float)
    for codes in (GRID.astype(float), rotated):
        result = infomec(codes, GRID, estimator=estimator)
        assert np.allclose([result.score, result.infoc, result.infoe], 1, atol=0.02)


@pytest.mark.parametrize("estimator", ["binned", "categories"])
def test_noise_tells_little(estimator):
    noise = GENERATOR.integers(0, 4, size=(500, 2)).astype(float)
    result = infomec(noise, FACTORS, estimator=estimator)
    assert abs(result.infoe) < 0.05
    assert result.mutual_information.max() < 0.05


def test_a_copied_latent_halves_compactness_and_leaves_modularity():
    result = infomec(GRID[:, [0, 1, 0]], GRID, estimator="categories")
    assert np.isclose(result.score, 1)
    assert np.allclose(result.infoc_per_factor, [(1 / 2 - 1 / 3) / (2 / 3), 1])


def test_latents_of_a_small_range_do_not_count():
    codes = np.concatenate([MIXED, 1e-3 * MIXED.sum(axis=1, keepdims=True), np.full((500, 1), 0.1)], axis=1)
    result, without = infomec(codes, FACTORS), infomec(MIXED, FACTORS)
    assert result.active == (True, True, True, False, False)
    assert np.allclose([result.score, result.infoc], [without.score, without.infoc])
    assert infomec(codes, FACTORS, estimator="categories").active == (True, True, True, True, False)


def test_the_loss_without_codes_is_the_logarithm_of_the_number_of_values():
    uneven = np.repeat([0, 4, 7], [50, 5, 2])
    nothing = np.zeros((57, 2))
    assert np.isclose(predicted_share(nothing, uneven, nothing, uneven, 100), 0)


def test_explicitness_can_be_that_of_a_test_sample():
    split = infomec(MIXED[:300], FACTORS[:300], MIXED[300:], FACTORS[300:])
    whole = infomec(MIXED[:300], FACTORS[:300])
    assert split.score == whole.score
    assert split.settings["test"] == 200
    model = LogisticRegression(C=np.inf, class_weight="balanced").fit(MIXED[:300], FACTORS[:300, 0])
    loss = log_loss(FACTORS[300:, 0], model.predict_proba(MIXED[300:]))
    assert np.isclose(split.infoe_per_factor[0], 1 - loss / np.log(3), atol=1e-4)
    unseen = infomec(MIXED[:300], FACTORS[:300], MIXED[300:], np.where(FACTORS[300:] == 2, 9, FACTORS[300:]))
    assert np.isfinite(unseen.infoe)
    assert infomec(MIXED[:300], FACTORS[:300], MIXED[300:], FACTORS[300:] + 9).infoe == 0
    hot = infomec(GRID, GRID, np.add(GRID, [5, 0]), GRID, estimator="categories")  # categories that training never saw
    assert np.isfinite(hot.infoe)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_degenerate_codes_and_factors_have_scores(estimator):
    nothing = infomec(np.full((500, 2), 0.1), FACTORS, estimator=estimator)
    assert np.allclose([nothing.score, nothing.infoc, nothing.infoe], 0)
    single = infomec(GRID[:, :1], GRID[:, :1], estimator=estimator)
    assert np.allclose([single.score, single.infoc, single.infoe], 1, atol=0.02)
    constant = np.concatenate([FACTORS, np.zeros((500, 1), int)], axis=1)
    more, fewer = (infomec(MIXED, factors, estimator=estimator) for factors in (constant, FACTORS))
    assert (more.score, more.infoc, more.infoe) == (fewer.score, fewer.infoc, fewer.infoe)
    once = np.concatenate([FACTORS[:, :1], np.where(np.arange(500)[:, None] == 0, 9, FACTORS[:, 1:])], axis=1)
    assert np.isfinite(infomec(MIXED, once, estimator=estimator).score)
    assert np.isfinite(infomec(MIXED[:6], FACTORS[:6], estimator=estimator).score)


def test_what_is_undefined_says_why():
    with pytest.raises(UndefinedError, match="varies"):
        infomec(MIXED, np.zeros_like(FACTORS))
    with pytest.raises(UndefinedError, match="binned"):
        infomec(MIXED[:20], np.arange(20)[:, None])
    with pytest.raises(UserError, match="categories"):
        infomec(MIXED, FACTORS, estimator="nearest")
    with pytest.raises(UserError, match="2 latents"):
        infomec(MIXED, FACTORS, MIXED[:, :2], FACTORS)


@pytest.mark.long
def test_the_same_seed_gives_the_same_scores_on_one_job_or_two():
    codes = np.round(MIXED)  # ties, which the estimator breaks at random
    first = infomec(codes, FACTORS, seed=3)
    with joblib.parallel_config(n_jobs=2):
        second = infomec(codes, FACTORS, seed=3)
    assert first.as_dict() == second.as_dict()
    assert not np.array_equal(first.mutual_information, infomec(codes, FACTORS, seed=4).mutual_information)
