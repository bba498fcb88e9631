import pytest

from lddr.report.exhibits import Number, tables
from lddr.report.groups import collect
from lddr_paper.tables import selected
from tests.report.grouped import cell


def test_medians_beside_the_papers(groups):
    table = tables["mig"].make(groups)
    assert table.columns == ("Model", "dSprites", "paper: dSprites")
    assert [row[0] for row in table.rows] == ["VAE", "D-VAE", "FactorDVAE", "Selection"]
    assert cell(table, "D-VAE", "dSprites") == Number(pytest.approx(20.0), count=3)
    assert cell(table, "FactorDVAE", "dSprites") == Number(pytest.approx(40.0), count=2, best=True)
    assert cell(table, "VAE", "dSprites") == Number(pytest.approx(25.0), count=1)
    assert [row[2] for row in table.rows] == [None, Number(17.4), Number(21.7), Number(39.5)]


def test_the_selection_is_the_run_with_the_smallest_gap(groups):
    assert cell(tables["mig"].make(groups), "Selection", "dSprites") == Number(pytest.approx(20.0), count=5)
    assert "smallest straight-through gap" in tables["mig"].make(groups).notes[0]


def test_a_run_without_gap_or_score_is_not_selected(make_run):
    runs = [make_run("dvae", "dsprites", 1, {"mig": 0.9}), make_run("dvae", "dsprites", 2, {"mig": 0.3, "gap": 5.0})]
    runs.append(make_run("dvae", "dsprites", 3, {"gap": 1.0}))
    assert selected(runs, "mig") == Number(pytest.approx(30.0), count=1)
    assert selected(runs[:1], "mig") is None


def test_there_is_no_selection_row_without_gaps(make_run):
    table = tables["mig"].make(collect([make_run("dvae", "dsprites", 1, {"mig": 0.9})]).groups)
    assert [row[0] for row in table.rows] == ["D-VAE"]
    assert not any("Selection" in note for note in table.notes)
