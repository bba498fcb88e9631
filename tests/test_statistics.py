"""The rank correlation is scipy's, and so is the bootstrap interval where scipy's is defined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lddr.statistics import bootstrap_interval, spearman

PAIRS = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=30)


@settings(deadline=None)
@given(PAIRS.filter(lambda pairs: all(len(set(column)) > 1 for column in zip(*pairs, strict=True))))
def test_spearman_is_scipys_with_ties(pairs):
    left, right = np.array(pairs, np.float64).T
    expected = stats.spearmanr(left, right).statistic
    assert float(spearman(left, right)) == pytest.approx(expected, abs=1e-12)
    assert spearman([left, -left], [right, right]) == pytest.approx([expected, -expected], abs=1e-12)


def test_spearman_is_nan_where_a_side_is_constant():
    assert np.isnan(spearman([[1, 1, 1], [1, 2, 3]], [[1, 2, 3], [3, 2, 1]])).tolist() == [True, False]


def test_the_interval_is_that_of_a_normal_mean():
    values = np.random.default_rng(0).normal(3, 1, 400)
    interval = bootstrap_interval(lambda rows: rows.mean(axis=-1), values)
    assert np.allclose(interval, values.mean() + np.array([-1.96, 1.96]) * values.std() / 20, atol=0.02)


def test_the_interval_is_scipys():
    groups = [np.random.default_rng(seed).normal(seed, 1, 10 + seed) for seed in range(2)]

    def difference(one, other, axis=-1):
        return np.median(one, axis=axis) - np.median(other, axis=axis)

    options = {"n_resamples": 500, "method": "percentile", "rng": np.random.default_rng(0)}
    expected = stats.bootstrap(groups, difference, **options).confidence_interval
    assert bootstrap_interval(difference, *groups, resamples=500) == pytest.approx(expected)


def test_resamples_without_a_value_do_not_count():
    interval = bootstrap_interval(lambda rows: spearman(rows, rows), np.arange(3.0))
    assert interval == pytest.approx((1, 1))
