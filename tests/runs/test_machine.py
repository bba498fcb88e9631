import joblib
import psutil
import pytest

from lddr.runs.machine import free_cores


@pytest.mark.parametrize(
    ("busy", "ours", "cores", "free"),
    [
        ([0, 0], [0, 1], 2, 2),
        ([100, 0], [0, 1], 2, 1),
        ([100, 100], [0, 1], 2, 1),
        ([40, 30, 20, 10], [0, 1, 2, 3], 4, 3),
        ([100, 100, 0, 0], [2, 3], 2, 2),  # others use cores that are not ours
        ([100, 100, 0, 0], [0, 1, 2, 3], 1, 1),  # a share of one core
    ],
)
def test_threads_are_left_to_whoever_has_them(monkeypatch, busy, ours, cores, free):
    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda process: ours, raising=False)
    monkeypatch.setattr(psutil, "cpu_percent", lambda interval, percpu: busy)
    monkeypatch.setattr(joblib, "cpu_count", lambda: cores)
    assert free_cores() == free
