"""The rank correlation is scipy's, and so is the bootstrap interval where scipy's is defined."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.model_selection import KFold

from lddr.statistics import bootstrap_interval, centred_interval, resampled_rows, spearman

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


def test_a_centred_interval_by_hand():
    values = np.linspace(0.2, 0.6, 101)  # 5 %, 50 % and 95 %: 0.22, 0.4, 0.58
    found, shift = centred_interval(0.5, values, 0.9, True)
    assert np.allclose(found, (0.32, 0.68))
    assert np.isclose(shift, -0.1)
    assert np.allclose(centred_interval(0.95, values + 0.4, 0.9, True)[0], (0.77, 1))  # what is a share stays one
    assert np.allclose(centred_interval(0.95, values + 0.4, 0.9, False)[0], (0.77, 1.13))
    assert np.allclose(centred_interval(0.05, values - 0.2, 0.9, False)[0], (0, 0.23))
    assert np.allclose(centred_interval(0.05, values - 0.4, 0.9, False)[0], (-0.13, 0.23))
    assert centred_interval(1.0, np.ones(20), 0.9, True) == ((1.0, 1.0), 0.0)


def test_copies_of_a_row_stay_together_so_that_folds_share_none():
    rows = resampled_rows(1_000, np.random.default_rng(0))
    assert len(rows) == 1_000
    assert 600 < len(np.unique(rows)) < 665  # 1 - 1/e
    assert np.sum(np.diff(rows) != 0) == len(np.unique(rows)) - 1
    assert abs(np.corrcoef(rows, np.arange(1_000))[0, 1]) < 0.15
    shared = [set(rows[train]) & set(rows[test]) for train, test in KFold(5).split(rows)]
    assert max(map(len, shared)) <= 2  # a fold has two ends
