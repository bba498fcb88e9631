import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.collect import collect
from lddr.report.contests import correlation, correlation_table, gain, gain_table, win_table
from lddr.report.tables import Number


@pytest.fixture
def pair(make_run):
    """MIG: D-VAE 0.4 over 0.2 on dSprites, 0.1 against 0.2 on circles; SAP: equal on dSprites."""
    values = {
        ("vae", "dsprites"): {"mig": (0.1, 0.2, 0.9), "sap": (0.3, 0.3, 0.3)},
        ("dvae", "dsprites"): {"mig": (0.3, 0.4, 0.5), "sap": (0.1, 0.3, 0.9)},
        ("vae", "circles"): {"mig": (0.2, 0.2, 0.2)},
        ("dvae", "circles"): {"mig": (0.0, 0.1, 0.2)},
    }
    return [
        make_run(model, dataset, seed, {name: scores[seed] for name, scores in metrics.items()})
        for (model, dataset), metrics in values.items()
        for seed in range(3)
    ]


def test_gains_and_wins_by_hand(pair):
    table = gain_table(collect(pair).groups)
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.columns == ("Comparison", "dSprites", "paper: dSprites", "Circles")
    assert rows["D-VAE over VAE, MIG"] == (
        Number(pytest.approx(100.0), count=6),
        Number(336),
        Number(pytest.approx(-50.0), count=6),
    )
    assert rows["D-VAE over VAE, SAP"] == (Number(pytest.approx(0.0, abs=1e-9), count=6), None, None)
    assert table.notes[0] == "D-VAE against VAE: better in 1 of 3 cases; in the paper in 31 of 36"


def test_there_is_no_gain_over_nothing(make_run):
    runs = [
        make_run(model, "circles", seed, {"mig": mig})
        for model, mig in (("vae", 0.0), ("dvae", 0.5))
        for seed in (1, 2)
    ]
    assert gain(("vae", "dvae"), runs, "mig") is None
    with pytest.raises(UndefinedError):
        gain_table(collect(runs[:2]).groups)


def test_correlations_by_hand(make_run):
    """Ranks of the gap 1 2 3 4, of MIG 4 3 2 1, of SAP 1 2 4 3 (rho = 1 - 6·2/60 = 0.8), turned: small is good."""
    runs = [
        make_run("dvae", "circles", 1, {"gap": 1.0, "mig": 0.9, "sap": 0.1, "modularity": 0.5}),
        make_run("dvae", "circles", 2, {"gap": 2.0, "mig": 0.8, "sap": 0.2, "modularity": 0.5}),
        make_run("factor-dvae", "circles", 3, {"gap": 30.0, "mig": 0.3, "sap": 0.4, "modularity": 0.5}),
        make_run("dvae", "circles", 4, {"gap": 400.0, "mig": 0.1, "sap": 0.3, "modularity": 0.5}),
        make_run("vae", "circles", 5, {"mig": 0.7}),
    ]
    rows = {row[0]: row[1] for row in correlation_table(collect(runs).groups).rows}
    assert rows == {
        "Small gap, MIG": Number(pytest.approx(1.0), count=4),
        "Small gap, SAP": Number(pytest.approx(-0.8), count=4),
    }  # and nothing for modularity, which never changes


def test_efficiency_is_that_of_the_dvae(make_run):
    def efficiency(value):
        return {"score": 0.5, "efficiency": value}

    runs = [
        make_run("dvae", "circles", seed, {"mig": seed / 10, "downstream_logistic": efficiency(seed)})
        for seed in (1, 2, 3)
    ]
    runs.append(make_run("vae", "circles", 9, {"mig": 0.9, "downstream_logistic": efficiency(-5)}))
    rows = {row[0]: row[1] for row in correlation_table(collect(runs).groups).rows}
    assert rows == {"Efficiency of logistic regression, MIG": Number(pytest.approx(1.0), count=3)}


def test_two_runs_have_no_correlation(make_run):
    runs = [make_run("dvae", "circles", seed, {"mig": 0.1 * seed, "gap": seed}) for seed in (1, 2)]
    assert correlation("gap", runs, "mig") is None


def test_shares_of_wins_by_hand(make_run):
    """MIG: medians 0.3 and 0.5, of the lowest risk 0.9 and 0.5; SAP: a draw by both rules."""
    common = {"supervision": "cross-entropy", "labels": 100}
    runs = [
        make_run("dvae", "circles", seed, {"mig": mig, "sap": 0.2, "validation_risk": risk, "gap": gap}, **common)
        for seed, (mig, risk, gap) in enumerate([(0.1, 3.0, 3.0), (0.3, 2.0, 1.0), (0.9, 1.0, 2.0)])
    ]
    runs.append(
        make_run("vae", "circles", 0, {"mig": 0.5, "sap": 0.2, "validation_risk": 7.0}, supervision="bce", labels=100)
    )
    table = win_table(collect(runs).groups)
    assert table.columns == (
        "Model",
        "100 labels, median, 2 cases",
        "100 labels, lowest R_s, 2 cases",
        "100 labels, lowest Gap_ST, 2 cases",
    )
    shares = {row[0]: [number.value for number in row[1:]] for row in table.rows}
    assert shares == {"VAE, BCE": [75.0, 25.0, 75.0], "D-VAE, cross-entropy": [25.0, 75.0, 25.0]}


def test_one_method_wins_nothing(make_run):
    run = make_run("dvae", "circles", 0, {"mig": 0.5}, supervision="masked")
    with pytest.raises(UndefinedError, match="no two semi-supervised methods"):
        win_table(collect([run]).groups)
