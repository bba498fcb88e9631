"""Commands over run folders that hold nonsense: the run is left out or shown as broken, or there is one sentence."""

import json
import os
import re
import shutil

import pytest

from lddr.cli import main
from lddr.config import configure
from lddr.report.exhibits import Exhibits
from lddr.runs.evaluate import evaluate_run
from lddr.runs.run import Machine, run
from lddr.trained import Trained

NAN, HUGE = float("nan"), 10**400
pytestmark = pytest.mark.xdist_group("poisoned")  # in one process: what they spoil is trained once
QUIET = Machine(device="cpu", threads=1, quiet=True)
SMALL = {"resolution": 16, "width": 4, "steps": 400, "batch_size": 16, "num_categories": 4, "learning_rate": 3e-3}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A D-VAE with scores; no test may change it."""
    folder = run(configure("dvae", "circles", "quick", **SMALL), tmp_path_factory.mktemp("trained"), QUIET)
    evaluate_run(folder, ["mig", "gap"], settings={"gap": {"batches": 5}}, quiet=True)
    return folder


def written(file, change):
    """A poison that changes a file of JSON."""

    def poison(folder):
        content = json.loads((folder / file).read_text())
        change(content)
        (folder / file).write_text(json.dumps(content))

    return poison


def setting(name, value):
    return written("config.json", lambda content: content["settings"].update({name: value}))


def fact(name, value):
    return written("config.json", lambda content: content.update({name: value}))


def of_images(name, value):
    return written("config.json", lambda content: content["dataset"].update({name: value}))


def score(**values):
    return written("scores.json", lambda content: content["metrics"]["mig"].update(values))


def logged(*lines):
    return lambda folder: (folder / "log.jsonl").write_text("".join(f"{line}\n" for line in lines))


def instead(file, become):
    def poison(folder):
        (folder / file).unlink()
        become(folder / file)

    return poison


def without_numbers(folder):
    model = Trained.load(folder)
    for weights in model.vae.parameters():
        weights.data.fill_(NAN)
    model.save(folder)


GOOD = '{"step": 9, "loss": 1, "elbo": 1, "kl": 1, "reconstruction": 1}'
POISONS = {
    "a number as dataset": setting("dataset", NAN),
    "a list as dataset": setting("dataset", [1, [2]]),
    "an unknown dataset": setting("dataset", "[/bold]$x_{"),
    "a dataset of 5000 letters": setting("dataset", "x" * 5000),
    "half a letter as model": setting("model", "\ud800"),
    "an object as objective": setting("objective", {"name": "elbo", "a": {"b": 1}}),
    "a huge resolution": setting("resolution", HUGE),
    "no training": setting("training", {}),
    "no settings": fact("settings", []),
    "a format of the future": fact("format", "x"),
    "a list as versions": fact("versions", [1]),
    "other images": of_images("checksum", [NAN]),
    "a shape that is none": of_images("shape", 5),
    "factors that are none": of_images("factors", [["x"]]),
    "a word as score": score(score="x"),
    "NaN as score": score(score=NAN),
    "a huge score": score(score=HUGE),
    "a list as reason": score(score=None, reason=[1]),
    "a list of what was left out": score(factors_left_out=[1]),
    "a list as a metric's settings": score(settings=[1]),
    "a matrix of words": score(mutual_information=[["x"]]),
    "no metrics": written("scores.json", lambda content: content.update(metrics=[1])),
    "a log of other things": logged('{"step": 3, "loss": "x", "elbo": {}, "kl": null, "\\ud800": [1]}', GOOD),
    "a log beyond all numbers": logged('{"step": 1' + "0" * 400 + ', "elbo": 1e308, "kl": -1e308}', GOOD),
    "a log with a deep line": logged("[" * 9999, GOOD),
    "deep settings": lambda folder: (folder / "config.json").write_text('{"a":' * 9999),
    "bytes as scores": lambda folder: (folder / "scores.json").write_bytes(bytes(range(256))),
    "a pipe as model": instead("model.safetensors", os.mkfifo),
    "a folder as scores": instead("scores.json", os.mkdir),
    "a device as log": instead("log.jsonl", lambda path: path.symlink_to("/dev/zero")),
    "a link to itself as scores": instead("scores.json", lambda path: path.symlink_to(path.name)),
    "a model without numbers": without_numbers,
    "no letters in its name": lambda folder: folder.rename(os.fsdecode(os.fsencode(folder.parent) + b"/ill-\xff")),
}


@pytest.fixture
def runs(trained, tmp_path):
    """Two healthy runs and one to be poisoned."""
    for name in ("healthy", "other", "ill"):
        shutil.copytree(trained, tmp_path / "runs" / name)
    written("config.json", lambda content: content["settings"]["training"].update(seed=1))(tmp_path / "runs" / "other")
    return tmp_path / "runs"


def answer(capsys, *words):
    """What a command said: it ended well, or with one sentence."""
    capsys.readouterr()
    try:
        main([str(word) for word in words])
        return "".join(capsys.readouterr())
    except SystemExit as end:
        code = end.code
    *before, said = capsys.readouterr().err.splitlines()
    assert not [line for line in before if line.startswith("lddr: ")]
    assert (code, said[:6], len(said) < 8000) == (2, "lddr: ", True)
    return said


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS.keys())
def test_lists_scores_and_choices_of_a_poisoned_run(runs, poison, capsys, monkeypatch):
    monkeypatch.setattr("lddr.report.pages.write_card", lambda run, out: ("page.html", {}))  # pages are drawn below
    poison(runs / "ill")
    ill = next(path for path in runs.iterdir() if path.name.startswith("ill"))
    for words in (["ls"], ["ls", "--json"], ["ls", "--csv"]):
        assert "healthy" in answer(capsys, "runs", *words, runs)
    assert "open page.html" in answer(capsys, "show", ill)
    answer(capsys, "runs", "diff", ill, runs / "healthy")
    assert re.search("runs ranked|cannot be ranked together", answer(capsys, "select", runs))
    assert "kept in scores.json" in answer(capsys, "evaluate", runs, "--metrics", "mig")
    answer(capsys, "evaluate", ill, "--metrics", "mig", "--force")
    for path in (ill, ill / "scores.json", ill / "model.safetensors"):
        assert answer(capsys, "score", path).startswith("lddr: ")


def truncated(folder):
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize("poison", [truncated, of_images("checksum", "0"), POISONS["an unknown dataset"]])
def test_one_run_that_cannot_be_scored_does_not_hold_up_the_others(runs, poison, capsys):
    poison(runs / "ill")
    words = ["evaluate", str(runs), "--metrics", "mig", "--set", "mig.num_bins=7", "--jobs", "1"]
    with pytest.raises(SystemExit) as stopped:
        main(words)
    said = capsys.readouterr()
    assert stopped.value.code == 1
    assert "lddr: 1 of 3 runs could not be scored, for the reasons above" in said.err
    assert len([line for line in said.err.splitlines() if line.startswith("lddr: ")]) == 2
    assert "kept in scores.json" in said.out
    kept = {name: json.loads((runs / name / "scores.json").read_text()) for name in ("healthy", "other", "ill")}
    bins = {name: scores["metrics"]["mig"]["settings"]["num_bins"] for name, scores in kept.items()}
    assert bins == {"healthy": 7, "other": 7, "ill": 20}
    assert answer(capsys, "evaluate", runs / "ill", *words[2:]).startswith("lddr: ")  # alone it is an error


@pytest.mark.parametrize(
    "words", [["--device", "warp"], ["--jobs", "0"], ["--bins", "1"], ["--bootstrap", "3"], ["--seed", "-1"]]
)
def test_a_mistake_in_the_options_is_said_once(runs, words, capsys):
    answer(capsys, "evaluate", runs, "--metrics", "mig", "--force", *words)


def test_a_report_of_many_poisoned_runs_is_written(runs, capsys):
    for number, poison in enumerate(POISONS.values()):
        shutil.copytree(runs / "healthy", runs / "many" / str(number))
        poison(runs / "many" / str(number))
    assert "open " in answer(capsys, "report", runs, "--out", runs / "report")
    assert "broken" in (runs / "report/index.html").read_text()


DRAWN = {  # what takes longest to test is tested with several poisons at once
    "odd words": ("a list as versions", "a log of other things", "a matrix of words", "a huge score"),
    "no numbers": ("a model without numbers", "a log beyond all numbers", "no letters in its name"),
    "no files": ("a pipe as model", "a device as log", "a number as dataset"),
}


@pytest.mark.parametrize("names", DRAWN.values(), ids=DRAWN.keys())
def test_pages_of_a_poisoned_run(runs, names, capsys):
    for name in names:
        POISONS[name](runs / "ill")
    ill = next(path for path in runs.iterdir() if path.name.startswith("ill"))
    said = answer(capsys, "show", ill, "--out", runs / "card")
    assert said.startswith("lddr: ") != (runs / "card" / "index.html").exists()  # a sentence, or a page


def test_a_comparison_with_a_poisoned_run(runs, capsys, monkeypatch):
    for name in DRAWN["odd words"]:
        POISONS[name](runs / "ill")
    monkeypatch.setattr(
        "lddr.report.pages.card_figures", Exhibits("figure", homes=())
    )  # those of each run are drawn above
    assert "open " in answer(capsys, "compare", runs / "ill", runs / "healthy", "--out", runs / "compare")
    assert "not comparable" not in (runs / "compare" / "index.html").read_text()
