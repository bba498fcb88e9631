import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.report.exhibits import Number, Table, comma_separated, latex, markdown, write_table

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


def test_written_in_three_formats(tmp_path):
    write_table(TABLE, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mig.csv", "mig.md", "mig.tex"]
    assert (tmp_path / "mig.md").read_text() == markdown(TABLE)


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "@sum(A1)", "-x", "\t=1"])
def test_no_cell_is_a_formula(text):
    table = Table("t", "t", (text, "y"), ((text, "-2.5"), ("plain", Number(-1.0))))
    rows = list(csv.reader(io.StringIO(comma_separated(table))))
    assert rows == [[f"'{text}", "y"], [f"'{text}", "-2.5"], ["plain", "-1.0"]]
