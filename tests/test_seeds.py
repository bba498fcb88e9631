"""From pictures without labels to one model: several seeds on a real Ray, one of them chosen, and the reasons."""

import json
import os
import shutil
import signal
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from statistics import median

import numpy as np
import pytest
from PIL import Image

import lddr
from lddr import seeds
from lddr.cli import main
from lddr.config import configure
from lddr.data.dataset import stream
from lddr.data.in_memory import ArrayDataset
from lddr.errors import UserError
from lddr.hardware import Machine
from lddr.metrics.unsupervised import udr
from lddr.runs.loop import Stopped
from lddr.runs.run import run
from lddr.selection.ranking import SAMPLES
from lddr.sweeps import cluster

pytestmark = [  # Ray opens files and processes that it leaves to the end of the process
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning"),
]

QUIET = Machine("cpu", 1, quiet=True)
SMALL = {"resolution": 16, "width": 4, "steps": 100, "batch_size": 32, "num_latents": 3, "learning_rate": 0.005}
FLAGS = [word for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", str(value))]


def squares(count=200, side=16, size=5):
    """A dark square somewhere on a light background."""
    images = np.full((count, side, side, 3), 250, np.uint8)
    for image, (x, y) in zip(images, np.random.default_rng(0).integers(0, side - size + 1, (count, 2)), strict=True):
        image[y : y + size, x : x + size] = 40
    return images


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder to work in with pictures, a cache of its own, and a Ray that is started once."""
    folder = tmp_path_factory.mktemp("seeds")
    (folder / "pictures").mkdir()
    for number, image in enumerate(squares()):
        Image.fromarray(image).save(folder / "pictures" / f"{number:03}.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        patch.setenv("COLUMNS", "120")
        patch.chdir(folder)
        with cluster.connected(cluster.SweepOptions()):
            yield folder


def trained_by_command(*words):
    """The exit code, and what was printed and said."""
    printed, said, code = StringIO(), StringIO(), 0
    with redirect_stdout(printed), redirect_stderr(said):
        try:
            main(["train", *words, "--preset", "quick", *FLAGS])
        except SystemExit as end:
            code = end.code
    return code, printed.getvalue(), said.getvalue()


@pytest.fixture(scope="module")
def three(here):
    """Three seeds of a D-VAE on the pictures: where they are, and what the command printed and said."""
    code, printed, said = trained_by_command("pictures", "--seeds", "3", "--seed", "4", "--out", "runs")
    assert code == 0, said
    return here / "runs", printed, said


@pytest.fixture
def copy(three, tmp_path):
    """The three finished seeds, to be changed."""
    return shutil.copytree(three[0], tmp_path / "runs")


def no_training(monkeypatch):
    monkeypatch.setattr(cluster, "connected", lambda *_: pytest.fail("something was trained"))


def seed_of(folder):
    return json.loads((folder / "config.json").read_text())["settings"]["training"]["seed"]


def change_scores(folder, **values):
    content = json.loads((folder / "scores.json").read_text())
    content["training"] |= values
    (folder / "scores.json").write_text(json.dumps(content))


def test_the_seed_is_chosen_whose_codes_the_others_agree_with_most(three):
    out, printed, said = three
    folders = sorted(out.glob("pictures_dvae_seed=*"))
    assert [seed_of(folder) for folder in folders] == [4, 5, 6]
    images = lddr.load_dataset("pictures", 16).draw(stream(0, "selection"), SAMPLES)
    codes = [lddr.Trained.load(folder).represent(images).astype(float) for folder in folders]
    values = udr(codes).scores
    best = folders[int(np.argmax(values))]
    assert printed == f"runs/{best.name}\n"
    rows = [line.split() for line in said.splitlines()]
    for folder, value in zip(folders, values, strict=True):
        (row,) = [row for row in rows if row[:2] == [str(seed_of(folder)), f"{value:.3f}"]]
        assert (row[-1] == "chosen") == (folder == best)
    assert f"udr of the seeds: {min(values):.3f} to {max(values):.3f}, median {median(values):.3f}" in said
    assert f"seed {seed_of(best)} was chosen without labels: it has the highest udr, {max(values):.3f}" in said


def test_the_latents_of_the_chosen_seed_are_shown(three):
    out, printed, said = three
    chosen = out / printed.strip().removeprefix("runs/")
    assert f"open runs/{chosen.name}/card/index.html" in said
    assert (chosen / "card" / "figures" / "traversals.png").stat().st_size > 0
    assert len(list(out.glob("*/card"))) == 1


def test_finished_seeds_are_not_trained_again_and_quiet_prints_the_folder_alone(three, monkeypatch):
    no_training(monkeypatch)
    _, printed, _ = three
    again = trained_by_command("pictures", "--seeds", "3", "--seed", "4", "--out", "runs", "--quiet")
    assert again == (0, printed, "")


def test_another_seed_joins_those_there_are_and_an_interrupted_one_resumes(copy):
    config = configure("dvae", "pictures", "quick", seed=7, **SMALL)
    stop = Machine("cpu", 1, quiet=True, on_log=lambda *_: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(Stopped):
        run(config, copy, stop)
    log = copy / config.run_name / "log.jsonl"
    log.write_text(log.read_text().replace('{"step": ', '{"mark": 1, "step": ', 1))  # a new training has a new log
    weights = {path: path.stat().st_mtime_ns for path in copy.glob("*/model.safetensors")}
    code, _, said = trained_by_command("pictures", "--seeds", "4", "--seed", "4", "--out", str(copy))
    assert code == 0, said
    assert "4/4 runs" in said
    assert '"mark": 1' in log.read_text()
    assert (log.parent / "model.safetensors").exists()
    assert {path: path.stat().st_mtime_ns for path in weights} == weights


@pytest.mark.parametrize(
    ("collapsed", "sentence"),
    [
        (1, "only 2 seeds were compared, which says little"),
        (2, "only 1 of 3 seeds has learned anything: there is nothing to compare it with"),
    ],
)
def test_collapsed_seeds_are_left_out_and_few_are_said_to_say_little(three, copy, monkeypatch, collapsed, sentence):
    no_training(monkeypatch)
    before = three[1].strip().removeprefix("runs/")
    others = [path for path in sorted(copy.glob("pictures*")) if path.name != before]
    for folder in [copy / before, *others][:collapsed]:
        change_scores(folder, explained=0.0)
    code, printed, said = trained_by_command("pictures", "--seeds", "3", "--seed", "4", "--out", str(copy))
    assert code == 0, said
    assert printed.strip() in map(str, others[collapsed - 1 :])
    assert sentence in said
    assert [line.split()[-1] for line in said.splitlines()].count("collapsed") == collapsed


def test_nothing_is_chosen_where_all_seeds_have_collapsed(copy, monkeypatch):
    no_training(monkeypatch)
    for folder in copy.glob("pictures*"):
        change_scores(folder, explained=-0.1)
    code, printed, said = trained_by_command("pictures", "--seeds", "3", "--seed", "4", "--out", str(copy), "--quiet")
    assert (code, printed) == (1, "")
    assert said.startswith("lddr: all 3 finished seeds have learned nothing: ")
    assert "try more --steps" in said


def test_a_seed_that_fails_is_said_and_the_others_are_chosen_from(copy, monkeypatch):
    failed = sorted(copy.glob("pictures*"))[0]
    (failed / "model.safetensors").unlink()
    outcome = cluster.Outcome(there=2, failures=[cluster.Failure(failed, "ValueError: odd")])
    monkeypatch.setattr(cluster, "run_study", lambda *_: outcome)
    code, printed, said = trained_by_command("pictures", "--seeds", "3", "--seed", "4", "--out", str(copy), "--quiet")
    assert code == 0
    assert printed.strip() in map(str, sorted(copy.glob("pictures*"))[1:])
    assert said == f"lddr: a seed failed: {failed}: ValueError: odd\n"


def test_a_stopped_training_says_how_to_resume(here, tmp_path, monkeypatch):
    monkeypatch.setattr(cluster, "run_study", lambda *_: cluster.Outcome(stopped=True))
    code, printed, said = trained_by_command("pictures", "--seeds", "3", "--out", str(tmp_path))
    assert (code, printed) == (130, "")
    assert said == f"lddr: stopped, the seeds so far are saved in {tmp_path}; start it again to resume\n"
    with pytest.raises(Stopped, match="nothing kept; with out=FOLDER"):
        lddr.train("pictures", preset="quick", seeds=2, machine=QUIET, **SMALL)


def weights_of(model):
    return {name: tensor.numpy() for name, tensor in model.vae.state_dict().items()}


def assert_same(model, other):
    ours, theirs = weights_of(model), weights_of(other)
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_an_array_in_memory_is_trained_on_all_cores_and_again_from_what_is_there(here, tmp_path, monkeypatch, capsys):
    images = squares()
    settings = {"preset": "quick", **SMALL}
    chosen = lddr.train(images, seeds=2, out=tmp_path, machine=Machine("cpu", 1), **settings)
    said = capsys.readouterr().err
    assert "sweep 2 seeds of dvae  100%" in said
    assert "2/2 runs" in said
    assert f"seed {chosen.config.training.seed} was chosen without labels" in said
    assert (chosen.folder / "card" / "figures" / "traversals.png").exists()  # from images that no name leads to
    alone = lddr.train(images, seed=chosen.config.training.seed, machine=QUIET, **settings)
    assert_same(chosen, alone)
    no_training(monkeypatch)
    assert_same(lddr.train(images, seeds=2, out=tmp_path, machine=QUIET, **settings), chosen)
    assert capsys.readouterr().err == ""


@pytest.mark.long
def test_a_dataset_of_mapped_files_is_sent_to_the_workers(three, tmp_path):
    pictures = lddr.load_dataset("pictures", 16)
    chosen = lddr.train(pictures, preset="quick", seeds=2, seed=4, out=tmp_path, machine=QUIET, **SMALL)
    by_name = next(three[0].glob(f"*seed={chosen.config.training.seed}_*"))
    assert_same(chosen, lddr.Trained.load(by_name))


class Unsendable(ArrayDataset):
    def __reduce__(self):
        raise TypeError("it holds an open file")


def test_images_that_cannot_be_sent_to_workers_are_a_sentence(here, tmp_path):
    with pytest.raises(UserError, match=r"cannot be sent to other processes .*give them as an array or a folder"):
        lddr.train(Unsendable(squares()), preset="quick", seeds=2, out=tmp_path, machine=QUIET, **SMALL)


def test_without_ray_they_are_trained_one_after_the_other_with_the_same_result(three, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(seeds, "find_spec", lambda name: None)
    settings = {"preset": "quick", "seed": 4, **SMALL}
    chosen = lddr.train("pictures", seeds=3, machine=Machine("cpu", 1), **settings)  # and nothing is kept
    said = capsys.readouterr().err
    assert "the seeds are trained one after the other: Ray" in said
    assert 'pip install "lddr[cluster]"' in said
    assert "card" not in said
    assert_same(chosen, lddr.Trained.load(three[0] / three[1].strip().removeprefix("runs/")))


@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_an_impossible_number_of_seeds_is_a_sentence(count, tmp_path):
    with pytest.raises(UserError, match="the number of seeds must be a whole number from 1 on"):
        lddr.train(squares(20), preset="quick", seeds=count, out=tmp_path / "runs", **SMALL)
    assert not (tmp_path / "runs").exists()


def test_one_seed_is_a_training_as_ever(here, tmp_path):
    code, _, said = trained_by_command("pictures", "--seeds", "1", "--out", str(tmp_path), "--steps", "2")
    assert (code, len(list(tmp_path.iterdir()))) == (0, 1), said
    assert "chosen" not in said


def test_what_no_seed_can_be_trained_with_is_one_sentence(here, tmp_path):
    words = ["--seeds", "2", "--supervision", "masked", "--labels", "10", "--out", str(tmp_path), "--quiet"]
    code, printed, said = trained_by_command("pictures", *words)
    assert (code, printed) == (2, "")
    assert said.startswith("lddr: no seed could be trained: ")
    assert "factors" in said


def test_the_images_may_stand_anywhere_among_the_words_but_once(here, tmp_path):
    code, printed, _ = trained_by_command("--out", str(tmp_path), "pictures", "--steps", "2", "--model", "vae")
    assert code == 0
    assert "pictures_vae" in printed
    code, _, said = trained_by_command("pictures", "--dataset", "circles")
    assert code == 2
    assert "give the images once, as pictures or as --dataset circles" in said
