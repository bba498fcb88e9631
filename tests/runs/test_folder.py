import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import lddr
from lddr.cli import main
from lddr.config import configure
from lddr.data.dataset import identity
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset, one_name
from lddr.errors import UserError
from lddr.files import write_json
from lddr.metrics.evaluate import Options, is_scored
from lddr.metrics.metric import metrics
from lddr.runs.evaluate import evaluate_run
from lddr.runs.folder import FORMAT, PRETRAINED, RunFolder
from lddr.runs.index import list_runs, read_run
from lddr.runs.run import Machine, run
from lddr.selection.selector import Candidates, selectors
from lddr.trained import Trained

pytestmark = pytest.mark.usefixtures("short_evaluation")
QUIET = Machine(device="cpu", threads=1, quiet=True)
FORMAT_1 = Path(__file__).parent / "format1"  # written by lddr before config.json had a format
DVAE, FACTOR = sorted(FORMAT_1.glob("circles_*"))


@pytest.fixture
def old(tmp_path):
    """A copy of them, to be changed."""
    return shutil.copytree(FORMAT_1, tmp_path / "old")


def test_settings_scores_and_log_of_the_first_format_are_read():
    folder = RunFolder(DVAE)
    assert "format" not in folder.facts
    small = {"resolution": 16, "width": 8, "num_latents": 2, "steps": 200, "learning_rate": 3e-4}
    assert folder.config == configure("dvae", "circles", "paper", **small)
    assert folder.state == "finished"
    assert folder.scores["training"]["elbo_noiseless"] == pytest.approx(-56.0355, abs=1e-3)
    assert "elbo" not in folder.scores["training"]  # that of samples was not measured then
    assert folder.metrics["mig"]["score"] == pytest.approx(0.0136, abs=1e-4)
    assert [record["step"] for record in folder.log] == [100, 200]
    assert folder.last_step == 200
    assert folder.images["factors"] == {"x": 40, "y": 40}


def test_models_of_the_first_format_open_with_their_discriminator():
    model = Trained.load(FACTOR)
    assert model.decode([[1, 2]]).shape == (1, 16, 16, 1)
    assert sum(weights.numel() for weights in model.objective().discriminator.parameters()) > 0


SHIPPED_THEN = [PRETRAINED / name for name in ("circles-dvae", "dsprites-tc-dvae", "rooms-dvae")]


@pytest.mark.parametrize("folder", [DVAE, FACTOR, *SHIPPED_THEN], ids=lambda folder: folder.name)
def test_models_that_call_their_latent_a_family_open_and_are_saved_under_its_new_name(folder, tmp_path):
    stored = load_file(folder / "model.safetensors")
    assert {"vae.family.positions", "vae.family.active"} <= stored.keys()
    model = Trained.load(folder)
    assert torch.equal(model.vae.latent.positions, stored["vae.family.positions"])
    assert torch.equal(model.vae.latent.active, stored["vae.family.active"])
    model.save(tmp_path)
    renamed = {name.replace("vae.family.", "vae.latent."): tensor for name, tensor in stored.items()}
    again = load_file(tmp_path / "model.safetensors")
    assert again.keys() == renamed.keys()
    assert all(torch.equal(tensor, renamed[name]) for name, tensor in again.items())


def test_runs_of_the_first_format_are_listed_and_scored(old):
    runs = list_runs(old)
    assert [(found.state, found.value("latent")) for found in runs] == [("finished", "categorical")] * 2
    scores = evaluate_run(old / FACTOR.name, ["mig"], settings={"mig": {"num_bins": 7}}, quiet=True)
    assert scores["metrics"]["mig"]["settings"]["num_bins"] == 7


def test_a_run_says_which_format_it_has(tmp_path):
    folder = run(configure("vae", "circles", "quick", resolution=16, width=4, steps=1), tmp_path, QUIET)
    assert RunFolder(folder).facts["format"] == FORMAT == 2


def test_a_format_of_the_future_is_refused(old):
    path = old / DVAE.name / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": FORMAT + 1}))
    with pytest.raises(UserError, match=r"config\.json has format 3, this lddr knows 1 to 2; update lddr"):
        _ = RunFolder(path.parent).config
    assert "has format 3" in read_run(path.parent).reason


@pytest.mark.parametrize("name", ["log.jsonl", "model.safetensors"])
def test_a_run_that_lacks_a_file_is_not_finished(old, name, monkeypatch):
    config = RunFolder(DVAE).config
    folder = (old / DVAE.name).rename(old / config.run_name)
    list_runs(old)  # the index knows it as finished
    (folder / name).unlink()
    assert RunFolder(folder).state == "broken"
    (lacking,) = [found for found in list_runs(old) if found.folder == folder]
    assert (lacking.state, lacking.reason) == ("broken", f"{name} is missing; train it again")
    if name == "model.safetensors":
        monkeypatch.setattr("lddr.runs.run.train", lambda *given: None)  # 200 steps
        assert run(config, old, QUIET) == folder
        assert RunFolder(folder).state == "finished"


def test_states_follow_the_files(old):
    folder = RunFolder(old / DVAE.name)
    folder.scores_file.unlink()
    assert folder.state == "training"
    folder.config_file.unlink()
    assert folder.state == "broken"
    with pytest.raises(UserError, match=r"is no run: it has no config\.json"):
        _ = folder.facts
    with pytest.raises(UserError, match=r"is no finished run: it has no scores\.json"):
        _ = folder.scores


def test_pipe_with_the_small_judge_of_older_versions_is_not_shown_as_todays(old):
    folder = RunFolder(old / DVAE.name)
    before = {"score": 0.886, "accuracy": 0.557, "settings": {"train": 50_000, "apart": "uniform", "draw_seed": 0}}
    folder.write_scores({"elbo": -30.0})
    write_json(folder.scores_file, folder.scores | {"metrics": {"mig": {"score": 0.5}, "pipe": before}})
    assert list(folder.metrics) == ["mig", "pipe_small_judge"]
    assert not any(is_scored(entry, metrics["pipe"]) for entry in (None, before))
    (shown,) = [found for found in list_runs(old) if found.folder == folder.path]
    assert (shown.number("pipe"), shown.number("pipe_small_judge")) == (None, 0.886)
    (chosen,) = selectors["pipe"].measure(Candidates([shown], lambda run: ""))
    assert chosen == "has no pipe; get it with: lddr evaluate RUN --metrics pipe"
    settings = Options().settings_of(metrics["pipe"])
    folder.add_scores({"pipe": {"score": 0.418, "settings": settings}})
    assert {name: entry["score"] for name, entry in folder.metrics.items()} == {
        "mig": 0.5,
        "pipe_small_judge": 0.886,
        "pipe": 0.418,
    }
    assert is_scored(folder.metrics["pipe"], metrics["pipe"])


def test_the_last_step_is_that_of_the_last_whole_line(tmp_path):
    folder = RunFolder(tmp_path)
    assert (folder.last_step, folder.saved_step, folder.log) == (0, None, [])
    folder.log_file.write_text('{"step": 100}\n{"step": 200}\n{"step": 3')
    folder.checkpoints.mkdir()
    for name in ("000000120", "000000180", "strange"):
        (folder.checkpoints / f"{name}.safetensors").touch()
    assert (folder.last_step, folder.saved_step) == (200, 180)


def test_images_that_changed_are_refused_before_a_run_is_scored_or_continued(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 255, (20, 16, 16), np.uint8)
    np.savez(tmp_path / "own.npz", images=pictures)
    config = configure("vae", str(tmp_path / "own.npz"), "quick", width=4, steps=1)
    folder = run(config, tmp_path, QUIET)
    assert RunFolder(folder).images == identity(RunFolder(folder).dataset) | {"path": str(tmp_path / "own.npz")}
    np.savez(tmp_path / "own.npz", images=pictures[::-1])
    changed = RunFolder(folder)
    from lddr.runs import folder as module

    module._loaded.cache_clear()
    with pytest.raises(UserError, match=r"are no longer those .* was trained on; put them back"):
        _ = changed.dataset
    changed.scores_file.unlink()
    with pytest.raises(UserError, match="are no longer those"):
        run(config, tmp_path, QUIET)


@pytest.mark.parametrize(("kept", "is_refused"), [({}, False), ({"content": "0"}, True), ({"checksum": "0"}, True)])
def test_what_a_run_knows_of_its_images_is_compared(tmp_path, kept, is_refused):
    pictures = np.random.default_rng(0).integers(0, 255, (20, 16, 16), np.uint8)
    np.savez(tmp_path / "own.npz", images=pictures)
    config = configure("vae", str(tmp_path / "own.npz"), "quick", width=4, steps=1)
    folder = RunFolder(tmp_path / "run")
    dataset = load_dataset(config.dataset)
    known = identity(dataset)
    assert set(known) > {"checksum", "content"}
    older = {name: value for name, value in known.items() if name not in ("content", "origin")}  # had only a checksum
    folder.write_config(config, {}, older | kept)
    with pytest.raises(UserError, match="are no longer those") if is_refused else nullcontext():
        folder.check(dataset)


def test_runs_of_versions_with_another_default_size_find_the_images_they_saw(tmp_path, monkeypatch):
    """Pictures of 96x96 became 64x64 when no resolution was given, which the settings do not say."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    place = tmp_path / "pictures"
    place.mkdir()
    for number in range(3):
        Image.fromarray(np.full((96, 96), 50 * number, np.uint8)).save(place / f"{number}.png")
    config = configure("vae", str(place), width=4, steps=2)
    assert config.resolution is None
    folder = RunFolder(run(config, tmp_path / "runs", QUIET, load_dataset(str(place), 64)))
    assert folder.dataset.image_shape == (64, 64, 1)
    assert load_dataset(str(place)).image_shape == (96, 96, 1)


def test_the_dataset_is_loaded_once_for_all_runs_on_it():
    assert RunFolder(DVAE).dataset is RunFolder(FACTOR).dataset


def test_entries_that_are_no_scores_are_left_out_and_scored_anew(old):
    folder = RunFolder(next(old.glob("circles_*")))
    scores = json.loads(folder.scores_file.read_text())
    for nonsense in ("x", [1], {"score": "x"}, {"score": 10**400}, {"score": 1, "settings": []}, {"reason": [1]}):
        folder.scores_file.write_text(json.dumps(scores | {"metrics": {"mig": nonsense, "sap": {"score": 0.5}}}))
        assert folder.metrics == {"sap": {"score": 0.5}}
        assert folder.add_scores({"mig": {"score": 1}})["metrics"] == {"sap": {"score": 0.5}, "mig": {"score": 1}}


def test_names_of_checkpoints_that_are_no_numbers_are_passed_over(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    for name in ("²", "000000020", "x"):
        (tmp_path / "checkpoint" / f"{name}.safetensors").touch()
    assert RunFolder(tmp_path).saved_step == 20


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """A folder of pictures, in the folder that is the current one."""
    home = tmp_path / "home"
    (home / "pics").mkdir(parents=True)
    for number in range(20):
        Image.new("L", (16, 16), 10 * number).save(home / "pics" / f"{number:02}.png")
    monkeypatch.chdir(home)
    return home


def trained(capsys, dataset):
    """The run folder that `lddr train` prints."""
    words = ["--preset", "quick", "--width", "4", "--steps", "1", "--resolution", "16", "--threads", "1", "--quiet"]
    main(["train", "--model", "vae", "--dataset", dataset, "--out", "runs", *words])
    return Path(capsys.readouterr().out.strip())


def test_a_path_is_one_run_however_it_is_written(at_home, capsys):
    expected = trained(capsys, "pics").name
    for dataset in ("./pics", "pics/", "pics/.", "./runs/../pics"):
        assert trained(capsys, dataset) == Path("runs") / expected


def test_a_path_that_leads_elsewhere_when_it_is_tidied_stays_as_it_is(at_home, tmp_path):
    (tmp_path / "far" / "deep").mkdir(parents=True)
    (at_home / "link").symlink_to(tmp_path / "far" / "deep")
    (at_home / "circles").mkdir()
    for name in (
        "link/../pics",
        "./circles",
        "nowhere/../pics",
        "circles",
        "dsprites",
        "unknown",
        "./unknown",
        "~/pics/",
    ):
        assert one_name(name) == name
    (tmp_path / "far" / "pics").mkdir()
    assert one_name("link/../pics") == "link/../pics"  # not the pics that are here
    assert one_name("./link/") == "link"


def test_a_run_on_a_relative_path_is_scored_from_elsewhere(at_home, tmp_path, monkeypatch, capsys):
    folder = trained(capsys, "pics").absolute()
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "pics").mkdir(parents=True)  # other images, by the same name
    Image.new("L", (16, 16)).save(elsewhere / "pics" / "0.png")
    monkeypatch.chdir(elsewhere)
    main(["evaluate", str(folder), "--metrics", "unsupervised", "--set", "unsupervised.samples=20", "--jobs", "1"])
    assert RunFolder(folder).metrics["unsupervised"]["score"] is not None
    assert RunFolder(folder).dataset.path == str(at_home / "pics")


def test_a_folder_that_moved_is_found_by_its_relative_path(at_home, tmp_path, monkeypatch, capsys):
    folder = trained(capsys, "pics")
    monkeypatch.chdir(at_home.rename(tmp_path / "moved"))
    assert len(RunFolder(folder).dataset) == 20
    (tmp_path / "moved" / "pics").rename(tmp_path / "lost")
    with pytest.raises(UserError, match=r"was trained on are not at .*home/pics; put them back$"):
        _ = RunFolder(folder).dataset


def test_a_run_from_before_paths_were_kept_is_opened_where_it_was_trained(at_home, tmp_path, monkeypatch, capsys):
    folder = trained(capsys, "pics").absolute()
    facts = json.loads((folder / "config.json").read_text())
    assert facts["dataset"].pop("path") == str(at_home / "pics")
    (folder / "config.json").write_text(json.dumps(facts))
    assert len(RunFolder(folder).dataset) == 20
    assert trained(capsys, "pics").absolute() == folder
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        UserError, match=r"are not at pics; start lddr in the folder from which this path leads to them"
    ):
        _ = RunFolder(folder).dataset


def test_images_that_were_loaded_in_python_are_found_by_the_command_line(at_home, tmp_path, monkeypatch):
    pictures = lddr.load_dataset("pics", 16)
    model = lddr.train(pictures, "vae", "quick", tmp_path / "runs", QUIET, width=4, steps=1)
    monkeypatch.chdir(tmp_path)
    assert RunFolder(model.folder).dataset.path == str(at_home / "pics")


def test_a_run_on_an_array_says_what_can_be_done(tmp_path, capsys):
    images = np.random.default_rng(0).integers(0, 255, (20, 16, 16), np.uint8)
    model = lddr.train(images, "vae", "quick", tmp_path, QUIET, width=4, steps=1)
    with pytest.raises(SystemExit) as stopped:
        main(["evaluate", str(tmp_path), "--metrics", "unsupervised"])
    assert stopped.value.code == 2
    said = capsys.readouterr().err.splitlines()[-1]
    call = f"lddr.evaluate(dataset, lddr.Trained.load({str(model.folder)!r}))"
    assert "was trained on an array in Python, which is in no file" in said
    assert said.endswith(f"score it there with {call}, or save the images as .npz and train on that")
    entries = lddr.evaluate(ArrayDataset(images), lddr.Trained.load(model.folder), "unsupervised", quiet=True)
    assert "score" in entries["unsupervised"]


def test_a_path_from_ones_home_is_found(at_home, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("HOME", str(at_home))
    folder = trained(capsys, "~/pics").absolute()
    facts = json.loads((folder / "config.json").read_text())
    assert facts["dataset"].pop("path") == str(at_home / "pics")
    (folder / "config.json").write_text(json.dumps(facts))  # as older versions did
    monkeypatch.chdir(tmp_path)
    assert len(RunFolder(folder).dataset) == 20
