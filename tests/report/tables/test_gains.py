import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import Number, tables
from lddr.report.groups import collect
from lddr_paper.tables import gain


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
    table = tables["gains"].make(collect(pair).groups)
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.columns == ("Comparison", "dSprites", "paper: dSprites", "Circles")
    assert rows["D-VAE over VAE, MIG"] == (
        Number(pytest.approx(100.0), count=6, fewest=3),
        Number(336),
        Number(pytest.approx(-50.0), count=6, fewest=3),
    )
    assert rows["D-VAE over VAE, SAP"] == (Number(pytest.approx(0.0, abs=1e-9), count=6, fewest=3), None, None)
    assert table.notes[0] == "D-VAE against VAE: better in 1 of 3 cases△; in the paper in 31 of 36"


def test_there_is_no_gain_over_nothing(make_run):
    runs = [
        make_run(model, "circles", seed, {"mig": mig})
        for model, mig in (("vae", 0.0), ("dvae", 0.5))
        for seed in (1, 2)
    ]
    assert gain(("vae", "dvae"), runs, "mig") is None
    with pytest.raises(UndefinedError):
        tables["gains"].make(collect(runs[:2]).groups)
