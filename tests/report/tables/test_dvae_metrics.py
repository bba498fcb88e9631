import pytest

from lddr.report.exhibits import Number, tables
from tests.report.grouped import cell


def test_all_metrics_of_the_dvae(groups):
    table = tables["dvae-metrics"].make(groups)
    assert [row[0] for row in table.rows] == ["MIG", "SAP"]  # those there are, in the paper's order
    assert cell(table, "SAP", "dSprites") == Number(*map(pytest.approx, (2.0, 1.5, 3.0)), count=3)
    assert cell(table, "SAP", "paper: dSprites") == Number(6.6, 5.1, 7.2)
