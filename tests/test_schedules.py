import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lddr.config import Training, configure
from lddr.schedules import cosine, linear

finite = st.floats(-1e3, 1e3)


@pytest.mark.parametrize("schedule", [cosine, linear])
@given(start=finite, end=finite, steps=st.integers(1, 10**6))
def test_schedules_start_and_end_exactly_and_stay_there(schedule, start, end, steps):
    assert schedule(start, end, 0, steps) == start
    assert schedule(start, end, steps, steps) == end
    assert schedule(start, end, 10 * steps, steps) == end


def test_cosine_is_that_of_torch():
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=40, eta_min=2.0)
    for step in range(41):
        assert cosine(0.5, 2.0, step, 40) == pytest.approx(schedule.get_last_lr()[0], abs=1e-12)
        optimizer.step()
        schedule.step()


@pytest.mark.parametrize("fall", [0, 100, 40, 7])
def test_a_learning_rate_that_rises_again_is_that_of_torch(fall):
    training = Training(steps=100, learning_rate=0.5, schedule="cosine", schedule_steps=fall)
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=0.5)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=fall or 100)
    for step in range(100):
        assert training.learning_rate_at(step) == pytest.approx(schedule.get_last_lr()[0], abs=1e-9)
        optimizer.step()
        schedule.step()


def test_the_paper_s_gumbel_scale_by_hand():
    steps = 300_000
    quarters = [cosine(0.5, 2.0, step, steps) for step in (0, 75_000, 100_000, 150_000, 200_000, 300_000)]
    assert quarters == pytest.approx([0.5, 0.5 + 1.5 * (1 - 0.5**0.5) / 2, 0.875, 1.25, 1.625, 2.0])


def test_the_gumbel_scale_of_a_short_training_is_that_of_the_authors():
    scales = [configure("dvae", "circles").latent.build().noise_scale(step, 4) for step in range(4)]
    assert scales == pytest.approx([0.5, 0.5 + 1.5 * (2 - 2**0.5) / 4, 1.25, 0.5 + 1.5 * (2 + 2**0.5) / 4])


def test_the_capacity_by_hand():
    capacities = [linear(0, 25, step, 100_000) for step in (0, 1, 50_000, 99_999, 100_000, 300_000)]
    assert capacities == pytest.approx([0, 0.00025, 12.5, 24.99975, 25, 25])


@pytest.mark.parametrize("schedule", [cosine, linear])
@given(start=finite, end=finite, steps=st.integers(1, 1000), step=st.integers(0, 1000))
def test_schedules_go_one_way_and_never_leave_the_interval(schedule, start, end, steps, step):
    now, later = schedule(start, end, step, steps), schedule(start, end, step + 1, steps)
    slack = 1e-12 * max(abs(start), abs(end))
    assert min(start, end) - slack <= now <= max(start, end) + slack
    assert (later - now) * (end - start) >= -slack * abs(end - start)


@pytest.mark.parametrize("steps", [0, 1])
def test_a_run_of_one_step_or_none_has_a_scale(steps):
    assert cosine(0.5, 2.0, 0, steps) == 0.5
