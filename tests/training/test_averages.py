import numpy as np
import pytest
import torch

from lddr.training.trainer import LOG_EVERY, LossAverages, log_interval

VALUES = np.random.default_rng(0).normal(size=(LOG_EVERY, 2)).astype(np.float32) * 100


def filled(averages, rows):
    for one, other in rows:
        averages.add({"loss": torch.tensor(one), "kl": torch.tensor(other)})
    return averages


def test_a_line_is_the_mean_whenever_its_steps_are_read():
    total = np.zeros(2)
    for row in VALUES:
        total += row.astype(np.float64)  # in order: the log of a run that was interrupted has the same bytes
    for often in (1, 7, LOG_EVERY):
        averages = LossAverages(0, None)
        for first in range(0, LOG_EVERY, often):
            filled(averages, VALUES[first : first + often]).read()
        assert list(averages.line(LOG_EVERY).values()) == (total / LOG_EVERY).tolist()
        assert averages.sums is None


def test_sums_go_on_from_a_checkpoint():
    whole = filled(LossAverages(0, None), VALUES)
    whole.read()
    half = filled(LossAverages(0, None), VALUES[:30])
    half.read()
    resumed = filled(LossAverages(30, half.sums), VALUES[30:])
    assert list(resumed.read()) == list(range(30, LOG_EVERY))
    assert resumed.line(LOG_EVERY) == whole.line(LOG_EVERY)


def test_terms_are_told_by_step():
    averages = filled(LossAverages(5, None), VALUES[:3])
    read = averages.read()
    assert list(read) == [5, 6, 7]
    assert averages.latest == read[7] == {"loss": float(VALUES[2, 0]), "kl": float(VALUES[2, 1])}
    assert list(filled(averages, VALUES[:1]).read()) == [8]


def test_a_partial_line_is_the_mean_of_its_steps():
    averages = filled(LossAverages(200, None), VALUES[:50])
    averages.read()
    assert list(averages.line(50).values()) == (VALUES[:50].astype(np.float64).cumsum(0)[-1] / 50).tolist()


@pytest.mark.parametrize(("steps", "interval"), [(1, 1), (9, 1), (30, 3), (999, 99), (1000, 100), (300_000, 100)])
def test_short_runs_log_ten_lines(steps, interval):
    assert log_interval(steps) == interval
