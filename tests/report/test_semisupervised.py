from pathlib import Path

import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.figures import figures
from lddr.report.semisupervised import RULES, lowest, lowest_gap, median, standings, win_shares
from lddr.runs.index import Run


def run(model, loss, scores, dataset="circles", labels=100, seed=0):
    settings = {"dataset": dataset, "model": model, "supervision": loss, "labels": labels, "seed": seed}
    return Run(Path(f"{dataset}-{model}-{loss}-{labels}-{seed}"), "finished", settings, scores)


@pytest.fixture
def runs():
    """By the median the masked D-VAE wins MIG and DCI; by the lowest R_s the VAE wins MIG and ties in DCI."""
    risks = ((3.0, 1.0, 2.0), (1.0, 2.0, 3.0), (3.0, 1.0, 2.0))  # of VAE, D-VAE, masked D-VAE
    migs = ((0.1, 0.9, 0.2), (0.3, 0.4, 0.5), (0.6, 0.7, 0.8))
    dcis = ((0.1, 0.8, 0.2), (0.3, 0.4, 0.5), (0.7, 0.8, 0.9))
    gaps = (None, (9.0, 8.0, 7.0), (5.0, 6.0, 4.0))
    methods = (("vae", "bce"), ("dvae", "cross-entropy"), ("dvae", "masked"))
    made = []
    for (model, loss), risk, mig, dci, gap in zip(methods, risks, migs, dcis, gaps, strict=True):
        for seed in range(3):
            scores = {"mig": mig[seed], "dci": dci[seed], "validation_risk": risk[seed]}
            made.append(run(model, loss, scores | ({"gap": gap[seed]} if gap else {}), seed=seed))
    return made


VAE, PLAIN, MASKED = ("vae", "bce"), ("dvae", "cross-entropy"), ("dvae", "masked")


@pytest.mark.parametrize(
    ("rule", "shares"),
    [
        ("median", {VAE: 0, PLAIN: 0, MASKED: 100}),
        ("lowest $R_s$", {VAE: 75, PLAIN: 0, MASKED: 25}),  # 0.9 over 0.7; 0.8 and 0.8 share
        ("lowest Gap$_{ST}$", {VAE: 50, PLAIN: 0, MASKED: 50}),  # 0.9 over 0.8; 0.9 over 0.8
    ],
)
def test_shares_of_wins_are_those_worked_out_by_hand(runs, rule, shares):
    assert win_shares(runs, RULES[rule]) == (shares, 2)


def test_each_rule_stands_for_a_method_by_one_number(runs):
    masked = [member for member in runs if member.value("supervision") == "masked"]
    assert median(masked, "mig") == 0.7
    assert lowest("validation_risk")(masked, "mig") == 0.7
    assert lowest_gap(masked, "mig") == 0.8
    assert lowest_gap(runs[:3], "mig") == 0.9  # a VAE has no gap: by its risk
    assert median(masked, "sap") is lowest("gap")(masked, "sap") is None


def test_a_single_method_wins_nothing(runs):
    assert win_shares(runs[:3], median) == ({VAE: 0}, 0)
    with pytest.raises(UndefinedError, match="no supervised runs of two methods"):
        figures["semi-supervised"].draw(runs[:3])


def test_numbers_of_labels_are_kept_apart(runs):
    more = [run("vae", "bce", {"mig": 0.9}, labels=1000), run("dvae", "masked", {"mig": 0.1}, labels=1000)]
    found = standings([*runs, *more])
    assert [(standing.labels, standing.rule) for standing in found] == [
        *((100, rule) for rule in RULES),
        (1000, "median"),  # no risk, no gap
    ]
    assert found[-1].shares == {VAE: 100, MASKED: 0}


def test_a_panel_per_rule_with_a_bar_per_method(runs):
    figure = figures["semi-supervised"].draw(runs)
    assert [axes.get_title() for axes in figure.axes] == [f"{rule}, 100 labels" for rule in RULES]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        "VAE, BCE",
        "D-VAE, cross-entropy",
        "D-VAE, masked",
    ]
    widths = [[bar.get_width() for bar in axes.patches] for axes in figure.axes]
    assert widths == [[0, 0, 100], [75, 0, 25], [50, 0, 50]]
    assert [text.get_text() for text in figure.axes[1].texts] == ["75", "0", "25"]
    assert [bar.get_hatch() or "" for bar in figure.axes[0].patches] == ["", "", "////"]
    assert {axes.get_xlabel() for axes in figure.axes} == {"best in % of cases"}
    assert figure.axes[0].get_xlim()[1] > 100
    assert "over 2 cases" in figures["semi-supervised"].caption(runs)
