import pytest

from lddr.report.exhibits import Number, tables
from lddr.report.groups import collect
from lddr_paper.tables import correlation


def test_correlations_by_hand(make_run):
    """Ranks of the gap 1 2 3 4, of MIG 4 3 2 1, of SAP 1 2 4 3 (rho = 1 - 6·2/60 = 0.8), turned: small is good."""
    runs = [
        make_run("dvae", "circles", 1, {"gap": 1.0, "mig": 0.9, "sap": 0.1, "modularity": 0.5}),
        make_run("dvae", "circles", 2, {"gap": 2.0, "mig": 0.8, "sap": 0.2, "modularity": 0.5}),
        make_run("factor-dvae", "circles", 3, {"gap": 30.0, "mig": 0.3, "sap": 0.4, "modularity": 0.5}),
        make_run("dvae", "circles", 4, {"gap": 400.0, "mig": 0.1, "sap": 0.3, "modularity": 0.5}),
        make_run("vae", "circles", 5, {"mig": 0.7}),
    ]
    rows = {row[0]: row[1] for row in tables["correlations"].make(collect(runs).groups).rows}
    assert rows == {
        "Small gap of the D-VAE, MIG": Number(pytest.approx(1.0), count=3),
        "Small gap of the D-VAE, SAP": Number(pytest.approx(-1.0), count=3),
        "Small gap of D-VAE and FactorDVAE, MIG": Number(pytest.approx(1.0), count=4),
        "Small gap of D-VAE and FactorDVAE, SAP": Number(pytest.approx(-0.8), count=4),
    }  # and nothing for modularity, which never changes


def test_one_model_alone_is_not_both(make_run):
    runs = [make_run("dvae", "circles", seed, {"mig": 0.1 * seed, "gap": seed}) for seed in (1, 2, 3)]
    rows = [row[0] for row in tables["correlations"].make(collect(runs).groups).rows]
    assert rows == ["Small gap of the D-VAE, MIG"]


def test_efficiency_is_that_of_the_dvae(make_run):
    def efficiency(value):
        return {"score": 0.5, "efficiency": value}

    runs = [
        make_run("dvae", "circles", seed, {"mig": seed / 10, "downstream_logistic": efficiency(seed)})
        for seed in (1, 2, 3)
    ]
    runs.append(make_run("vae", "circles", 9, {"mig": 0.9, "downstream_logistic": efficiency(-5)}))
    rows = {row[0]: row[1] for row in tables["correlations"].make(collect(runs).groups).rows}
    assert rows == {"Efficiency of logistic regression, MIG": Number(pytest.approx(1.0), count=3)}


def test_two_runs_have_no_correlation(make_run):
    runs = [make_run("dvae", "circles", seed, {"mig": 0.1 * seed, "gap": seed}) for seed in (1, 2)]
    assert correlation("gap", runs, "mig") is None
