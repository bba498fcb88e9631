import importlib.util
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest
import yaml

import lddr
from lddr.cli import main
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.explorer.runs import Catalogue
from lddr.hardware import Machine
from lddr.metrics.elbo import bounds
from lddr.runs.evaluate import evaluate_run
from lddr.runs.folder import PRETRAINED, RunFolder, pretrained_names
from lddr.runs.index import find_run, list_runs
from lddr.runs.tables import shown

ROOT = Path(__file__).parents[2]
NAMES = ("circles-dvae", "clothes-dvae", "dsprites-tc-dvae", "rooms-dvae")
WITH_SAMPLES = ("clothes-dvae",)  # their images do not come with lddr
FILES = {"README.md", "traversals.png", "config.json", "log.jsonl", "model.safetensors", "scores.json"}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """In an empty folder; whatever is done there, the package stays as it is."""
    monkeypatch.chdir(tmp_path)
    before = _stamps()
    yield
    assert _stamps() == before


def _stamps():
    return {path: path.stat().st_mtime_ns for path in PRETRAINED.rglob("*")}


def test_those_are_shipped():
    assert tuple(pretrained_names()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_model_is_what_its_card_says(name):
    model, run = lddr.Trained.load(name), RunFolder(PRETRAINED / name)
    assert {file.name for file in run.path.iterdir()} == FILES | ({"samples.png"} if name in WITH_SAMPLES else set())
    assert run.is_finished
    assert run.config == model.config
    images = model.samples[:4] if name in WITH_SAMPLES else run.dataset.images(np.arange(4))
    codes = model.represent(images)
    assert codes.shape == (4, model.num_latents)
    assert model.decode(codes).shape == images.shape
    front, text = (run.path / "README.md").read_text().removeprefix("---\n").split("---\n", 1)
    metrics = {each["type"]: each["value"] for each in yaml.safe_load(front)["model-index"][0]["results"][0]["metrics"]}
    assert metrics["mig"] == run.metrics["mig"]["score"]
    assert run.about in text
    assert f"| ELBO | {shown(run.scores['training']['elbo'])} |" in text
    assert "lddr train --model" in text


@pytest.mark.parametrize(
    "name",
    [NAMES[0], *(pytest.param(name, marks=pytest.mark.long) for name in NAMES[1:] if name not in WITH_SAMPLES)],
)
def test_a_shipped_model_has_the_scores_of_its_card(name):
    model, run = lddr.Trained.load(name), RunFolder(PRETRAINED / name)
    found = lddr.evaluate(run.dataset, model, ["mig"], jobs=1, quiet=True)["mig"]["score"]
    assert found == pytest.approx(run.metrics["mig"]["score"], abs=2e-3)
    bound = bounds(model.vae, model.config.training.steps, run.dataset)
    for score in ("elbo", "elbo_noiseless"):
        assert run.scores["training"][score] == pytest.approx(bound[score], abs=0.02)


def test_no_place_of_a_machine_is_in_the_files():
    for path in PRETRAINED.rglob("*"):
        if path.is_file() and path.suffix != ".png":
            assert not re.search(rb"[\s\"'(=]/\w|[A-Z]:\\|file:", path.read_bytes()[:60_000].split(b"\0", 1)[0]), path


def test_they_go_into_the_wheel():
    """Which has all of src/lddr but what git ignores."""
    assert 'packages = ["src/lddr", ' in (ROOT / "pyproject.toml").read_text()
    assert PRETRAINED == ROOT / "src" / "lddr" / "pretrained"
    files = [str(path) for path in PRETRAINED.glob("*/*")]
    assert len(files) == len(NAMES) * len(FILES) + len(WITH_SAMPLES)
    ignored = subprocess.run(["git", "check-ignore", *files], cwd=ROOT, capture_output=True, text=True)
    assert ignored.stdout == ""
    assert sum(Path(file).stat().st_size for file in files) < 2_000_000


def test_they_are_listed_with_their_scores(capsys):
    main(["models", "--pretrained"])
    printed = capsys.readouterr().out
    for run in list_runs(PRETRAINED):
        assert run.name in printed
        assert f"mig {run.scores['mig']:.4g}" in printed


def test_a_shipped_model_is_shown_without_a_folder_of_runs(capsys):
    main(["show", "circles-dvae"])
    page = Path("card", "circles-dvae", "index.html").read_text()
    assert "lddr show circles-dvae" in page
    assert "--out runs" in page
    assert "lddr evaluate runs/circles_dvae_seed=0_" in page
    assert str(PRETRAINED) not in page
    assert "finished" in capsys.readouterr().out


def test_a_shipped_model_without_its_dataset_is_shown_with_its_samples(capsys):
    main(["show", "clothes-dvae"])
    assert "missing: Traversals" not in capsys.readouterr().out
    for name in ("traversals.png", "traversals.gif", "reconstructions.png"):
        assert Path("card", "clothes-dvae", "figures", name).exists()
    model = lddr.Trained.load("clothes-dvae")
    assert (model.samples.shape, model.samples.dtype) == ((16, 32, 32, 1), np.uint8)
    assert "MIT licence" in (model.folder / "README.md").read_text()
    with pytest.raises(UserError, match="was shared without the images that it was trained on; if you have them"):
        _ = RunFolder(model.folder).dataset
    assert len(lddr.Trained.load("circles-dvae").samples) == 0


def test_the_explorer_lists_them_and_leaves_no_index():
    assert [row["name"] for row in Catalogue(PRETRAINED).table()["runs"]] == list(NAMES)
    assert [row["name"] for row in Catalogue(PRETRAINED / "rooms-dvae").table()["runs"]] == ["rooms-dvae"]


@pytest.mark.parametrize(
    "open_it",
    [
        lddr.Trained.load,
        lddr.Trained.from_pretrained,
        lambda name: find_run(name, Path("runs")),
        lambda name: main(["--debug", "explore", name]),
    ],
)
def test_a_misspelt_name_gets_the_nearest(open_it):
    with pytest.raises(UserError, match="did you mean 'rooms-dvae'"):
        open_it("rooms-dvea")


def test_what_is_nowhere_is_a_sentence_that_names_those_that_ship():
    for open_it in (lambda name: find_run(name, Path("runs")), lddr.Trained.load):
        with pytest.raises(UserError, match=r"there is no .*nonsense.* lddr models --pretrained"):
            open_it("nonsense")
    with pytest.raises(UserError, match="needs a folder, a model that ships with lddr, or OWNER/NAME"):
        lddr.Trained.from_pretrained("")
    main(["evaluate", "circles-dvae", "--metrics", "mig"])  # it has that
    with pytest.raises(UserError, match="ships with lddr and stays as it is; copy that folder"):
        main(["--debug", "evaluate", "circles-dvae", "--metrics", "mig", "--force"])


def test_a_folder_and_all_models_are_not_asked_for_at_once():
    with pytest.raises(UserError, match="not both"):
        main(["--debug", "explore", "runs", "--pretrained"])


def test_a_folder_that_is_there_and_a_run_of_ones_own_win(tmp_path):
    lddr.Trained.load("circles-dvae").save("rooms-dvae")
    assert lddr.Trained.load("rooms-dvae").config.dataset == "circles"
    Path("runs/circles-dvae").mkdir(parents=True)
    Path("runs/circles-dvae/config.json").write_text("{}")
    assert find_run("circles-dvae", Path("runs")).folder == Path("runs/circles-dvae")
    Path("circles-dvae").mkdir()
    with pytest.raises(UserError, match=r"there is no model circles-dvae/model\.safetensors"):
        lddr.Trained.load("circles-dvae")


def test_nothing_is_written_into_the_package():
    folder = PRETRAINED / "circles-dvae"
    with pytest.raises(UserError, match="ships with lddr and stays as it is"):
        evaluate_run(folder, ["mig"], settings={"mig": {"num_bins": 10}}, force=True, quiet=True)
    with pytest.raises(UserError, match="ships with lddr and stays as it is"):
        RunFolder(folder).alone()
    assert "mig" in evaluate_run(folder, ["mig"], quiet=True)["metrics"]  # which is there


@pytest.fixture
def tool(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("ship_pretrained", ROOT / "tools" / "pretrained.py")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(tool, "PRETRAINED", tmp_path / "shipped")
    return tool


def test_the_tool_ships_samples_of_images_that_others_do_not_have(tool, tmp_path):
    images = np.random.default_rng(0).integers(256, size=(20, 16, 16), dtype=np.uint8)
    np.savez("own.npz", images=images, factors=np.arange(20)[:, None] % 2, factor_names=np.array(["half"]))
    model = lddr.train("own.npz", "dvae", "quick", tmp_path, Machine("cpu", 1, quiet=True), width=4, steps=5)
    folder = tool.ship(model.folder, "own", "It shows noise.", "mig", samples=3)
    assert {file.name for file in folder.iterdir()} == FILES | {"samples.png"}
    assert "mig" in RunFolder(folder).metrics
    assert len(lddr.Trained.load(folder).samples) == 3


def test_the_tool_ships_a_run(tool, tmp_path):
    machine = Machine("cpu", 1, quiet=True)
    model = lddr.train("circles", "dvae", "quick", tmp_path, machine, resolution=16, width=4, steps=5)
    folder = tool.ship(model.folder, "tiny", "It shows little.", "mig")
    assert {file.name for file in folder.iterdir()} == FILES
    images = load_dataset("circles", 16).images(np.arange(0, 1600, 100))
    shipped = lddr.Trained.load(folder)
    assert np.allclose(shipped.represent(images), model.represent(images), atol=0.01)
    assert RunFolder(folder).about == "It shows little."
    assert RunFolder(folder).log == RunFolder(model.folder).log
