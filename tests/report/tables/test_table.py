import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.report.exhibits import Number, Table, spread, tables, with_best

TABLE = Table(
    "mig",
    "MIG in %",
    ("Model", "sprites", "paper: dSprites"),
    (
        ("β-VAE", Number(11.26, 7.0, 15.0, 5, "†‡"), Number(11.3, marks="*")),
        ("a|b_c", Number(41.2, best=True), None),
    ),
    ("† fewer steps",),
)


def test_every_table_of_the_paper_is_there_in_an_order():
    expected = ["mig", "claims", "mig-quartiles", "dvae-metrics", "semi-supervised", "gains", "wins", "correlations"]
    assert [exhibit.name for exhibit in tables.in_order()] == [*expected, "infomec"]  # that of others at the end


def test_quartiles_by_hand():
    assert spread([4.0, 1.0, 3.0, 2.0]) == Number(2.5, 1.75, 3.25, 4)
    assert spread([1.0, 2.0, 3.0, 4.0, 9.0]) == Number(3.0, 2.0, 4.0, 5)
    assert spread([7.0]) == Number(7.0, 7.0, 7.0, 1)
    assert spread([]) is None


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_quartiles_are_those_of_the_standard_library(values):
    found = spread(values)
    expected = statistics.quantiles(values, n=4, method="inclusive")
    assert [found.low, found.value, found.high] == pytest.approx(expected, abs=1e-9)


def test_the_largest_of_several_is_the_best():
    cells = [Number(1.0), None, Number(3.0), Number(3.0), "words"]
    assert [getattr(cell, "best", None) for cell in with_best(cells)] == [False, None, True, True, None]
    assert with_best([Number(1.0), None]) == [Number(1.0), None]  # no contest


def test_there_is_no_negative_zero():
    assert TABLE.text(Number(-0.04)) == "0.0"


def test_notes_explain_the_marks_that_are_used():
    noted = TABLE.with_notes("first", {"†": ["steps 1 instead of 2"], "§": ["unused"]})
    assert noted.notes == (
        "† fewer steps",
        "first",
        "† fewer steps than the paper's: steps 1 instead of 2",
        "‡ another dataset than the paper's, which only looks alike",
        "* quoted by the paper from Locatello et al. (2019)",
    )


def test_numbers_of_few_runs_are_marked_and_the_mark_is_explained():
    assert [Number(1.0, count=count).all_marks for count in (4, 5, None)] == ["△", "", ""]
    assert Number(1.0, count=9, fewest=4, marks="†").all_marks == "†△"
    table = Table("t", "t", ("x", "y"), (("a", Number(1.0, count=2)),)).with_notes("first", {})
    assert table.text(table.rows[0][1]) == "1.0 (2)△"
    assert table.notes[-1] == "△ of fewer than five runs of a model: too few to conclude anything from"
