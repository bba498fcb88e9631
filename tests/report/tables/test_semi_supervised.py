import pytest

from lddr.report.exhibits import Number, tables
from lddr.report.groups import collect


def test_labels_make_another_table(make_run):
    seen = [
        make_run("dvae", "dsprites", seed, {"mig": mig}, supervision="masked", labels=1000, omega=omega)
        for seed, (mig, omega) in enumerate([(0.2, 1), (0.3, 2), (0.6, 4)])
    ]
    few = make_run("dvae", "dsprites", 0, {"mig": 0.1}, supervision="cross-entropy", labels=100)
    groups = collect([*seen, few, make_run("dvae", "dsprites", 0, {"mig": 0.9})]).groups
    table = tables["semi-supervised"].make(groups)
    assert [row[0] for row in table.rows] == ["D-VAE, cross-entropy, 100 labels", "D-VAE, masked, 1000 labels"]
    found = table.rows[1][1]
    assert (found.low, found.value, found.high) == pytest.approx((25.0, 30.0, 45.0))
    assert table.rows[1][2] == Number(32.0, 29.9, 33.9)
    assert table.rows[0][2] is None  # the paper's numbers are for 1000 labels
    assert tables["mig"].make(groups).rows[0][1].count == 1  # and no supervised run among the unsupervised
