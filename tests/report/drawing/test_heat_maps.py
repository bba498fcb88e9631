import numpy as np
import pytest

from lddr_paper.score_figures import HeatMap, correlations, heat_maps


def test_a_map_has_a_value_for_each_pair():
    found = correlations({"a": [1, 2, 3], "b": [3, 2, 1]}, {"c": [1, 2, 3], "d": [1, 3, 2], "e": [0, 0, 0]}, "title")
    assert (found.rows, found.columns) == (("a", "b"), ("c", "d", "e"))
    assert found.values == pytest.approx(np.array([[1, 0.5, np.nan], [-1, -0.5, np.nan]]), nan_ok=True)


def test_what_is_undefined_is_a_dash():
    figure = heat_maps([HeatMap("one", ("a",), ("b", "c"), np.array([[np.nan, 0.25]]))])
    assert [text.get_text() for text in figure.axes[0].texts] == ["–", "0.25"]
