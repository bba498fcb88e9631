from importlib import import_module

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.tree import DecisionTreeRegressor

from lddr.metrics.dci import best_split, boosted, grown

boosting = import_module("lddr.metrics.dci")  # the function has the same name


def rooted(codes):
    order = np.argsort(codes, axis=0, kind="stable").T.copy()
    return order, np.take_along_axis(codes.T, order, axis=1)


@given(st.integers(0, 10_000), st.integers(2, 60), st.integers(1, 4), st.sampled_from([3, 1000]))
def test_a_tree_is_that_of_scikit_learn(seed, samples, latents, num_values):
    generator = np.random.default_rng(seed)
    codes = (generator.integers(num_values, size=(samples, latents)) / 7).astype(np.float32)
    residuals = generator.normal(size=samples)
    tree = DecisionTreeRegressor(max_depth=1, random_state=0).fit(codes, residuals).tree_
    taken, thresholds, gains = (part[0] for part in grown(rooted(codes), residuals, generator))
    if tree.node_count == 1:
        assert gains == 0
        return
    left = codes[:, taken] <= thresholds
    expected = residuals.var() * samples - sum(residuals[side].var() * side.sum() for side in (left, ~left))
    assert np.isclose(gains, expected)
    assert np.isclose(gains, tree.compute_feature_importances(normalize=False).sum() * samples)


def test_a_deep_tree_parts_the_samples_as_scikit_learn_does():
    generator = np.random.default_rng(0)
    codes, residuals = generator.normal(size=(500, 4)).astype(np.float32), generator.normal(size=500)
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(codes, residuals)
    latents, thresholds, gains = grown(rooted(codes), residuals, generator)
    ours = boosting.leaf_numbers(codes, latents, thresholds)
    assert len(set(zip(ours, tree.apply(codes), strict=True))) == len(set(ours)) == tree.get_n_leaves() == 8
    expected = tree.tree_.compute_feature_importances(normalize=False).sum() * 500
    assert np.isclose(gains.sum(), expected)  # of all latents: two of them part a small node equally well


def test_a_split_by_hand():
    codes = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [2.0, 5.0]], np.float32)
    residuals = np.array([1.0, 1.0, -1.0, -1.0])
    assert best_split(rooted(codes), residuals, np.random.default_rng(0)) == (0, 2, 4.0)  # the whole squared error
    assert grown(rooted(codes), residuals, np.random.default_rng(0))[1].tolist() == [1.5] + [np.inf] * 6
    assert best_split(rooted(codes[:, 1:]), residuals, np.random.default_rng(0)) is None
    assert best_split(rooted(codes), np.ones(4), np.random.default_rng(0)) is None


@pytest.mark.parametrize("classes", [2, 3, 6])
def test_a_single_latent_is_read_as_scikit_learn_reads_it(classes):
    generator = np.random.default_rng(classes)
    labels = generator.integers(classes, size=400) * 2  # labels need not be 0, 1, …
    codes = (labels[:, np.newaxis] + generator.normal(size=(400, 1))).astype(np.float32)
    model = GradientBoostingClassifier(random_state=0).fit(codes[:250], labels[:250])
    importance, predicted, predicted_test = boosted(codes[:250], labels[:250], codes[250:], seed=0)
    assert importance.tolist() == [1.0]
    assert np.array_equal(predicted, model.predict(codes[:250]))
    assert np.array_equal(predicted_test, model.predict(codes[250:]))


@pytest.mark.parametrize("classes", [2, 3])
def test_importances_are_those_of_scikit_learn(classes):
    generator = np.random.default_rng(classes)
    labels = generator.integers(classes, size=500)
    codes = generator.normal(size=(500, 3)).astype(np.float32)
    codes[:, 0] += 2 * labels
    codes[:, 1] += labels % 2
    model = GradientBoostingClassifier(random_state=0).fit(codes, labels)
    importance, predicted, _ = boosted(codes, labels, codes[:1], seed=0)
    assert np.allclose(importance, model.feature_importances_, atol=0.01)
    assert np.mean(predicted == model.predict(codes)) > 0.98


def test_equally_good_latents_share_the_importance_and_a_seed_decides():
    generator = np.random.default_rng(0)
    labels = generator.integers(3, size=300)
    codes = np.repeat(labels[:, np.newaxis] + 0.8 * generator.normal(size=(300, 1)), 2, axis=1).astype(np.float32)
    first, again, other = (boosted(codes, labels, codes, seed)[0] for seed in (0, 0, 1))
    assert np.allclose(first, 0.5, atol=0.15)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
