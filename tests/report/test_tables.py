import csv
import io
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.report.tables import (
    Number,
    Table,
    comma_separated,
    latex,
    markdown,
    spread,
    with_best,
    without_quartiles,
    write_table,
)

TABLE = Table(
    "mig",
    "MIG in %",
    ("Model", "dsprites", "paper: dSprites"),
    (
        ("β-VAE", Number(11.26, 7.0, 15.0, 5, "†‡"), Number(11.3, marks="*")),
        ("a|b_c", Number(41.2, best=True), None),
    ),
    ("† fewer steps",),
)


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


def test_the_middle_alone():
    assert without_quartiles(Number(2.0, 1.0, 3.0, 4, "†")) == Number(2.0, count=4, marks="†")
    assert without_quartiles(None) is None


def test_markdown():
    assert markdown(TABLE).splitlines() == [
        "**MIG in %**",
        "",
        "| Model | dsprites | paper: dSprites |",
        "| --- | ---: | ---: |",
        "| β-VAE | 11.3 [7.0, 15.0] (5)†‡ | 11.3\\* |",
        "| a\\|b_c | **41.2** | – |",
        "",
        "- † fewer steps",
    ]


def test_latex():
    lines = latex(TABLE).splitlines()
    assert r"$\beta$-VAE & 11.3 [7.0, 15.0] (5)$^\dagger$$^\ddagger$ & 11.3$^*$ \\" in lines
    assert r"a|b\_c & \textbf{41.2} & -- \\" in lines
    assert r"\caption{MIG in \%. $^\dagger$ fewer steps.}" in lines
    assert r"\begin{tabular}{lrr}" in lines


@given(st.text(st.sampled_from("a%&_#${}\\^~†*β–"), max_size=20))
def test_latex_has_nothing_that_latex_would_stumble_over(text):
    written = latex(Table("t", "t", ("x",), ((text,),)))
    row = written.split("\\midrule\n")[1].split(" \\\\\n\\bottomrule")[0]
    depth = 0
    for before, letter in zip(" " + row, row, strict=False):
        depth += (letter == "{" and before != "\\") - (letter == "}" and before != "\\")
        assert letter not in "%&#_" or before == "\\"
    assert depth == 0
    assert (row.count("$") - row.count("\\$")) % 2 == 0


def test_csv_has_every_digit_and_every_part_in_a_column():
    rows = list(csv.DictReader(io.StringIO(comma_separated(TABLE))))
    assert rows[0] == {
        "Model": "β-VAE",
        "dsprites": "11.26",
        "dsprites 25 %": "7.0",
        "dsprites 75 %": "15.0",
        "dsprites runs": "5",
        "dsprites marks": "†‡",
        "paper: dSprites": "11.3",
        "paper: dSprites marks": "*",
    }
    assert rows[1]["paper: dSprites"] == ""
    assert rows[1]["Model"] == "a|b_c"


def test_all_formats_hold_the_same_numbers():
    table = Table("t", "t", ("x", "y"), tuple((str(place), Number(place / 7)) for place in range(20)), decimals=2)
    for _, cell in table.rows:
        assert f"| {cell.value:.2f} |" in markdown(table)
        assert f"& {cell.value:.2f} " in latex(table)
        assert f",{cell.value!r}\n" in comma_separated(table)


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


def test_written_in_three_formats(tmp_path):
    write_table(TABLE, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mig.csv", "mig.md", "mig.tex"]
    assert (tmp_path / "mig.md").read_text() == markdown(TABLE)
