import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.collect import collect
from lddr.report.medians import (
    metric_table,
    mig_table,
    percent,
    quartile_table,
    selected,
    supervised_table,
)
from lddr.report.tables import Number


def cell(table, row, column):
    """The cell of a row, by its label, in a column, by its heading."""
    (line,) = [line for line in table.rows if line[0] == row]
    return line[table.columns.index(column)]


@pytest.fixture
def groups(make_run):
    """D-VAE on dSprites: MIG 10, 20, 40 % with gaps 3, 1, 2; FactorDVAE: 30 and 50 % with gaps 9 and 8; VAE: 25 %."""
    dvae = [(0.1, 3.0), (0.2, 1.0), (0.4, 2.0)]
    runs = [make_run("dvae", "dsprites", seed, {"mig": m, "gap": g, "sap": m / 10}) for seed, (m, g) in enumerate(dvae)]
    factor = [(0.3, 9.0), (0.5, 8.0)]
    runs += [make_run("factor-dvae", "dsprites", seed, {"mig": m, "gap": g}) for seed, (m, g) in enumerate(factor)]
    return collect([*runs, make_run("vae", "dsprites", 0, {"mig": 0.25})]).groups


def test_medians_beside_the_papers(groups):
    table = mig_table(groups)
    assert table.columns == ("Model", "dSprites", "paper: dSprites")
    assert [row[0] for row in table.rows] == ["VAE", "D-VAE", "FactorDVAE", "Selection"]
    assert cell(table, "D-VAE", "dSprites") == Number(pytest.approx(20.0), count=3)
    assert cell(table, "FactorDVAE", "dSprites") == Number(pytest.approx(40.0), count=2, best=True)
    assert cell(table, "VAE", "dSprites") == Number(pytest.approx(25.0), count=1)
    assert [row[2] for row in table.rows] == [None, Number(17.4), Number(21.7), Number(39.5)]


def test_the_selection_is_the_run_with_the_smallest_gap(groups):
    assert cell(mig_table(groups), "Selection", "dSprites") == Number(pytest.approx(20.0), count=5)
    assert "smallest straight-through gap" in mig_table(groups).notes[0]


def test_a_run_without_gap_or_score_is_not_selected(make_run):
    runs = [make_run("dvae", "dsprites", 1, {"mig": 0.9}), make_run("dvae", "dsprites", 2, {"mig": 0.3, "gap": 5.0})]
    runs.append(make_run("dvae", "dsprites", 3, {"gap": 1.0}))
    assert selected(runs, "mig") == Number(pytest.approx(30.0), count=1)
    assert selected(runs[:1], "mig") is None


def test_there_is_no_selection_row_without_gaps(make_run):
    table = mig_table(collect([make_run("dvae", "dsprites", 1, {"mig": 0.9})]).groups)
    assert [row[0] for row in table.rows] == ["D-VAE"]
    assert not any("Selection" in note for note in table.notes)


def test_quartiles_beside_the_papers(groups):
    table = quartile_table(groups)
    found = cell(table, "D-VAE", "dSprites")
    assert (found.low, found.value, found.high) == pytest.approx((15.0, 20.0, 30.0))
    assert cell(table, "D-VAE", "paper: dSprites") == Number(17.4, 13.2, 20.0)


def test_all_metrics_of_the_dvae(groups):
    table = metric_table(groups)
    assert [row[0] for row in table.rows] == ["MIG", "SAP"]  # those there are, in the paper's order
    assert cell(table, "SAP", "dSprites") == Number(*map(pytest.approx, (2.0, 1.5, 3.0)), count=3)
    assert cell(table, "SAP", "paper: dSprites") == Number(6.6, 5.1, 7.2)


def test_other_datasets_and_fewer_steps_are_marked(make_run):
    runs = [
        make_run("dvae", "rooms", 0, {"mig": 0.2}, preset="quick"),
        make_run("dvae", "dsprites", 0, {"mig": 0.3}),
    ]
    runs.append(make_run("dvae", "circles", 0, {"mig": 0.4}))
    table = mig_table(collect(runs).groups)
    assert table.columns == ("Model", "dSprites", "paper: dSprites", "rooms", "paper: Shapes3D", "Circles")
    ours = {
        heading: table.rows[0][place].marks for place, heading in enumerate(table.columns) if "s" in heading and place
    }
    assert ours["dSprites"] == ""
    assert ours["rooms"] == "†‡§"
    assert ours["Circles"] == ""  # the paper has no number it could be mistaken for
    assert any(note.startswith("‡") and "rooms is not Shapes3D" in note for note in table.notes)


def test_scores_with_unpublished_settings_are_marked(make_run):
    run = make_run("dvae", "dsprites", 0, {"mig": 0.2}, metric_settings={"mig": {"samples": 500}})
    table = mig_table(collect([run]).groups)
    assert table.rows[0][1].marks == "¶"
    assert any("mig.samples 500 instead of 10 000" in note for note in table.notes)


def test_incomparable_runs_have_columns_of_their_own(make_run):
    runs = [make_run("dvae", "circles", seed, {"mig": 0.1}, steps=1000) for seed in range(3)]
    runs += [make_run("dvae", "circles", seed, {"mig": 0.7}) for seed in range(2)]
    table = mig_table(collect(runs).groups)
    assert table.columns == ("Model", "Circles, steps 1000", "Circles, steps 300 000")
    assert [found.count for found in table.rows[0][1:]] == [3, 2]


def test_labels_make_another_table(make_run):
    seen = [
        make_run("dvae", "dsprites", seed, {"mig": mig}, supervision="masked", labels=1000, omega=omega)
        for seed, (mig, omega) in enumerate([(0.2, 1), (0.3, 2), (0.6, 4)])
    ]
    few = make_run("dvae", "dsprites", 0, {"mig": 0.1}, supervision="cross-entropy", labels=100)
    groups = collect([*seen, few, make_run("dvae", "dsprites", 0, {"mig": 0.9})]).groups
    table = supervised_table(groups)
    assert [row[0] for row in table.rows] == ["D-VAE, cross-entropy, 100 labels", "D-VAE, masked, 1000 labels"]
    found = table.rows[1][1]
    assert (found.low, found.value, found.high) == pytest.approx((25.0, 30.0, 45.0))
    assert table.rows[1][2] == Number(32.0, 29.9, 33.9)
    assert table.rows[0][2] is None  # the paper's numbers are for 1000 labels
    assert mig_table(groups).rows[0][1].count == 1  # and no supervised run among the unsupervised


def test_what_is_missing_is_said(make_run):
    with pytest.raises(UndefinedError, match=r"lddr evaluate RUN\.\.\. --metrics mig"):
        mig_table(collect([make_run("dvae", "dsprites")]).groups)
    with pytest.raises(UndefinedError, match="no unsupervised runs of these models"):
        metric_table(collect([make_run("vae", "dsprites", 0, {"mig": 0.1})]).groups)
    with pytest.raises(UndefinedError, match="no run saw labels"):
        supervised_table(collect([make_run("vae", "dsprites", 1, {"mig": 0.1})]).groups)


def test_a_score_that_is_undefined_does_not_count(make_run):
    runs = [make_run("dvae", "dsprites", 0, {"mig": 0.1}), make_run("dvae", "dsprites", 1, {"mig": {"score": None}})]
    assert percent(runs, "mig").count == 1
