import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from lddr_paper.comparisons import spearman


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30))
def test_the_correlation_is_spearmans(pairs):
    left, right = (list(map(float, column)) for column in zip(*pairs, strict=True))
    found = spearman([*left, None, 1.0], [*right, 1.0, None])  # what only one side has does not count
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(left, right).statistic)


def test_two_runs_say_nothing():
    assert np.isnan(spearman([1, 2], [1, 2]))
    assert spearman([1, 2, 3], [10, 30, 20]) == pytest.approx(0.5)
