import pytest

from lddr.report.exhibits import Number, UnwantedError, tables
from lddr.report.groups import collect
from tests.report.grouped import cell


def score(infom):
    return {"infomec": {"score": infom, "infoc": infom / 2, "infoe": infom / 4}}


def test_our_parts_stand_beside_the_published_ones(make_run):
    runs = [make_run("tripod", "shapes3d", seed, score(value)) for seed, value in enumerate((0.4, 0.8))]
    table = tables["infomec"].make(collect(runs).groups)
    assert [row[0] for row in table.rows] == ["Tripod: InfoM", "Tripod: InfoC", "Tripod: InfoE"]
    assert cell(table, "Tripod: InfoC", "Shapes3D") == Number(*map(pytest.approx, (30, 25, 35)), count=2)
    theirs = "published, other networks: Shapes3D"
    assert [cell(table, row[0], theirs) for row in table.rows] == [Number(91), Number(58), Number(96)]
    assert any("Tripod: Three Complementary" in note for note in table.notes)


def test_models_and_datasets_that_nobody_else_has_stand_alone(make_run):
    table = tables["infomec"].make(collect([make_run("dvae", "circles", 0, score(0.4))]).groups)
    assert table.columns == ("Model", "Circles")
    assert not any("published" in note for note in table.notes)


def test_a_table_of_nothing_is_not_wanted(make_run):
    with pytest.raises(UnwantedError):
        tables["infomec"].make(collect([make_run("dvae", "dsprites", 0, {"mig": 0.1})]).groups)
