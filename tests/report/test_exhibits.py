import csv
import io
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import (
    Number,
    Table,
    card_figures,
    comma_separated,
    figures,
    latex,
    make_all,
    markdown,
    tables,
    write_table,
)
from lddr.report.traversals import LoadedRun
from lddr_paper.tables import quartiles, with_best, with_notes
from tests.report.grouped import grouped, invented


def test_all_figures_of_the_paper_and_those_beyond_are_there():
    paper = {"observations", "gumbel-softmax", "circles", "circles-vae", "circles-dvae", "selectors", "efficiency"}
    paper |= {"selectors-combined", "metrics", "mig", "semi-supervised", "traversals"}
    assert paper | {"families", "curves", "rate-distortion"} == set(figures)
    assert set(card_figures) == {"curves", "reconstructions", "traversals", "information", "posterior"}


@pytest.mark.parametrize("registry", [figures, card_figures])
def test_figures_have_an_order(registry):
    places = [drawn.order for drawn in registry.in_order()]
    assert places == sorted(set(places))
    assert all(registry[drawn.name] is drawn for drawn in registry.in_order())


@pytest.mark.parametrize("name", sorted(set(figures) - {"observations", "gumbel-softmax"}))
def test_without_runs_a_figure_says_in_a_sentence_what_is_missing(name):
    with pytest.raises(UndefinedError, match=r"^(there|no) [^\n]{15,}[^.]$"):
        figures[name].make([])


@pytest.mark.parametrize("name", sorted(set(card_figures) - {"information"}))
def test_a_run_without_files_cannot_be_drawn(name):
    with pytest.raises(UserError):
        card_figures[name].make(LoadedRun(invented(resolution=16)))


@pytest.mark.parametrize("name", ["observations", "gumbel-softmax"])
def test_the_papers_sketches_are_neither_shown_nor_missed_where_all_images_are_ones_own(name):
    missing = {}
    own = grouped([invented(dataset="my/cats")])
    assert list(make_all([figures[name]], own, missing)) == []
    assert missing == {}
    both = grouped([invented(dataset="my/cats"), invented(dataset="rooms")])
    assert len(list(make_all([figures[name]], both, missing))) == 1


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
    assert quartiles([4.0, 1.0, 3.0, 2.0]) == Number(2.5, 1.75, 3.25, 4)
    assert quartiles([1.0, 2.0, 3.0, 4.0, 9.0]) == Number(3.0, 2.0, 4.0, 5)
    assert quartiles([7.0]) == Number(7.0, 7.0, 7.0, 1)
    assert quartiles([]) is None


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30))
def test_quartiles_are_those_of_the_standard_library(values):
    found = quartiles(values)
    expected = statistics.quantiles(values, n=4, method="inclusive")
    assert [found.low, found.value, found.high] == pytest.approx(expected, abs=1e-9)


def test_the_largest_of_several_is_the_best():
    cells = [Number(1.0), None, Number(3.0), Number(3.0), "words"]
    assert [getattr(cell, "best", None) for cell in with_best(cells)] == [False, None, True, True, None]
    assert with_best([Number(1.0), None]) == [Number(1.0), None]  # no contest


def test_there_is_no_negative_zero():
    assert TABLE.text(Number(-0.04)) == "0.0"


def test_notes_explain_the_marks_that_are_used():
    noted = with_notes(TABLE, "first", {"†": ["steps 1 instead of 2"], "§": ["unused"]})
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
    table = with_notes(Table("t", "t", ("x", "y"), (("a", Number(1.0, count=2)),)), "first", {})
    assert table.text(table.rows[0][1]) == "1.0 (2)△"
    assert table.notes[-1] == "△ of fewer than five runs of a model: too few to conclude anything from"


FORMATS_TABLE = Table(
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
    assert markdown(FORMATS_TABLE).splitlines() == [
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
    lines = latex(FORMATS_TABLE).splitlines()
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
    rows = list(csv.DictReader(io.StringIO(comma_separated(FORMATS_TABLE))))
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
    write_table(FORMATS_TABLE, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mig.csv", "mig.md", "mig.tex"]
    assert (tmp_path / "mig.md").read_text() == markdown(FORMATS_TABLE)


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "@sum(A1)", "-x", "\t=1"])
def test_no_cell_is_a_formula(text):
    table = Table("t", "t", (text, "y"), ((text, "-2.5"), ("plain", Number(-1.0))))
    rows = list(csv.reader(io.StringIO(comma_separated(table))))
    assert rows == [[f"'{text}", "y"], [f"'{text}", "-2.5"], ["plain", "-1.0"]]
