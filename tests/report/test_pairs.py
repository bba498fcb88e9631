import pytest

from lddr.metrics.metric import UndefinedError
from lddr.models import models
from lddr_paper.comparisons import Case, cases, compared, pairs, wins
from tests.report.grouped import grouped


def test_pairs_share_their_objective():
    assert pairs()[:2] == [("vae", "dvae"), ("factor-vae", "factor-dvae")]
    assert {("beta-vae", "beta-dvae"), ("vae", "qvae")} <= set(pairs())
    assert len(pairs()) == len(set(pairs()))
    for continuous, discrete in pairs():
        assert models[continuous].objective == models[discrete].objective
        assert (models[continuous].family.is_discrete, models[discrete].family.is_discrete) == (False, True)


def test_medians_gains_and_wins_are_those_worked_out_by_hand(compared_runs):
    circles, rooms = sorted(cases(grouped(compared_runs), ("vae", "dvae")), key=lambda case: case.dataset)
    assert (circles.dataset, circles.medians, circles.is_won) == ("Circles", (0.2, 0.4), True)
    assert circles.gain == pytest.approx(100)
    assert (rooms.dataset, rooms.medians, rooms.is_won) == ("rooms", (0.4, 0.3), False)
    assert rooms.gain == pytest.approx(-25)
    assert wins([circles]) == "better in 1 of 1 cases"
    assert wins([circles, rooms]) == "better in 1 of 2 cases△"  # two VAEs on rooms
    assert (circles.fewest, rooms.fewest) == (5, 2)


def test_nothing_gains_over_zero_and_a_draw_is_no_win():
    case = Case("circles", "mig", ("vae", "dvae"), (0.0, 0.0), (0.0, 0.0))
    assert case.gain is None
    assert not case.is_won


def test_one_family_alone_is_not_compared(compared_runs):
    with pytest.raises(UndefinedError, match="no two runs each of VAE and D-VAE with the same metric"):
        compared(grouped(run for run in compared_runs if run.value("model") == "dvae"), pairs()[:1], ["mig"])
