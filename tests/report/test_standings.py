import pytest

from lddr.metrics.metric import UndefinedError
from lddr_paper.comparisons import RULES, lowest, lowest_gap, median, standings, win_shares
from tests.report.grouped import grouped, labelled

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
