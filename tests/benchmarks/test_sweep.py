import pytest

from benchmarks.sweep import summary


def test_sides_are_compared_within_a_turn():
    """A machine that gets slower and slower does not change the ratios."""
    turns = [
        {
            "direct": 10.0 * slow,
            "1 worker": 10.2 * slow,
            "2 workers": 5.1 * slow,
            "direct, processor": 8.0,
            "1 worker, processor": 9.0,
        }
        for slow in (1, 2, 4)
    ]
    row = summary(turns, 100)
    assert row["direct, runs/h"] == pytest.approx(180)
    assert row["2 workers, runs/h"] == pytest.approx(3600 / 10.2)
    assert row["2 workers, times"] == pytest.approx(2.0)
    assert row["overhead, %"] == pytest.approx(2.0)
    assert row["of the processor, %"] == pytest.approx(12.5)
