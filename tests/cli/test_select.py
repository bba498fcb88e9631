import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from lddr.config import configure
from lddr.data.dataset import identity, stream
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.files import write_json
from lddr.networks.coders import initialise
from lddr.runs.index import read_run
from lddr.selection.ranking import RunEncoder, encode
from lddr.selection.selector import selectors
from lddr.trained import Trained
from lddr.training.trainer import vae_of
from tests.cli.words import called
from tests.run_folders import completed

select = partial(called, "select")


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """Three seeds of a discrete model, random but lively, with made-up scores: the smaller the gap, the larger MIG."""
    root, dataset = tmp_path_factory.mktemp("runs"), load_dataset("circles", 16)
    for seed in range(3):
        config = configure("dvae", "circles", "quick", resolution=16, width=4, seed=seed)
        vae = vae_of(config, dataset.image_shape)
        initialise(vae, torch.Generator().manual_seed(seed))
        with torch.no_grad():
            list(vae.encoder.parameters())[-2].mul_(200)  # the logits' weights: categories differ from image to image
        folder = root / config.run_name
        Trained(config, vae, dataset.image_shape).save(folder)
        write_json(folder / "config.json", {"settings": config.as_dict(), "dataset": identity(dataset)})
        gap = {"score": 2.0 + seed, "relative": 0.1 * (3 - seed), "confidence": 0.5 + 0.1 * seed}
        metrics = {"gap": gap, "mig": {"score": 0.9 - 0.25 * seed}, "sap": {"score": None, "reason": "no"}}
        training = {"elbo": -10.0 - seed, "elbo_noiseless": -9.0 - seed, "reconstruction": 8.0, "kl": 1.0 + seed}
        write_json(folder / "scores.json", {"training": training, "metrics": metrics})
        completed(folder)
    return root


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")


@pytest.mark.parametrize(("by", "seed"), [("gap", 0), ("relative", 2), ("discreteness", 2), ("gap+discreteness", None)])
def test_the_choice_is_printed_and_written_with_its_evidence(by, seed, trained, tmp_path, capsys):
    select(trained, by=by, out=tmp_path / "new" / "choice.json")
    out, err = capsys.readouterr()
    written = json.loads((tmp_path / "new" / "choice.json").read_text())
    assert out.strip() == written["chosen"]
    assert written["selector"] == by
    assert len(written["ranking"]) == 3
    assert written["value"] == written["ranking"][0]["value"]
    assert written["varied"] == {"seed": [0, 1, 2]}
    assert "3 runs ranked" in err
    if seed is not None:
        assert f"seed={seed}_" in written["chosen"]
    else:
        assert "3 runs share the first place" in err


@pytest.mark.parametrize("by", ["crispness", "agreement", "udr", "combined"])
def test_models_are_asked_where_scores_are_not_enough(by, trained, tmp_path, capsys):
    for name in ("one.json", "two.json"):
        select(trained, by=by, out=tmp_path / name, samples=200, quiet=True)
    written = json.loads((tmp_path / "one.json").read_text())
    assert written == json.loads((tmp_path / "two.json").read_text())
    assert len(written["ranking"]) == 3
    out, err = capsys.readouterr()
    assert out.split() == [written["chosen"]] * 2
    assert err == ""


def test_the_evidence_is_beside_the_runs_and_conditions_narrow_them(trained, capsys):
    select(trained, by="gap", where=["seed!=0"])
    written = json.loads((trained / "selection.json").read_text())
    assert "seed=1_" in written["chosen"]
    assert len(written["ranking"]) == 2
    capsys.readouterr()


def test_encoded_is_what_the_model_says(trained):
    folder = min(trained.glob("circles*"))
    seen, model = encode(read_run(folder), samples=50), Trained.load(folder)
    images = load_dataset("circles", 16).draw(stream(0, "selection"), 50)
    assert np.array_equal(seen.codes, model.represent(images).astype(np.float64))
    assert np.array_equal(seen.categories, model.categories(images))
    assert seen.confidence == pytest.approx(model.posterior(images).max(axis=2).mean(axis=0))
    assert seen.active.any()


def test_a_run_that_cannot_be_encoded_has_a_reason(trained, tmp_path):
    folder = min(trained.glob("circles*"))
    copy = tmp_path / folder.name
    copy.mkdir()
    text = (folder / "config.json").read_text()
    (copy / "config.json").write_text(text)
    reason = RunEncoder(10)(read_run(copy))
    assert isinstance(reason, str)
    assert "model.safetensors" in reason
    checksum = json.loads(text)["dataset"]["checksum"]
    (copy / "config.json").write_text(text.replace(checksum, "0" * 16))
    reason = RunEncoder(10)(read_run(copy))
    assert isinstance(reason, str)
    assert "are no longer those" in reason


def test_the_report_has_every_selector_and_the_truth(trained, tmp_path, capsys):
    select(trained, report=True, metrics="mig", out=tmp_path / "report.json", samples=200)
    out, err = capsys.readouterr()
    (group,) = json.loads((tmp_path / "report.json").read_text())
    found = {entry["selector"]: entry for entry in group["correlations"]}
    assert set(found) == set(selectors)
    assert found["gap"]["spearman"] == pytest.approx(1)
    assert found["relative"]["spearman"] == pytest.approx(-1)
    assert found["discreteness"]["spearman"] == pytest.approx(-1)
    assert found["validation"]["spearman"] is None
    chosen = {entry["selector"]: entry for entry in group["choices"]}
    assert chosen["gap"]["selected"] == chosen["gap"]["best"] == 0.9
    assert chosen["relative"]["selected"] == pytest.approx(0.4)
    assert chosen["gap"]["median"] == chosen["gap"]["random"] == pytest.approx(0.65)
    assert all(name in out for name in selectors if name not in ("validation", "independence"))
    assert "+1.00…+1.00" in out
    assert "(best)" in out
    assert "report.json" in err


def test_the_report_as_json_of_some_selectors(trained, tmp_path, capsys):
    select(trained, by="gap,elbo", report=True, metrics="mig", out=tmp_path / "report.json", json=True)
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((tmp_path / "report.json").read_text())
    assert {entry["selector"] for entry in printed[0]["correlations"]} == {"gap", "elbo"}


@pytest.mark.parametrize("width", [50, 80])
def test_the_tables_of_the_report_fit(width, trained, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    select(
        trained,
        by="gap",
        report=True,
        metrics="mig,elbo,kl,gap.relative,gap.confidence",
        out=tmp_path / "r.json",
    )
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert "mig" in out
    assert "gap.confidence" in out


def test_a_quiet_report_says_nothing_but_what_is_asked_for(trained, tmp_path, capsys):
    options = {"report": True, "metrics": "mig", "out": tmp_path / "r.json", "quiet": True}
    select(trained, by="gap", **options)
    assert capsys.readouterr() == ("", "")
    select(trained, by="gap", json=True, **options)
    said = capsys.readouterr()
    assert json.loads(said.out) == json.loads((tmp_path / "r.json").read_text())
    assert said.err == ""


def test_mistakes_of_the_report_are_sentences(trained, tmp_path):
    with pytest.raises(UserError, match="did you mean 'mig'"):
        select(trained, report=True, metrics="migg", quiet=True)
    with pytest.raises(UserError, match="there are no runs in"):
        select(tmp_path, report=True, quiet=True)
    with pytest.raises(UserError, match="unknown selector 'gape'"):
        select(trained, by="gape", report=True, quiet=True)
    with pytest.raises(UserError, match="unknown selector 'gape'"):
        select(trained, by="gape", quiet=True)


def test_runs_are_encoded_on_the_device_that_was_chosen(trained):
    folder = min(trained.glob("circles*"))
    with pytest.raises(NotImplementedError, match="meta"):  # where nothing can be read
        encode(read_run(folder), 10, "meta")
    assert "the device 'nowhere' cannot be used here" in RunEncoder(10, "nowhere")(read_run(folder))
