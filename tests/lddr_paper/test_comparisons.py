import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from lddr.metrics.metric import UndefinedError
from lddr.models import models
from lddr_paper.comparisons import (
    RULES,
    Comparison,
    compare_everywhere,
    compare_pairs,
    lowest,
    lowest_gap,
    median,
    model_pairs,
    standings,
    win_shares,
    wins_text,
)
from lddr_paper.judging import rank_correlation
from tests.report.grouped import grouped, labelled


def test_pairs_share_their_objective():
    assert model_pairs()[:2] == [("vae", "dvae"), ("factor-vae", "factor-dvae")]
    assert {("beta-vae", "beta-dvae"), ("vae", "qvae")} <= set(model_pairs())
    assert len(model_pairs()) == len(set(model_pairs()))
    for continuous, discrete in model_pairs():
        assert models[continuous].objective == models[discrete].objective
        assert (models[continuous].family.is_discrete, models[discrete].family.is_discrete) == (False, True)


def test_medians_gains_and_wins_are_those_worked_out_by_hand(compared_runs):
    circles, rooms = sorted(compare_everywhere(grouped(compared_runs), ("vae", "dvae")), key=lambda case: case.dataset)
    assert (circles.dataset, circles.medians, circles.is_won) == ("Circles", (0.2, 0.4), True)
    assert circles.gain == pytest.approx(100)
    assert (rooms.dataset, rooms.medians, rooms.is_won) == ("rooms", (0.4, 0.3), False)
    assert rooms.gain == pytest.approx(-25)
    assert wins_text([circles]) == "better in 1 of 1 cases"
    assert wins_text([circles, rooms]) == "better in 1 of 2 cases△"  # two VAEs on rooms
    assert (circles.fewest, rooms.fewest) == (5, 2)


def test_nothing_gains_over_zero_and_a_draw_is_no_win():
    case = Comparison("circles", "mig", ("vae", "dvae"), (0.0, 0.0), (0.0, 0.0))
    assert case.gain is None
    assert not case.is_won


def test_one_family_alone_is_not_compared(compared_runs):
    with pytest.raises(UndefinedError, match="no two runs each of VAE and D-VAE with the same metric"):
        compare_pairs(grouped(run for run in compared_runs if run.value("model") == "dvae"), model_pairs()[:1], ["mig"])


VAE, PLAIN, MASKED = ("vae", "bce"), ("dvae", "cross-entropy"), ("dvae", "masked")


@pytest.mark.parametrize(
    ("rule", "shares"),
    [
        ("median", {VAE: 0, PLAIN: 0, MASKED: 100}),
        ("lowest R_s", {VAE: 75, PLAIN: 0, MASKED: 25}),  # 0.9 over 0.7; 0.8 and 0.8 share
        ("lowest Gap_ST", {VAE: 50, PLAIN: 0, MASKED: 50}),  # 0.9 over 0.8; 0.9 over 0.8
    ],
)
def test_shares_of_wins_are_those_worked_out_by_hand(labelled_runs, rule, shares):
    assert win_shares([labelled_runs], RULES[rule]) == (shares, 2)


def test_each_rule_stands_for_a_method_by_one_number(labelled_runs):
    masked = [member for member in labelled_runs if member.value("supervision") == "masked"]
    assert median(masked, "mig") == 0.7
    assert lowest("validation_risk")(masked, "mig") == 0.7
    assert lowest_gap(masked, "mig") == 0.8
    assert lowest_gap(labelled_runs[:3], "mig") == 0.9  # a VAE has no gap: by its risk
    assert median(masked, "sap") is lowest("gap")(masked, "sap") is None


def test_a_single_method_wins_nothing(labelled_runs):
    assert win_shares([labelled_runs[:3]], median) == ({VAE: 0}, 0)
    with pytest.raises(UndefinedError, match="no supervised runs of two methods"):
        standings(grouped(labelled_runs[:3]))


def test_numbers_of_labels_are_kept_apart(labelled_runs):
    more = [labelled("vae", "bce", {"mig": 0.9}, 1000), labelled("dvae", "masked", {"mig": 0.1}, 1000)]
    found = standings(grouped([*labelled_runs, *more]))
    assert [(standing.labels, standing.rule) for standing in found] == [
        *((100, rule) for rule in RULES),
        (1000, "median"),  # no risk, no gap
    ]
    assert found[-1].shares == {VAE: 100, MASKED: 0}


@settings(deadline=None, max_examples=20)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30))
def test_the_correlation_is_spearmans(pairs):
    left, right = (list(map(float, column)) for column in zip(*pairs, strict=True))
    found = rank_correlation([*left, None, 1.0], [*right, 1.0, None])  # what only one side has does not count
    assert found.runs == len(left)
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert np.isnan(found.value)
    else:
        assert found.value == pytest.approx(spearmanr(left, right).statistic)
        assert -1 <= found.low <= found.high <= 1


def test_two_runs_say_nothing():
    found = rank_correlation([1, 2], [1, 2])
    assert np.isnan([found.value, found.low, found.high]).all()
    assert rank_correlation([1, 2, 3], [10, 30, 20]).value == pytest.approx(0.5)
