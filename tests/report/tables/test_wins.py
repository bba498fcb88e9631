import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import tables
from lddr.report.groups import collect


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
    table = tables["wins"].make(collect(runs).groups)
    assert table.columns == (
        "Model",
        "100 labels, median, 2 cases",
        "100 labels, lowest R_s, 2 cases",
        "100 labels, lowest Gap_ST, 2 cases",
    )
    shares = {row[0]: [number.value for number in row[1:]] for row in table.rows}
    assert {number.all_marks for row in table.rows for number in row[1:]} == {"△"}  # one VAE
    assert table.notes[-1].startswith("△ of fewer than five runs")
    assert shares == {"VAE, BCE": [75.0, 25.0, 75.0], "D-VAE, cross-entropy": [25.0, 75.0, 25.0]}


def test_one_method_wins_nothing(make_run):
    run = make_run("dvae", "circles", 0, {"mig": 0.5}, supervision="masked")
    with pytest.raises(UndefinedError, match="no supervised runs of two methods"):
        tables["wins"].make(collect([run]).groups)
