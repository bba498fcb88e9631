import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import Number, UnwantedError, tables
from lddr.report.groups import collect
from lddr_paper.tables import correlation, gain, percent, selected
from tests.report.grouped import cell


def test_other_datasets_and_fewer_steps_are_marked(make_run):
    runs = [make_run("dvae", "rooms", 0, {"mig": 0.2}, preset="quick"), make_run("dvae", "dsprites", 0, {"mig": 0.3})]
    runs.append(make_run("dvae", "circles", 0, {"mig": 0.4}))
    table = tables["mig"].make(collect(runs).groups)
    assert table.columns == ("Model", "dSprites", "paper: dSprites", "rooms", "paper: Shapes3D", "Circles")
    ours = {
        heading: table.rows[0][place].marks for place, heading in enumerate(table.columns) if "s" in heading and place
    }
    assert ours["dSprites"] == ""
    assert ours["rooms"] == "†‡§"
    assert ours["Circles"] == ""  # the paper has no number that it could be confused with
    assert any(note.startswith("‡") and "rooms is not Shapes3D" in note for note in table.notes)


def test_scores_with_unpublished_settings_are_marked(make_run):
    run = make_run("dvae", "dsprites", 0, {"mig": 0.2}, metric_settings={"mig": {"samples": 500}})
    table = tables["mig"].make(collect([run]).groups)
    assert table.rows[0][1].marks == "¶"
    assert any("mig.samples 500 instead of 10,000" in note for note in table.notes)


def test_incomparable_runs_have_columns_of_their_own(make_run):
    runs = [make_run("dvae", "circles", seed, {"mig": 0.1}, steps=1000) for seed in range(3)]
    runs += [make_run("dvae", "circles", seed, {"mig": 0.7}) for seed in range(2)]
    table = tables["mig"].make(collect(runs).groups)
    assert table.columns == ("Model", "Circles, steps 1000", "Circles, steps 300,000")
    assert [found.count for found in table.rows[0][1:]] == [3, 2]


def test_what_is_missing_is_said(make_run):
    with pytest.raises(UndefinedError, match=r"lddr evaluate RUN\.\.\. --metrics mig"):
        tables["mig"].make(collect([make_run("dvae", "dsprites")]).groups)
    with pytest.raises(UndefinedError, match="no unsupervised runs of these models"):
        tables["dvae-metrics"].make(collect([make_run("vae", "dsprites", 0, {"mig": 0.1})]).groups)
    with pytest.raises(UndefinedError, match="no run saw labels"):
        tables["semi-supervised"].make(collect([make_run("vae", "dsprites", 1, {"mig": 0.1})]).groups)


def test_a_score_that_is_undefined_does_not_count(make_run):
    runs = [make_run("dvae", "dsprites", 0, {"mig": 0.1}), make_run("dvae", "dsprites", 1, {"mig": {"score": None}})]
    assert percent(runs, "mig").count == 1


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


def test_quartiles_beside_the_papers(groups):
    table = tables["mig-quartiles"].make(groups)
    found = cell(table, "D-VAE", "dSprites")
    assert (found.low, found.value, found.high) == pytest.approx((15.0, 20.0, 30.0))
    assert cell(table, "D-VAE", "paper: dSprites") == Number(17.4, 13.2, 20.0)


def test_all_metrics_of_the_dvae(groups):
    table = tables["dvae-metrics"].make(groups)
    assert [row[0] for row in table.rows] == ["MIG", "SAP"]  # those there are, in the paper's order
    assert cell(table, "SAP", "dSprites") == Number(*map(pytest.approx, (2.0, 1.5, 3.0)), count=3)
    assert cell(table, "SAP", "paper: dSprites") == Number(6.6, 5.1, 7.2)


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


@pytest.fixture
def pair(make_run):
    """MIG: D-VAE 0.4 over 0.2 on dSprites, 0.1 against 0.2 on circles; SAP: equal on dSprites."""
    values = {
        ("vae", "dsprites"): {"mig": (0.1, 0.2, 0.9), "sap": (0.3, 0.3, 0.3)},
        ("dvae", "dsprites"): {"mig": (0.3, 0.4, 0.5), "sap": (0.1, 0.3, 0.9)},
        ("vae", "circles"): {"mig": (0.2, 0.2, 0.2)},
        ("dvae", "circles"): {"mig": (0.0, 0.1, 0.2)},
    }
    return [
        make_run(model, dataset, seed, {name: scores[seed] for name, scores in metrics.items()})
        for (model, dataset), metrics in values.items()
        for seed in range(3)
    ]


def test_gains_and_wins_by_hand(pair):
    table = tables["gains"].make(collect(pair).groups)
    rows = {row[0]: row[1:] for row in table.rows}
    assert table.columns == ("Comparison", "dSprites", "paper: dSprites", "Circles")
    assert rows["D-VAE over VAE, MIG"] == (
        Number(pytest.approx(100.0), count=6, fewest=3),
        Number(336),
        Number(pytest.approx(-50.0), count=6, fewest=3),
    )
    assert rows["D-VAE over VAE, SAP"] == (Number(pytest.approx(0.0, abs=1e-9), count=6, fewest=3), None, None)
    assert table.notes[0] == "D-VAE against VAE: better in 1 of 3 cases△; in the paper in 31 of 36"


def test_there_is_no_gain_over_nothing(make_run):
    runs = [
        make_run(model, "circles", seed, {"mig": mig})
        for model, mig in (("vae", 0.0), ("dvae", 0.5))
        for seed in (1, 2)
    ]
    assert gain(("vae", "dvae"), runs, "mig") is None
    with pytest.raises(UndefinedError):
        tables["gains"].make(collect(runs[:2]).groups)


def test_shares_of_wins_by_hand(make_run):
    """MIG: medians 0.3 and 0.5, of the lowest risk 0.9 and 0.5; SAP: a draw by both rules."""
    common = {"supervision": "cross-entropy", "labels": 100}
    runs = [
        make_run("dvae", "circles", seed, {"mig": mig, "sap": 0.2, "validation_risk": risk, "gap": gap}, **common)
        for seed, (mig, risk, gap) in enumerate([(0.1, 3.0, 3.0), (0.3, 2.0, 1.0), (0.9, 1.0, 2.0)])
    ]
    runs.append(
        make_run("vae", "circles", 0, {"mig": 0.5, "sap": 0.2, "validation_risk": 7.0}, supervision="bce", labels=100)
    )
    table = tables["wins"].make(collect(runs).groups)
    assert table.columns == (
        "Model",
        "100 labels, median, 2 cases",
        "100 labels, lowest R_s, 2 cases",
        "100 labels, lowest Gap_ST, 2 cases",
    )
    shares = {row[0]: [number.value for number in row[1:]] for row in table.rows}
    assert {number.all_marks for row in table.rows for number in row[1:]} == {"△"}  # one VAE
    assert table.notes[-1].startswith("△ of fewer than five runs")
    assert shares == {"VAE, BCE": [75.0, 25.0, 75.0], "D-VAE, cross-entropy": [25.0, 75.0, 25.0]}


def test_one_method_wins_nothing(make_run):
    run = make_run("dvae", "circles", 0, {"mig": 0.5}, supervision="masked")
    with pytest.raises(UndefinedError, match="no supervised runs of two methods"):
        tables["wins"].make(collect([run]).groups)


def test_correlations_by_hand(make_run):
    """Ranks of the gap 1 2 3 4, of MIG 4 3 2 1, of SAP 1 2 4 3 (rho = 1 - 6·2/60 = 0.8); small gaps are good."""
    runs = [
        make_run("dvae", "circles", 1, {"gap": 1.0, "mig": 0.9, "sap": 0.1, "modularity": 0.5}),
        make_run("dvae", "circles", 2, {"gap": 2.0, "mig": 0.8, "sap": 0.2, "modularity": 0.5}),
        make_run("factor-dvae", "circles", 3, {"gap": 30.0, "mig": 0.3, "sap": 0.4, "modularity": 0.5}),
        make_run("dvae", "circles", 4, {"gap": 400.0, "mig": 0.1, "sap": 0.3, "modularity": 0.5}),
        make_run("vae", "circles", 5, {"mig": 0.7}),
    ]
    rows = {row[0]: row[1] for row in tables["correlations"].make(collect(runs).groups).rows}
    assert rows == {
        "Small gap of the D-VAE, MIG": Number(pytest.approx(1.0), count=3),
        "Small gap of the D-VAE, SAP": Number(pytest.approx(-1.0), count=3),
        "Small gap of D-VAE and FactorDVAE, MIG": Number(pytest.approx(1.0), count=4),
        "Small gap of D-VAE and FactorDVAE, SAP": Number(pytest.approx(-0.8), count=4),
    }  # and nothing for modularity, which never changes


def test_one_model_alone_is_not_both(make_run):
    runs = [make_run("dvae", "circles", seed, {"mig": 0.1 * seed, "gap": seed}) for seed in (1, 2, 3)]
    rows = [row[0] for row in tables["correlations"].make(collect(runs).groups).rows]
    assert rows == ["Small gap of the D-VAE, MIG"]


def test_efficiency_is_that_of_the_dvae(make_run):
    def efficiency(value):
        return {"score": 0.5, "efficiency": value}

    runs = [
        make_run("dvae", "circles", seed, {"mig": seed / 10, "downstream_logistic": efficiency(seed)})
        for seed in (1, 2, 3)
    ]
    runs.append(make_run("vae", "circles", 9, {"mig": 0.9, "downstream_logistic": efficiency(-5)}))
    rows = {row[0]: row[1] for row in tables["correlations"].make(collect(runs).groups).rows}
    assert rows == {"Efficiency of logistic regression, MIG": Number(pytest.approx(1.0), count=3)}


def test_two_runs_have_no_correlation(make_run):
    runs = [make_run("dvae", "circles", seed, {"mig": 0.1 * seed, "gap": seed}) for seed in (1, 2)]
    assert correlation("gap", runs, "mig") is None


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
