import json
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
import safetensors.numpy
import yaml
from huggingface_hub import constants, utils

import lddr
from lddr.cli import main
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.hardware import Machine
from lddr.report import traversals
from lddr.report.traversals import Traversal
from lddr.runs.folder import RunFolder
from lddr.runs.index import read_run
from tests.hub_server import TOKEN, running_hub

FILES = {"README.md", "config.json", "log.jsonl", "model.safetensors", "scores.json", "traversals.png"}
# huggingface_hub calls its own HTTP library in an old way
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=<...>' to upload:DeprecationWarning")


@pytest.fixture(scope="module")
def model():
    return lddr.Trained.load("circles-dvae")


@pytest.fixture(scope="module")
def images():
    return load_dataset("circles", 32).images(np.arange(0, 1600, 100))


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A hub on this machine, that huggingface_hub uses without an account."""
    with running_hub() as running:
        monkeypatch.setattr(constants, "ENDPOINT", running.url)
        pages = running.url + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", pages)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.delenv("HF_TOKEN", raising=False)
        monkeypatch.chdir(tmp_path)
        utils.disable_progress_bars()
        yield running
        utils.close_session()


def test_what_is_pushed_comes_back_the_same_with_a_card(hub, model, images, monkeypatch, capsys):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    main(["push", "circles-dvae", "circles", "--private"])  # in one's own name
    assert capsys.readouterr().out == f"{hub.url}/me/circles\n"
    files = hub.files("me/circles")
    assert set(files) == FILES | {".gitattributes"}
    assert hub.repositories["me/circles"]["private"]
    back = lddr.Trained.from_pretrained("me/circles", token=TOKEN)
    assert back.config == model.config
    weights = model.vae.state_dict()
    assert all(weights[name].equal(tensor) for name, tensor in back.vae.state_dict().items())
    assert np.array_equal(back.represent(images), model.represent(images))
    assert read_run(back.folder).scores == read_run(model.folder).scores
    assert RunFolder(back.folder).is_finished
    assert files["traversals.png"].startswith(b"\x89PNG")
    text = files["README.md"].decode()
    front = yaml.safe_load(text.split("---\n")[1])
    assert front["library_name"] == "lddr"
    assert front["datasets"] == ["circles"]
    assert "license" not in front
    (result,) = front["model-index"][0]["results"]
    assert result["metrics"][0]["value"] == RunFolder(model.folder).metrics["mig"]["score"]
    huggingface_hub.ModelCard(text)  # which reads what the Hub reads
    assert 'from_pretrained("me/circles")' in text
    assert "lddr train --model dvae --dataset circles" in text


def test_a_revision_is_a_branch_of_its_own(hub, model):
    hub.add("me/circles")  # which is there already
    unsaved = lddr.Trained(model.config, model.vae, model.image_shape)
    unsaved.push_to_hub("me/circles", token=TOKEN, revision="trial", license="mit")
    assert "model.safetensors" not in hub.files("me/circles")
    assert lddr.Trained.from_pretrained("me/circles", revision="trial").config == model.config
    with pytest.raises(UserError, match="there is no such revision"):
        lddr.Trained.from_pretrained("me/circles", revision="nowhere")


def test_no_place_of_this_machine_is_pushed(hub, tmp_path):
    images = np.random.default_rng(0).integers(256, size=(20, 16, 16), dtype=np.uint8)
    np.savez("secret-place.npz", images=images)
    settings = {"width": 4, "steps": 2, "num_latents": 1, "machine": Machine("cpu", 1, quiet=True)}
    trained = lddr.train(str(tmp_path / "secret-place.npz"), "vae", out="runs", **settings)
    trained.push_to_hub("me/own", token=TOKEN)
    for name, content in hub.files("me/own").items():
        assert str(tmp_path).encode() not in content, name
    assert "datasets:" not in hub.files("me/own")["README.md"].decode()
    assert "traversals.png" in hub.files("me/own")
    assert lddr.Trained.from_pretrained("me/own").config.dataset == "secret-place"


@pytest.fixture
def own(tmp_path):
    """A model of images of one's own, of noise, in a run folder."""
    images = np.random.default_rng(0).integers(256, size=(20, 16, 16), dtype=np.uint8)
    np.savez(tmp_path / "own.npz", images=images)
    settings = {"width": 4, "steps": 2, "num_latents": 2, "machine": Machine("cpu", 1, quiet=True)}
    trained = lddr.train(str(tmp_path / "own.npz"), "dvae", out=str(tmp_path / "runs"), **settings)
    return trained, images[..., np.newaxis]


def test_own_images_are_uploaded_only_on_request(hub, own, capsys, monkeypatch):
    trained, images = own
    labels = []
    monkeypatch.setattr(traversals, "Traversal", lambda *fields: labels.append(fields[2]) or Traversal(*fields))
    trained.push_to_hub("me/without", token=TOKEN)
    assert "your images are not uploaded" in capsys.readouterr().err
    assert "samples.png" not in hub.files("me/without")
    assert ("reconstruction",) in labels
    assert not any("input" in each for each in labels)
    assert len(lddr.Trained.from_pretrained("me/without").samples) == 0
    trained.push_to_hub("me/with", token=TOKEN, samples=16)
    assert "samples.png shows images of the training set" in capsys.readouterr().err
    assert ("input", "reconstruction") in labels
    assert "](samples.png)" in hub.files("me/with")["README.md"].decode()
    samples = lddr.Trained.from_pretrained("me/with").samples
    assert samples.shape == (16, 16, 16, 1)
    assert {image.tobytes() for image in samples} <= {image.tobytes() for image in images}


def test_a_model_that_was_shared_with_samples_is_shown_and_shared_again(hub, own, tmp_path, capsys):
    own[0].push_to_hub("me/with", token=TOKEN, samples=4)
    (tmp_path / "own.npz").unlink()
    back = lddr.Trained.from_pretrained("me/with")
    main(["show", str(back.folder), "--out", "card"])
    assert "missing: Trav" not in capsys.readouterr().out
    assert Path("card/figures/reconstructions.png").exists()
    back.push_to_hub("me/again", token=TOKEN, samples=16)  # there are only four
    assert np.array_equal(lddr.Trained.from_pretrained("me/again").samples, back.samples)


def test_a_model_that_was_shared_without_samples_says_so(hub, own, tmp_path, capsys):
    own[0].push_to_hub("me/without", token=TOKEN)
    (tmp_path / "own.npz").unlink()
    main(["show", str(lddr.Trained.from_pretrained("me/without").folder), "--out", "card"])
    assert "was shared without the images that it was trained on" in capsys.readouterr().out


def test_impossible_samples_are_refused_before_anything_is_uploaded(hub, own, model):
    for count in (-1, 65):
        with pytest.raises(UserError, match=f"0 to 64 samples, not {count}"):
            own[0].push_to_hub("me/own", token=TOKEN, samples=count)
    with pytest.raises(UserError, match="only a model that is loaded from the folder of its run"):
        lddr.Trained(model.config, model.vae, model.image_shape).push_to_hub("me/own", token=TOKEN, samples=4)
    assert "me/own" not in hub.repositories


def test_a_model_that_was_not_kept_is_pushed_without_its_scores(hub, model):
    trained = lddr.Trained(model.config, model.vae, model.image_shape)
    trained.push_to_hub("me/bare", token=TOKEN)
    assert set(hub.files("me/bare")) == {".gitattributes", "README.md", "config.json", "model.safetensors"}
    assert lddr.Trained.from_pretrained("me/bare").config == trained.config


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda model: lddr.Trained.from_pretrained("me/nothing", token=TOKEN), "there is no repository of this name"),
        (
            lambda model: lddr.Trained.from_pretrained("me/nothing"),
            "there is no folder me/nothing, and .*hf auth login",
        ),
        (lambda model: lddr.Trained.from_pretrained("nothing-at-all"), "there is no model nothing-at-all"),
        (lambda model: lddr.Trained.from_pretrained("rooms-dvae", revision="x"), "has no revisions"),
        (lambda model: model.push_to_hub("me/circles"), "cannot push to me/circles: .*hf auth login"),
        (lambda model: model.push_to_hub("you/circles", token=TOKEN), "you may not write there"),
        (lambda model: model.push_to_hub("no/such/name", token=TOKEN), "a repository is called OWNER/NAME"),
    ],
)
def test_what_the_hub_refuses_is_a_sentence(hub, model, ask, sentence):
    with pytest.raises(UserError, match=sentence):
        ask(model)


def test_a_hub_that_cannot_be_reached_is_a_sentence(hub, model, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # where nothing listens
    with pytest.raises(UserError, match="check the connection"):
        model.push_to_hub("me/circles", token=TOKEN)
    with pytest.raises(UserError, match="check the connection"):
        lddr.Trained.from_pretrained("me/circles", token=TOKEN)


def test_a_repository_of_something_else_is_refused(hub, model):
    hub.add("you/pickled", {"pytorch_model.bin": b"\x80\x04", "config.json": b"{}"})
    hub.add("you/foreign", {"model.safetensors": safetensors.numpy.save({"weight": np.zeros(3)})})
    mixed = (model.folder / "model.safetensors").read_bytes()
    config = json.loads((model.folder / "config.json").read_text())
    config["settings"]["training"]["seed"] = 7
    hub.add("you/mixed", {"model.safetensors": mixed, "config.json": json.dumps(config).encode()})
    hub.add("you/damaged", {"model.safetensors": mixed[:-100], "config.json": b"{}"})
    for name, sentence in {
        "you/pickled": r"you/pickled is no model of lddr: it has no model\.safetensors",
        "you/foreign": "it was not written by lddr",
        "you/mixed": "holds other settings",
        "you/damaged": "cannot use the model",
    }.items():
        with pytest.raises(UserError, match=sentence) as told:
            lddr.Trained.from_pretrained(name)
        assert "\n" not in str(told.value)
    assert not any("pytorch_model.bin" in line for line in hub.log)


def test_a_folder_without_weights_is_not_pushed(hub, tmp_path):
    Path("empty").mkdir()
    Path("empty/config.json").write_text("{}")
    with pytest.raises(UserError, match="there is no model"):
        main(["--debug", "push", "empty", "me/circles"])
