import numpy as np
import pytest

from lddr_paper.score_figures import profile


def test_a_profile_is_widest_where_most_scores_are():
    heights, widths = profile(np.array([0.0, 0.5, 0.5, 0.5, 1.0]))
    assert (heights[0], heights[-1]) == (0, 1)
    assert heights[widths.argmax()] == pytest.approx(0.5)
    assert widths.max() == 1


def test_scores_that_are_all_alike_are_a_line():
    heights, _ = profile(np.array([0.3, 0.3]))
    assert heights == pytest.approx([0.3, 0.3], abs=0.01)
