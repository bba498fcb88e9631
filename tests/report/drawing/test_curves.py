import numpy as np
import pytest

from lddr.report.card_figures import logged, settled


def test_terms_are_columns_with_gaps_where_they_were_not_recorded(logged_run):
    columns = logged(logged_run)
    assert columns["kl"].tolist() == [1, 2, 3]
    assert columns["total_correlation"] == pytest.approx([np.nan, 0.5, 0.25], nan_ok=True)


def test_a_constant_is_not_looked_at_through_a_lens():
    low, high = settled(np.full(50, 5.0) + 1e-7 * np.arange(50))
    assert low < 4.999 < 5.001 < high
