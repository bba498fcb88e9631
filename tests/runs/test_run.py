import hashlib
import json

import numpy as np
import pytest
import torch
from PIL import Image

import lddr
from lddr.cli import main
from lddr.config import configure
from lddr.data.dataset import identity
from lddr.data.factors import Factor, FactorTable
from lddr.data.in_memory import ArrayDataset
from lddr.errors import UserError
from lddr.models import models
from lddr.runs.folder import PRETRAINED, RunFolder
from lddr.runs.index import read_run
from lddr.runs.run import Machine, run

pytestmark = pytest.mark.usefixtures("short_evaluation")
QUIET = Machine(device="cpu", threads=1, quiet=True)
SMALL = {"resolution": 16, "width": 4, "steps": 20}
WORDS = ["--preset=quick", "--resolution=16", "--width=4", "--steps=20", "--threads=1", "--device=cpu"]


def test_a_run_folder_says_everything(tmp_path):
    folder = run(configure("dvae", "circles", "quick", **SMALL), tmp_path, QUIET)
    config = json.loads((folder / "config.json").read_text())
    assert config["settings"]["latent"]["num_categories"] == 64
    assert config["versions"]["torch"] == torch.__version__
    assert config["dataset"]["images"] == 1600
    assert config["dataset"]["factors"] == {"x": 40, "y": 40}
    scores = json.loads((folder / "scores.json").read_text())["training"]
    assert np.isclose(scores["elbo_noiseless"], -scores["reconstruction"] - scores["kl"])
    assert not (folder / "checkpoint").exists()


def test_the_validation_risk_is_kept_for_selection(tmp_path):
    config = configure("dvae", "circles", "quick", supervision="masked", labels=50, **SMALL)
    folder = run(config, tmp_path, QUIET)
    scores = json.loads((folder / "scores.json").read_text())["training"]
    assert scores["validation_risk"] > 0
    assert 2 * np.log(40) < scores["validation_risk_guessing"] < 2 * np.log(85)  # 45 labels and each of 40 values
    line = (folder / "log.jsonl").read_text().splitlines()[-1]
    assert json.loads(line)["validation_risk"] == scores["validation_risk"]  # nothing was learned in between
    assert json.loads(line)["supervision"] > 0


def test_identity_tells_datasets_apart():
    one, other = (ArrayDataset(np.full((5, 16, 16), level, np.uint8)) for level in (3, 4))
    assert identity(one) == identity(ArrayDataset(np.full((5, 16, 16), 3, np.uint8)))
    assert identity(one)["checksum"] != identity(other)["checksum"]


def test_a_damaged_or_foreign_config_is_a_sentence(tmp_path):
    config = configure("vae", "circles", "quick", **SMALL)
    folder = tmp_path / config.run_name
    folder.mkdir()
    with pytest.raises(UserError, match="is no run"):
        _ = RunFolder(folder).config
    (folder / "config.json").write_text("{half")
    with pytest.raises(UserError, match="is damaged"):
        run(config, tmp_path, QUIET)
    other = configure("vae", "circles", "quick", **SMALL | {"seed": 1}).as_dict()
    (folder / "config.json").write_text(json.dumps({"settings": other}))
    with pytest.raises(UserError, match="holds other settings than its name says"):
        run(config, tmp_path, QUIET)
    (folder / "config.json").write_text(json.dumps({"settings": other | {"latent": {"dimensions": 3}}}))
    with pytest.raises(UserError, match="of another version of lddr"):
        run(config, tmp_path, QUIET)


def test_a_device_that_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(UserError, match=r"the device 'warp' cannot be used here .*try --device cpu"):
        run(configure("vae", "circles", "quick", **SMALL), tmp_path, Machine(device="warp"))


def test_the_command_trains_and_says_where_the_run_is(tmp_path, capsys):
    main(["train", "--model", "factor-dvae", "--dataset", "circles", "--gamma", "5", "--out", str(tmp_path), *WORDS])
    out = capsys.readouterr()
    (folder,) = tmp_path.iterdir()
    assert out.out.strip() == str(folder)
    assert "20/20" in out.err
    assert folder.name.startswith("circles_factor-dvae_gamma=5_seed=0_")
    assert RunFolder(folder).config == configure("factor-dvae", "circles", "quick", gamma=5, **SMALL)
    main(["train", "--model", "factor-dvae", "--dataset", "circles", "--gamma", "5", "--out", str(tmp_path), *WORDS])
    assert capsys.readouterr().out.strip() == str(folder)


def test_quiet_is_quiet_and_tensorboard_writes_events(tmp_path, capsys):
    words = ["--out", str(tmp_path), *WORDS, "--dataset", "circles", "--quiet", "--tensorboard"]
    main(["train", *words])
    (warning,) = capsys.readouterr().err.splitlines()  # that so few steps teach nothing
    assert "has learned nothing" in warning
    assert list(tmp_path.glob("*/tensorboard/events*"))


def test_a_knob_of_another_model_is_a_sentence(tmp_path, capsys):
    with pytest.raises(SystemExit) as end:
        main(["train", "--model", "vae", "--gamma", "5", "--out", str(tmp_path)])
    assert end.value.code == 2
    assert "vae has no setting 'gamma'; models with it: factor-dvae, factor-qvae, factor-vae" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_models_are_listed_with_knobs_and_grids(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    main(["models"])
    out = capsys.readouterr().out
    assert all(name in out for name in models)
    assert "gamma 10 (paper: 10, 20, 30, 40, 50, 100)" in out
    assert out.count("discriminator_layers 5") == 1  # FactorQVAE's, with the preset
    assert out.count("not as published: ") == sum(bool(models[name].unlike) for name in models) == 6


def test_a_model_that_has_learned_nothing_is_marked_also_when_quiet(tmp_path, capsys):
    folder = run(configure("dvae", "circles", "quick", **SMALL | {"steps": 2}), tmp_path, Machine("cpu", 1, quiet=True))
    said = capsys.readouterr().err
    assert "has learned nothing: its reconstructions" in said
    assert "more --steps" in said
    assert read_run(folder).value("state") == "collapsed"
    main(["runs", "ls", str(tmp_path)])
    assert "collapsed" in capsys.readouterr().out
    assert read_run(PRETRAINED / "circles-dvae").value("state") == "finished"


def test_a_run_goes_on_with_as_many_threads_as_it_began_with(tmp_path, monkeypatch):
    from lddr.runs import run as run_module

    seen = []
    monkeypatch.setattr(run_module, "train", lambda *given: seen.append(torch.get_num_threads()) or 1 / 0)
    config, before = configure("vae", "circles", "quick", steps=1), torch.get_num_threads()
    for cores, wanted in ((1, None), (2, None), (2, 2)):
        monkeypatch.setattr(run_module, "usable_cores", lambda cores=cores: cores)
        with pytest.raises(ZeroDivisionError):
            run_module.run(config, tmp_path, Machine(device="cpu", threads=wanted, quiet=True))
    assert seen == [1, 1, 2]
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(
    "words",
    [
        ["--dataset", "dsprites", "--resolution", "16"],
        ["--dataset", "circles", "--device", "cuda"],
        ["--dataset", "circles", "--supervision", "masked", "--labels", "5000"],
    ],
)
def test_what_cannot_be_trained_leaves_no_folder(tmp_path, words, monkeypatch, capsys):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as stopped:
        main(["train", "--model", "dvae", "--preset", "quick", "--out", str(tmp_path / "runs"), *words])
    assert stopped.value.code == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


class Labelled(ArrayDataset):
    """Images with one factor; their identity depends on both."""

    def __init__(self, images, labels):
        super().__init__(images, FactorTable([Factor("shade", 2)], np.asarray(labels)[:, None]))
        self.name = "shades"  # whatever the labels are

    def content(self):
        return hashlib.sha256(self.images(np.arange(len(self))).tobytes() + self.space.rows.tobytes()).hexdigest()


def test_a_finished_run_is_not_returned_for_other_labels(tmp_path):
    images, labels = np.random.default_rng(0).integers(0, 255, (20, 16, 16), np.uint8), np.arange(20) % 2
    given = {"model": "dvae", "preset": "quick", "out": tmp_path, "machine": QUIET, "width": 4, "steps": 2}
    given |= {"supervision": "masked", "labels": 10}
    first = lddr.train(Labelled(images, labels), **given)
    assert lddr.train(Labelled(images, labels), **given).folder == first.folder
    with pytest.raises(UserError, match=r"images or labels of shades are no longer those .*another --out"):
        lddr.train(Labelled(images, 1 - labels), **given)
    facts = json.loads((first.folder / "config.json").read_text())
    del facts["dataset"]["content"]  # as runs of older versions
    (first.folder / "config.json").write_text(json.dumps(facts))
    assert lddr.train(Labelled(images, 1 - labels), **given).folder == first.folder
    more = Labelled(images, labels)
    more.space = FactorTable([Factor("shade", 20)], np.arange(20)[:, None])
    with pytest.raises(UserError, match="are no longer those"):  # another number of values was kept even then
        lddr.train(more, **given)


def replaced_pictures(folder):
    for number, file in enumerate(sorted(folder.glob("*.png"))):
        Image.new("L", (16, 16), 250 - number).save(file)


def other_factors(folder):
    rows = [f"{number}.png,{number % 3}" for number in range(4)]
    (folder / "factors.csv").write_text("\n".join(["file,shade", *rows]))


@pytest.fixture
def pictures(tmp_path):
    folder = tmp_path / "pics"
    folder.mkdir()
    for number in range(4):
        Image.new("L", (16, 16), 10 * number).save(folder / f"{number}.png")
    (folder / "factors.csv").write_text("file,shade\n" + "".join(f"{number}.png,{number % 2}\n" for number in range(4)))
    return folder


@pytest.mark.parametrize("change", [replaced_pictures, other_factors])
def test_a_finished_run_is_not_returned_for_a_folder_that_changed(tmp_path, pictures, change, capsys):
    words = ["train", "--dataset", str(pictures), "--out", str(tmp_path / "runs"), *WORDS, "--quiet"]
    main(words)
    folder = capsys.readouterr().out
    main(words)
    assert capsys.readouterr().out == folder
    change(pictures)
    with pytest.raises(SystemExit) as stopped:
        main(words)
    said = capsys.readouterr()
    assert (stopped.value.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "the images or labels of pics are no longer those" in said.err


def test_a_finished_sweep_says_which_runs_saw_other_images(tmp_path, pictures):
    from lddr.sweeps.cluster import SweepOptions, run_study
    from lddr.sweeps.study import Study

    configs = [configure("vae", name, "quick", **SMALL) for name in (str(pictures), "circles")]
    for config in configs:
        run(config, tmp_path, QUIET)
    study = Study("two", configs, ())
    outcome = run_study(study, tmp_path, SweepOptions(quiet=True))
    assert (outcome.there, outcome.failures) == (2, [])
    other_factors(pictures)
    outcome = run_study(study, tmp_path, SweepOptions(quiet=True))
    assert outcome.there == 1
    (failure,) = outcome.failures
    assert failure.folder == tmp_path / configs[0].run_name
    assert "are no longer those" in failure.error


def test_images_that_only_a_cluster_has_are_not_compared(tmp_path, pictures):
    from lddr.sweeps.cluster import SweepOptions, run_study
    from lddr.sweeps.study import Study

    config = configure("vae", str(pictures), "quick", **SMALL)
    run(config, tmp_path, QUIET)
    pictures.rename(tmp_path / "elsewhere")
    study = Study("one", [config], ())
    assert run_study(study, tmp_path, SweepOptions("10.0.0.1:6379", quiet=True)).there == 1
    with pytest.raises(UserError, match="does not exist"):
        run_study(study, tmp_path, SweepOptions(quiet=True))
