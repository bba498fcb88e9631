import json

import numpy as np
import pytest
import torch

from lddr.cli import main
from lddr.config import configure
from lddr.data.dataset import identity
from lddr.data.in_memory import ArrayDataset
from lddr.errors import UserError
from lddr.models import models
from lddr.runs.carry_out import Machine, run
from lddr.runs.folder import RunFolder
from lddr.runs.index import read_run

QUIET = Machine(device="cpu", threads=1, quiet=True)
SMALL = {"resolution": 16, "width": 4, "steps": 20}
WORDS = [
    "--preset",
    "quick",
    "--resolution",
    "16",
    "--width",
    "4",
    "--steps",
    "20",
    "--threads",
    "1",
    "--device",
    "cpu",
]


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
    config = configure("dvae", "circles", "quick", supervision="masked", labels=50, **SMALL | {"steps": 100})
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
    assert out.count("not as published: ") == sum(bool(models[name].unlike) for name in models) == 4


def test_a_model_that_has_learned_nothing_is_marked_also_when_quiet(tmp_path, capsys):
    folder = run(configure("dvae", "circles", "quick", **SMALL | {"steps": 2}), tmp_path, Machine("cpu", 1, quiet=True))
    said = capsys.readouterr().err
    assert "has learned nothing: its reconstructions" in said
    assert "more --steps" in said
    assert read_run(folder).value("state") == "collapsed"
    main(["runs", "ls", str(tmp_path)])
    assert "collapsed" in capsys.readouterr().out
    run(
        configure(
            "vae",
            "circles",
            "quick",
            **SMALL | {"steps": 600, "learning_rate": 3e-3, "initialiser": "truncated", "schedule": "constant"},
        ),
        tmp_path,
        Machine("cpu", 1),
    )
    assert "learned" not in capsys.readouterr().err


def test_a_run_goes_on_with_as_many_threads_as_it_began_with(tmp_path, monkeypatch):
    from lddr.runs import carry_out

    seen = []
    monkeypatch.setattr(carry_out, "train", lambda *given: seen.append(torch.get_num_threads()) or 1 / 0)
    config, before = configure("vae", "circles", "quick", steps=1), torch.get_num_threads()
    for free, wanted in ((1, None), (2, None), (2, 2)):
        monkeypatch.setattr(carry_out, "free_cores", lambda free=free: free)
        with pytest.raises(ZeroDivisionError):
            carry_out.run(config, tmp_path, Machine(device="cpu", threads=wanted, quiet=True))
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
