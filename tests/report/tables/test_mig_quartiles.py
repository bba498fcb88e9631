import pytest

from lddr.report.exhibits import Number, tables
from tests.report.grouped import cell


def test_quartiles_beside_the_papers(groups):
    table = tables["mig-quartiles"].make(groups)
    found = cell(table, "D-VAE", "dSprites")
    assert (found.low, found.value, found.high) == pytest.approx((15.0, 20.0, 30.0))
    assert cell(table, "D-VAE", "paper: dSprites") == Number(17.4, 13.2, 20.0)
