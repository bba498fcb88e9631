import joblib
import psutil
import pytest

from lddr.runs.machine import free_cores


@pytest.mark.parametrize(
    ("busy", "cores", "free"),
    [([0, 0], 2, 2), ([100, 0], 2, 1), ([100, 100], 2, 1), ([40, 30, 20, 10], 4, 3), ([0, 0, 0, 0], 2, 2)],
)
def test_threads_are_left_to_whoever_has_them(monkeypatch, busy, cores, free):
    monkeypatch.setattr(psutil, "cpu_percent", lambda interval, percpu: busy)
    monkeypatch.setattr(joblib, "cpu_count", lambda: cores)
    assert free_cores() == free
