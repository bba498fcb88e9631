import pytest

from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import tables
from lddr.report.groups import collect
from lddr_paper.tables import percent


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
    assert ours["Circles"] == ""  # the paper has no number it could be mistaken for
    assert any(note.startswith("‡") and "rooms is not Shapes3D" in note for note in table.notes)


def test_scores_with_unpublished_settings_are_marked(make_run):
    run = make_run("dvae", "dsprites", 0, {"mig": 0.2}, metric_settings={"mig": {"samples": 500}})
    table = tables["mig"].make(collect([run]).groups)
    assert table.rows[0][1].marks == "¶"
    assert any("mig.samples 500 instead of 10 000" in note for note in table.notes)


def test_incomparable_runs_have_columns_of_their_own(make_run):
    runs = [make_run("dvae", "circles", seed, {"mig": 0.1}, steps=1000) for seed in range(3)]
    runs += [make_run("dvae", "circles", seed, {"mig": 0.7}) for seed in range(2)]
    table = tables["mig"].make(collect(runs).groups)
    assert table.columns == ("Model", "Circles, steps 1000", "Circles, steps 300 000")
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
