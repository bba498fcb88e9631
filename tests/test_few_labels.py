"""A folder of which a few pictures are labelled, as a user would take it from the pictures to the scores."""

import json

import numpy as np
import pytest
from PIL import Image

import lddr
from lddr.cli import main
from lddr.errors import UserError
from lddr.explorer.open_model import open_model
from lddr.metrics.mig import mig
from lddr.runs.evaluate import evaluate_run
from lddr.runs.folder import RunFolder
from lddr.runs.index import list_runs
from lddr.runs.information import information_of
from lddr.sweeps.progress import seconds_per_step, shape_of

COUNT, LABELLED = 120, 50
TRAIN = ["--preset=quick", "--resolution=16", "--width=4", "--steps=20", "--device=cpu"]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Squares at five rows and six columns, bright or dark; the labels of some have gaps."""
    folder = tmp_path_factory.mktemp("data") / "squares"
    folder.mkdir()
    generator = np.random.default_rng(0)
    values = generator.integers([5, 6, 2], size=(COUNT, 3))
    rows = ["file,row,column,light"]
    for number, (row, column, light) in enumerate(values):
        picture = np.zeros((16, 16), np.uint8)
        picture[3 * row : 3 * row + 3, 2 * column : 2 * column + 3] = (120, 250)[light]
        Image.fromarray(picture).save(folder / f"{number:03}.png")
    for place, number in enumerate(generator.permutation(COUNT)[:LABELLED]):
        cells = [str(values[number, 0]), str(values[number, 1]), ("dark", "bright")[values[number, 2]]]
        if place % 5 == 0:
            cells[place // 5 % 3] = ""  # ten images lack a label
        rows.append(",".join([f"{number:03}.png", *cells]))
    (folder / "factors.csv").write_text("\n".join(rows))
    return folder


@pytest.fixture(scope="module")
def run(pictures, tmp_path_factory):
    """A masked D-VAE of all labels there are."""
    out = tmp_path_factory.mktemp("runs")
    train(pictures, out, "--supervision", "masked", "--quiet")
    (found,) = list_runs(out)
    return found


def train(pictures, out, *words):
    words = ["--dataset", str(pictures), "--out", str(out), "--threads", "1", *TRAIN, *words]
    main(["train", "--model", "dvae", *words])


def test_data_show_says_how_much_is_labelled(pictures, tmp_path, capsys):
    main(["data", "show", str(pictures), "--out", str(tmp_path / "sheet.png")])
    said = " ".join(capsys.readouterr().out.split())
    assert "120 images" in said
    assert "row 5 (46 of 120 known), column 6 (47 of 120 known), light 2 (47 of 120 known)" in said
    assert (tmp_path / "sheet.png").exists()


def test_all_labels_supervise_unless_fewer_are_asked_for(pictures, run, tmp_path, capfd):
    assert run.value("labels") == LABELLED
    assert f"masked={LABELLED}" in run.name
    assert run.files.images["factors"] == {"row": 5, "column": 6, "light": 2}
    train(pictures, tmp_path, "--supervision", "masked", "--labels", "20")
    assert list_runs(tmp_path)[0].value("labels") == 20
    said = " ".join(capfd.readouterr().err.split())
    assert (
        "supervised (masked) by 18 labelled images of 120, 2 more validate; the first latents are tied to: row 5 (46"
        in said
    )
    with pytest.raises(SystemExit):
        train(pictures, tmp_path, "--supervision", "masked", "--labels", "51")
    assert "51 labels are more than the 50 labelled images of squares; lower labels" in capfd.readouterr().err


def test_supervised_runs_have_as_many_latents_as_factors_unless_told_otherwise(pictures, run, tmp_path):
    assert run.value("num_latents") == 3
    train(pictures, tmp_path, "--supervision", "masked", "--num-latents", "5", "--quiet")
    (found,) = list_runs(tmp_path)
    assert found.value("num_latents") == 5


def test_unused_labels_are_pointed_out(pictures, tmp_path, capfd):
    train(pictures, tmp_path)
    said = " ".join(capfd.readouterr().err.split())
    assert "50 of 120 images are labelled, but this run does not train with the labels" in said
    assert "set supervision (for example masked) to use them" in said
    assert list_runs(tmp_path)[0].value("supervision") is None


def test_the_risk_stands_beside_that_of_guessing(run, capsys):
    assert 0 < run.number("validation_risk_guessing") < 10
    main(["show", str(run.folder)])
    lines = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines.index("validation_risk_guessing") == lines.index("validation_risk") + 1


def test_scores_are_of_the_labelled_images_and_say_so(run, monkeypatch, capsys):
    changes = ["beta_vae.train_points=40", "beta_vae.test_points=20", "unsupervised.samples=500"]
    options = ["--jobs", "1", "--device", "cpu", *(word for change in changes for word in ("--set", change))]
    main(["evaluate", str(run.folder), "--metrics", "mig,sap,beta_vae,unsupervised", *options])
    said = " ".join(capsys.readouterr().out.split())
    words = "scored on the 40 of 120 images with all factors labelled, most of which supervised the training"
    assert f"mig, sap, beta_vae: {words}" in said
    entries = run.files.metrics
    assert entries["mig"]["settings"]["samples"] == entries["mig"]["labelled_images"] == 40
    assert sum(entries["sap"]["settings"][part] for part in ("train", "test")) == 40
    assert all("from 40 samples" in entries[name]["warning"] for name in ("mig", "sap", "beta_vae"))
    assert "scored_on" not in entries["unsupervised"]
    trained, dataset = lddr.Trained.load(run.folder), run.files.dataset
    whole = dataset.space.fully_labelled()
    with pytest.warns(UserWarning, match="from 40 samples"):
        by_hand = mig(trained.represent(dataset.images(whole)), dataset.space.factors_of(whole)).score
    assert entries["mig"]["score"] == pytest.approx(by_hand, abs=1e-6)
    assert information_of(run.folder).factors == ["row", "column", "light"]
    monkeypatch.setattr("lddr.trained.Trained.load", lambda folder: pytest.fail("it was scored again"))
    evaluate_run(run.folder, ["mig", "sap"], quiet=True)


def test_the_explorer_knows_what_it_does_not_know(run):
    model = open_model(run.folder, "cpu")
    rows = model.dataset.space.rows
    unknown, known = np.flatnonzero((rows < 0).all(1))[0], np.flatnonzero((rows >= 0).all(1))[0]
    assert model.encode({"index": int(unknown)})["factors"] == [None, None, None]
    assert model.encode({"index": int(known)})["factors"] == rows[known].tolist()
    assert rows[model.encode({"factors": rows[known].tolist()})["index"]].tolist() == rows[known].tolist()
    json.dumps(model.description())


def test_the_page_of_a_run_is_drawn(run, tmp_path):
    main(["show", str(run.folder), "--out", str(tmp_path)])
    (page,) = tmp_path.glob("*.html")
    assert "light" in page.read_text()


def test_a_study_of_it_can_be_timed(run):
    assert seconds_per_step(shape_of(run.files.config), 1) > 0


def test_other_labels_are_not_continued_with(pictures, run):
    table = pictures / "factors.csv"
    before = table.read_text()
    try:
        table.write_text("\n".join(before.splitlines()[:-1]))
        with pytest.raises(UserError, match="are no longer those"):
            RunFolder(run.folder).check(lddr.load_dataset(str(pictures), 16))
    finally:
        table.write_text(before)
    RunFolder(run.folder).check(lddr.load_dataset(str(pictures), 16))


def test_the_folder_and_the_same_arrays_train_the_same_model(pictures, run):
    dataset = lddr.load_dataset(str(pictures), 16)
    space = dataset.space
    columns = {
        factor.name: [None if value < 0 else factor.values[value] for value in column]
        for factor, column in zip(space.factors, space.rows.T, strict=True)
    }
    images = dataset.images(np.arange(COUNT))
    machine = lddr.Machine(device="cpu", threads=1, quiet=True)
    settings = {"width": 4, "steps": 20, "machine": machine}
    model = lddr.train(images, "dvae", "quick", factors=columns, **settings)
    assert np.array_equal(model.represent(images), lddr.Trained.load(run.folder).represent(images))
