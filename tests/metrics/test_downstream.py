import warnings
from importlib import import_module

import joblib
import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedKFold

from lddr.errors import UserError
from lddr.metrics.downstream import downstream
from lddr.metrics.metric import FewSamplesWarning, UndefinedError, metrics
from tests.metrics.toys import sample_of

module = import_module("lddr.metrics.downstream")  # its function has the same name
LEARNERS = ["logistic", "boosting"]
GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers([3, 2], size=(700, 2))
NOISY = FACTORS + 0.6 * GENERATOR.normal(size=FACTORS.shape)
NOISE = GENERATOR.normal(size=(700, 3))


def scored(codes, factors=FACTORS, learner="logistic", sizes=(10, 100), train=200, **settings):
    return downstream(codes[:train], factors[:train], codes[train:], factors[train:], learner, sizes, **settings)


def naive_logistic(codes, labels, codes_test):
    """Of ten strengths the one with the best mean accuracy on five folds in sequence, the weakest on a tie."""
    strengths = np.logspace(-4, 4, 10)

    def held_out(strength, train, test):
        model = LogisticRegression(C=strength, max_iter=2000).fit(codes[train], labels[train])
        return model.score(codes[test], labels[test])

    means = [np.mean([held_out(strength, *fold) for fold in KFold(5).split(codes)]) for strength in strengths]
    best = LogisticRegression(C=strengths[np.argmax(means)], max_iter=2000).fit(codes, labels)
    return best.predict(codes_test)


def test_logistic_accuracy_is_that_of_a_naive_search():
    result = scored(NOISY)
    for row, size in enumerate((10, 100)):
        for factor in range(2):
            predicted = naive_logistic(NOISY[:size], FACTORS[:size, factor], NOISY[200:])
            assert abs(result.accuracy[row, factor] - np.mean(predicted == FACTORS[200:, factor])) <= 2 / 500


def naive_stratified(codes, labels, codes_test):
    """The same with folds in the shares of the values, without the values that occur once."""
    several = [place for place, label in enumerate(labels) if list(labels).count(label) > 1]
    codes, labels, strengths = codes[several], labels[several], np.logspace(-4, 4, 10)
    means = []
    for strength in strengths:
        folds, model = StratifiedKFold(5).split(codes, labels), LogisticRegression(C=strength, max_iter=2000)
        means.append(np.mean([model.fit(codes[a], labels[a]).score(codes[b], labels[b]) for a, b in folds]))
    return LogisticRegression(C=strengths[np.argmax(means)], max_iter=2000).fit(codes, labels).predict(codes_test)


def test_folds_can_be_those_of_the_authors():
    rare = FACTORS[:, :1].copy()
    rare[3] = 7  # occurs once
    result = scored(NOISY, rare, sizes=(100,), stratified=True)
    expected = np.mean(naive_stratified(NOISY[:100], rare[:100, 0], NOISY[200:]) == rare[200:, 0])
    assert abs(result.score - expected) <= 2 / 500
    assert result.settings["stratified"] is True
    assert scored(NOISY, rare, sizes=(100,)).settings["stratified"] is False
    for size in (2, 3, 10):  # few of many values: all occur once, or one twice
        assert 0 <= scored(NOISY, np.arange(700)[:, None] // 2 % 300, sizes=(size,), stratified=True).score <= 1
    assert "stratified" not in metrics["downstream_boosting"].settings


def test_fast_boosting_is_as_accurate_as_the_published():
    both = [scored(NOISY, learner="boosting", sizes=(100,), estimator=name) for name in ("published", "fast")]
    assert np.abs(both[0].accuracy - both[1].accuracy).max() <= 0.02
    assert [result.settings["estimator"] for result in both] == ["published", "fast"]
    assert "estimator" not in metrics["downstream_logistic"].settings


def test_boosting_accuracy_is_that_of_the_default_classifier():
    result = scored(NOISY, learner="boosting", sizes=(10, 30), seed=3)
    for row, size in enumerate((10, 30)):
        for factor in range(2):
            model = GradientBoostingClassifier(random_state=3).fit(NOISY[:size], FACTORS[:size, factor])
            assert result.accuracy[row, factor] == model.score(NOISY[200:], FACTORS[200:, factor])


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_perfect_code_is_right_and_noise_guesses(learner):
    perfect = scored(np.eye(3)[FACTORS[:, 0]], FACTORS[:, :1], learner, sizes=(100,))
    assert perfect.score == 1
    assert perfect.settings["learner"] == learner
    noise = scored(NOISE, learner=learner, sizes=(100,))
    assert np.allclose(noise.per_factor, [1 / 3, 1 / 2], atol=0.1)


def test_the_parts_of_a_result_fit_together():
    result = scored(NOISY, sizes=(100, 10))
    assert result.sizes == (10, 100)
    assert result.accuracy.shape == (2, 2)
    assert np.allclose(result.mean_accuracy, result.accuracy.mean(axis=1))
    assert result.score == result.mean_accuracy[-1]
    assert result.per_factor == tuple(result.accuracy[-1])
    assert result.settings["train"] == 200
    assert result.settings["test"] == 500
    assert result.as_dict()["accuracy"] == result.accuracy.tolist()


def test_logistic_regression_does_not_care_about_order_and_sign():
    permuted = -NOISY[:, ::-1]
    assert np.allclose(scored(permuted, sizes=(100,)).accuracy, scored(NOISY, sizes=(100,)).accuracy, atol=2 / 500)


@pytest.mark.parametrize("learner", LEARNERS)
def test_only_the_first_samples_are_seen(learner):
    changed = NOISY.copy()
    changed[20:200] = 99
    before, after = (scored(codes, learner=learner, sizes=(20,)).accuracy for codes in (NOISY, changed))
    assert np.array_equal(before, after)


def test_efficiency_is_few_over_many_and_says_nothing_when_either_is_missing(monkeypatch):
    monkeypatch.setattr(module, "accuracy_of", lambda how, codes, *_: {100: 0.3, 200: 0.5}[len(codes)])
    assert scored(NOISY, sizes=(100, 200)).efficiency is None
    monkeypatch.setattr(module, "MANY", 200)
    assert np.isclose(scored(NOISY, sizes=(100, 200)).efficiency, 0.6)
    assert scored(NOISY, sizes=(100,)).efficiency is None
    assert scored(NOISY, sizes=(200,)).efficiency is None
    monkeypatch.setattr(module, "accuracy_of", lambda *_: 0.0)
    assert scored(NOISY, sizes=(100, 200)).efficiency is None


def test_sizes_beyond_the_sample_are_left_out_and_named():
    result = scored(NOISY, sizes=(10, 1000, 300), train=250)
    assert (result.sizes, result.left_out) == ((10,), (300, 1000))
    assert result.settings["sizes"] == (10, 1000, 300)
    with pytest.raises(UndefinedError, match="250 samples, fewer than the smallest size, 300"):
        scored(NOISY, sizes=(1000, 300), train=250)


@pytest.mark.parametrize("learner", LEARNERS)
def test_one_class_is_predicted_throughout(learner):
    factors = FACTORS.copy()
    factors[:10, 0] = 2
    assert scored(NOISY, factors, learner, (10,)).accuracy[0, 0] == np.mean(factors[200:, 0] == 2)
    assert scored(NOISY, factors, learner, (1,)).accuracy[0, 0] == np.mean(factors[200:, 0] == 2)


def test_a_factor_that_does_not_vary_is_no_part_of_the_means():
    constant = np.zeros((700, 1), int)
    result = scored(NOISE, np.concatenate([FACTORS, constant], axis=1), sizes=(20,))
    assert result.accuracy[0, 2] == 1
    assert np.isclose(result.score, result.accuracy[0, :2].mean())
    with pytest.raises(UndefinedError, match="more than one value"):
        scored(NOISE, constant)


@pytest.mark.parametrize(
    ("learner", "codes", "sizes"),
    [
        ("logistic", np.zeros((150, 2)), (2, 3, 10)),
        ("logistic", NOISE[:150, :1], (1, 30)),
        ("logistic", 1e4 * NOISE[:150], (7,)),
        ("boosting", np.zeros((150, 2)), (3,)),
        ("boosting", 1e4 * NOISE[:150, :1], (7,)),
    ],
)
def test_few_samples_of_many_classes_and_odd_codes_are_scored_in_silence(learner, codes, sizes):
    counter = np.arange(150)
    many = np.stack([counter % 18, counter // 5 % 2, counter % 2 + 1000 * (counter == 3)], axis=1)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        accuracy = scored(codes, many, learner, sizes, train=100).accuracy
    others = [warning for warning in heard if warning.category is not FewSamplesWarning]
    assert [str(warning.message) for warning in others] == []
    assert np.isfinite(accuracy).all()
    assert (accuracy <= 1).all()


def test_a_constant_code_predicts_the_most_frequent_class():
    factors = (np.arange(700) % 3 == 0).astype(int)[:, None]
    for learner in LEARNERS:
        assert scored(np.zeros((700, 2)), factors, learner, (100,)).score == np.mean(factors[200:] == 0)


def test_one_or_two_jobs_give_the_same_numbers():
    with joblib.parallel_config(n_jobs=2):
        two = scored(NOISY, sizes=(30, 20))
    assert np.array_equal(two.accuracy, scored(NOISY, sizes=(20, 30)).accuracy)


def test_the_longest_fits_come_first_and_the_bar_reaches_the_end(monkeypatch):
    costs, shares = [], []
    monkeypatch.setattr(
        module, "accuracy_of", lambda how, codes, labels, *_: costs.append(len(codes) * len(set(labels))) or 0
    )
    scored(NOISY, sizes=(10, 200, 100), progress=shares.append)
    assert costs == sorted(costs, reverse=True)
    assert np.isclose(sum(shares), 1)
    assert np.allclose(np.array(shares) * sum(costs), costs)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"learner": "forest"}, "learner must be one of logistic, boosting"),
        ({"sizes": ()}, "sizes must be"),
        ({"sizes": (0, 10)}, "sizes must be at least 1"),
        ({"codes_test": np.zeros((9, 3))}, "the same latents and factors"),
        ({"factors_test": np.zeros((9, 1), int)}, "the same latents and factors"),
        ({"factors_train": np.zeros((9, 0), int), "factors_test": np.zeros((9, 0), int)}, "accuracy needs a latent"),
        ({"learner": "boosting", "codes_train": np.full((9, 2), 1e40)}, "too large for boosted trees"),
        ({"codes_train": np.full((9, 2), np.nan)}, "NaN or infinite"),
    ],
)
def test_mistakes_are_sentences(change, sentence):
    codes, factors = np.zeros((9, 2)), np.arange(18).reshape(9, 2)
    arrays = {"codes_train": codes, "factors_train": factors, "codes_test": codes, "factors_test": factors}
    with pytest.raises(UserError, match=sentence):
        downstream(**(arrays | change))


@pytest.mark.parametrize("name", ["downstream_logistic", "downstream_boosting"])
def test_the_largest_size_is_drawn_and_the_learner_is_in_the_result(name):
    metric = metrics[name].with_settings(sizes=(10, 60), test=40)
    assert metric.parts == {"train": 60, "test": 40}
    assert metrics[name].parts == {"train": 10_000, "test": 5_000}
    own = {"stratified": False} if name == "downstream_logistic" else {"estimator": "published"}
    assert metrics[name].settings == {"sizes": (10, 100, 1_000, 10_000), "test": 5_000, "seed": 0} | own
    samples = {"train": sample_of(NOISY[:60], FACTORS[:60]), "test": sample_of(NOISY[60:100], FACTORS[60:100])}
    assert metric.score(samples).settings["learner"] == name.removeprefix("downstream_")
