"""Every code block of README and docs: Python is run, commands are read by the real parser and run, in small; what
cannot be tried here is named with the reason.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import lddr
from lddr.cli import main
from tests.docs.blocks import ROOT, blocks, inline_commands, pages
from tests.docs.commands import check, check_in_sentence

KINDS = ("python", "sh", "toml", "bibtex", "text")  # the last two are not tried
DRAWINGS = {"docs/architecture.md": 1, "CONTRIBUTING.md": 0}  # blocks that are pictures made of letters
# how a command begins that is not tried, and why
ELSEWHERE = {
    "pip install": "installs from the network",
    ". .venv/bin/activate": "is for the reader's own shell",
    ".venv/bin/pre-commit install": "changes the repository's hooks",
    "hf auth login": "needs an account",
    "export LDDR_DATA": "is for the reader's own shell",
    "head=$(scontrol": "needs Slurm",
    "echo eval": "is for the reader's own shell",
    "python docs/gallery/draw.py": "needs dozens of trained runs",
    "python -m benchmarks": "measures for minutes; tests/benchmarks has each in small",
    "ray start": "needs several machines",
    "ray stop": "would stop what others run",
    "srun ray": "needs Slurm; the command after -- is read all the same",
}
# how a Python block begins that is only compiled, and why
UNTRIED = {"model.push_to_hub(": "needs an account; tests/test_sharing.py pushes to a hub of its own"}
# how a command of ours begins that is only read by the parser, and why; all others are run, trainings in two steps
READ = {
    "lddr bench": "measures for minutes; tests/benchmarks has each in small",
    "lddr demo": "takes minutes; tests/test_demo.py has it in small",
    "lddr evaluate runs --metrics all": "takes minutes",
    "lddr evaluate runs --metrics mig,dci,gap": "takes minutes",
    "lddr evaluate runs --metrics unsupervised,gap": "takes a minute",
    "lddr explore": "serves until it is stopped; tests/explorer visits it",
    "lddr data download dsprites smallnorb": "downloads gigabytes",
    "lddr report runs/paper": "needs the runs of a study",
    "lddr push": "needs an account; tests/test_sharing.py pushes to a hub of its own",
    "lddr sweep": "trains many runs; tests/sweeps has it in small",
    "lddr train my-pictures --seeds 5": "trains five models; tests/test_seeds.py has it in small",
    "lddr train --dataset circles --preset quick --track wandb": "needs an account; tests/training has it offline",
    "lddr train --device cuda": "needs a GPU",
    "lddr evaluate runs --device cuda": "needs a GPU",
}
EVEN_SO = ("--dry-run",)  # with which it is run all the same
ONCE = ("lddr evaluate runs", "lddr show rooms-dvae")  # of ten seconds: on the first page that shows it
FROM_NOTHING = ("README.md", "docs/index.md", "docs/own-images.md")  # pages whose reader has no runs yet
PARTS = "docs/adding-a-part.md"  # all of it is run, with its parts
WITH_PYTHON = [page for page in pages() if page != PARTS and any(block.kind == "python" for block in blocks(page))]


def test_there_are_only_blocks_of_which_the_tests_know_what_to_do():
    for page in pages():
        others = [block.kind for block in blocks(page) if block.kind not in KINDS]
        assert others == [""] * DRAWINGS.get(page, 0), f"{page}: say in {__file__} what is to be done with {others}"


@pytest.mark.parametrize("page", pages())
def test_every_command_is_one(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for words in [words for block in blocks(page) if block.kind == "sh" for words in block.commands]:
        if words[0] == "make":
            assert words[1] in targets, words
        elif words[0] == "lddr":
            _holds(check, words)
        elif words[0] in plug_ins(page):
            assert words[1] == "lddr", words
        elif page != PARTS:
            assert any(" ".join(words).startswith(start) for start in ELSEWHERE), f"{page}: {shlex.join(words)}"
            if "--" in words:
                _holds(check, words[words.index("--") + 1 :])


@pytest.mark.parametrize("page", [page for page in pages() if page != "CHANGELOG.md"])  # which names what there was
def test_every_command_in_a_sentence_is_one(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    for words in inline_commands(page):
        if words[1] != "--version":
            _holds(check_in_sentence, words)


def plug_ins(page):
    """How a command begins that uses a file the page shows."""
    return {f"LDDR_PLUGINS={block.title.removesuffix('.py')}" for block in blocks(page) if block.title.endswith(".py")}


def _holds(check, words):
    try:
        check(words)
    except (lddr.UserError, SystemExit, KeyError) as error:
        pytest.fail(f"{shlex.join(words)}: {error}")


def is_run(words):
    command = " ".join(words)
    return words[0] == "lddr" and (not command.startswith(tuple(READ)) or any(word in words for word in EVEN_SO))


def own_commands():
    """Page → the commands of ours that are run for it."""
    found: dict[str, list[str]] = {}
    for page in pages():
        shown = [words for block in blocks(page) if block.kind == "sh" for words in block.commands]
        commands = [shlex.join(words) for words in shown if page != PARTS and is_run(words)]
        known = {command for others in found.values() for command in others}
        found[page] = [command for command in commands if command not in ONCE or command not in known]
    return {page: commands for page, commands in found.items() if commands}


def test_what_is_named_here_is_in_the_docs():
    everything = "\n".join(" ".join(words) for page in pages() for block in blocks(page) for words in block.commands)
    assert all(start in everything for start in (*ELSEWHERE, *READ))
    shown = [block.text for page in pages() for block in blocks(page)]
    assert all(any(text.startswith(start) for text in shown) for start in UNTRIED)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the folder of a VAE and two D-VAEs of two steps, with scores."""
    folder = tmp_path_factory.mktemp("docs") / "runs"
    settings = {"preset": "quick", "steps": 2, "resolution": 16, "machine": lddr.Machine(quiet=True, threads=1)}
    for model, seed in (("dvae", 0), ("dvae", 1), ("vae", 0)):
        lddr.train("circles", model, seed=seed, out=folder, **settings)
    main(["evaluate", str(folder), "--metrics", "mig,gap", "--set", "gap.batches=4"])
    return folder


@pytest.fixture
def in_small(monkeypatch, tmp_path, runs):
    """A folder with runs in it, in which trainings take two steps, images are small and evaluations have one metric."""
    from lddr import config
    from lddr.data.load import load_dataset
    from lddr.metrics.evaluate import evaluate

    def small_config(*names, **settings):
        return config_of(*names, **settings | {"steps": 2})

    config_of = config.configure
    for module in ("lddr.config", "lddr.trained", "lddr.cli.train"):
        monkeypatch.setattr(f"{module}.configure", small_config)
    small = {"rooms": ("rooms", 32), "dsprites": ("circles", 16)}

    def small_dataset(name, *size, **more):
        return load_dataset(*small[name]) if name in small else load_dataset(name, *size, **more)

    monkeypatch.setattr(lddr, "load_dataset", small_dataset)
    monkeypatch.setattr("lddr.runs.index.is_collapsed", lambda scores: False)  # what two steps cannot avoid
    few = {"settings": {"mig": {"samples": 300}}, "quiet": True}

    def small_evaluation(dataset, codes, *_, factors=None, **more):
        return evaluate(dataset, codes, ["mig"], factors=factors, **few)

    monkeypatch.setattr(lddr, "evaluate", small_evaluation)
    shutil.copytree(runs, tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    np.savez("codes.npz", codes=generator.normal(size=(300, 3)), factors=generator.integers(0, 3, (300, 2)))
    Path("my-pictures").mkdir()
    for number in range(20):
        Image.fromarray(generator.integers(0, 256, (32, 32, 3), np.uint8)).save(f"my-pictures/{number}.png")
    return tmp_path


def stand_ins(runs):
    """What blocks take for granted: images, a function that encodes them, codes and factors, a model."""
    generator = np.random.default_rng(0)
    codes, factors = generator.normal(size=(300, 2)), generator.integers(0, 3, (300, 2))
    return {
        "lddr": lddr,
        "images": lddr.load_dataset("circles", 32).images(np.arange(40)),
        "represent": lambda images: images.reshape(len(images), -1)[:, ::97][:, :5],
        "codes": codes,
        "factors": factors,
        "codes_train": codes[:200],
        "factors_train": factors[:200],
        "codes_test": codes[200:],
        "factors_test": factors[200:],
        "dataset": lddr.load_dataset("circles", 16),
        "model": lddr.Trained.load(next(runs.glob("circles_dvae*"))),
    }


@pytest.mark.filterwarnings("ignore:.*LeafSpec.*is deprecated:FutureWarning")  # of Lightning
@pytest.mark.xdist_group("blocks")
@pytest.mark.parametrize("page", sorted({*WITH_PYTHON, *own_commands()}))
def test_what_a_page_shows_works(page, in_small, capsys, monkeypatch):
    monkeypatch.syspath_prepend(in_small)
    names, commands = stand_ins(in_small / "runs"), own_commands().get(page, ())
    if page in FROM_NOTHING:
        shutil.rmtree(in_small / "runs")
    for block in blocks(page):
        if block.title:
            Path(block.title).write_text(block.text)
        elif block.kind == "python":
            code = compile(block.text, f"{page} ({block.text.splitlines()[0]} …)", "exec")
            if not block.text.startswith(tuple(UNTRIED)):
                exec(code, names)
        for words in block.commands if block.kind == "sh" else ():
            if shlex.join(words) in commands:
                main(["--debug", *words[1:]])
            elif words[0] in plug_ins(page):
                _run_with_plug_in(words)


def _run_with_plug_in(words):
    """In a process of its own, which knows the part."""
    name, _, value = words[0].partition("=")
    small = words[2:] + (["--steps", "2", "--quiet"] if words[2] == "train" else [])
    path = os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")]))
    code = f"from lddr.cli import main\nmain({['--debug', *small]})"
    command = [sys.executable, "-W", "ignore", "-c", code]
    run = subprocess.run(command, env=os.environ | {name: value, "PYTHONPATH": path}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


@pytest.mark.xdist_group("blocks")
def test_parts_of_ones_own_work_as_shown(in_small):
    """The files are written, and every command of the page is run with all of them known."""
    shown = blocks(PARTS)
    for block in shown:
        if block.kind == "python":
            (in_small / block.title).write_text(block.text)
    words = [words[1:] for block in shown if block.kind == "sh" for words in block.commands]
    assert len(words) == 6
    assert all(each[0] == "lddr" for each in words)
    small = [each[1:] + (["--steps", "2", "--quiet"] if each[1] == "train" else []) for each in words]
    code = "import sys\nfrom lddr.cli import main\n" + "\n".join(f"main({each})" for each in small)
    known = {"LDDR_PLUGINS": "my_metric,my_objective,my_dataset", "COLUMNS": "200"}
    path = os.pathsep.join(filter(None, [str(in_small), os.environ.get("PYTHONPATH")]))
    words = [sys.executable, "-W", "ignore", "-c", code]
    run = subprocess.run(words, env=os.environ | known | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("alignment") >= 2
    assert "even" in run.stdout
    assert "bars.png" in run.stdout


def test_the_study_that_is_shown_is_one(tmp_path):
    from lddr.sweeps.study import read_study

    (shown,) = [block for page in pages() for block in blocks(page) if block.kind == "toml"]
    (tmp_path / "study.toml").write_text(shown.text)
    assert {scale: len(read_study(tmp_path / "study.toml", scale).configs) for scale in ("full", "quick")} == {
        "full": 2 * 10 * (4 + 2 * 2),
        "quick": 2 * (4 + 2),
    }


def test_the_sentences_of_the_questions_are_the_programs():
    source = " ".join(path.read_text() for path in (ROOT / "src" / "lddr").rglob("*.py"))
    joined = re.sub(r'"\s*(?:#[^\n]*)?\s+f?"', "", source)  # sentences over several lines, with comments
    quoted = re.findall(r"^> (.+)$", pages()["docs/faq.md"], re.MULTILINE)
    assert len(quoted) > 15
    for sentence in quoted:
        for part in filter(None, (part.strip() for part in sentence.split("…"))):
            assert part in joined, sentence
