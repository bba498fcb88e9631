"""What needs no torch works where there is none: in an environment with the base dependencies and nothing else."""

import json
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import Distribution, distribution
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

from lddr.errors import OPTIONAL_PACKAGES, MissingExtraError, UserError, check_installed, suggesting_extras

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def closure(requirements: list[str]) -> dict[str, Distribution]:
    """The distributions that are installed with these, by name."""
    found, left = {}, [Requirement(line) for line in requirements]
    while left:
        wanted = left.pop()
        if wanted.name not in found:
            found[wanted.name] = distribution(wanted.name)
            asked = [Requirement(line) for line in found[wanted.name].requires or []]
            left += [each for each in asked if not each.marker or each.marker.evaluate({"extra": ""})]
    return found


def link(requirements: list[str], packages: Path) -> None:
    """Put what these bring into a folder, by links to what is installed here."""
    packages.mkdir(exist_ok=True)
    for package in closure(requirements).values():
        for top in {file.parts[0] for file in package.files or []} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(package.locate_file(top))))


@pytest.fixture(scope="module")
def base(tmp_path_factory) -> Path:
    """The Python of an environment that has what `pip install lddr` brings."""
    folder = tmp_path_factory.mktemp("base")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = folder.glob("lib/python*/site-packages")
    link(PROJECT["dependencies"], packages)
    (packages / "lddr.pth").write_text(str(ROOT / "src"))
    return folder / "bin" / "python"


SCRIPT = """
import sys
from importlib.util import find_spec
assert not any(map(find_spec, ["torch", "safetensors", "ray", "starlette", "tensorboard", "huggingface_hub"]))

import numpy as np
import lddr, lddr.metrics
from lddr.cli import main

main(["score", "codes.npz", "--metrics", "mig,dci,infomec,gap", "--dci", "fast", "--jobs", "1", "--out", "scores.json"])
main(["data", "list"])
main(["data", "show", "circles", "--out", "circles.png"])
main(["metrics"])
for name in ("circles", "dsprites", "color_dsprites", "noisy_dsprites", "rooms"):
    assert lddr.load_dataset(name).images(np.arange(3), np.random.default_rng(0)).shape[:3] == (3, 64, 64)

def centre(images):
    light = images[..., 0] / images.sum(axis=(1, 2, 3))[:, None, None]
    return np.stack([light.sum(1) @ np.arange(32.0), light.sum(2) @ np.arange(32.0)], axis=1)

found = lddr.evaluate(
    lddr.load_dataset("circles", 32), centre, ["mig", "factor_vae", "gap"], quiet=True, jobs=1,
    settings={"factor_vae": {"train_votes": 100, "test_votes": 50}},
)
assert found["mig"]["score"] > 0.6 and found["factor_vae"]["score"] == 1, found
assert "needs the model" in found["gap"]["reason"]
try:
    lddr.train
except ImportError as error:
    assert isinstance(error, lddr.UserError), error
    print(error, file=sys.stderr)
print("to the end")
"""


def test_scores_and_drawn_datasets_need_the_base_dependencies_only(base, tmp_path):
    factors = np.random.default_rng(0).integers([3, 4], size=(300, 2))
    np.savez(tmp_path / "codes.npz", codes=factors.astype(np.float32), factors=factors)
    run = subprocess.run(
        [base, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, env={"OMP_NUM_THREADS": "1"}
    )
    assert run.stdout.endswith("to the end\n"), run.stderr
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["mig"]["score"] > 0.95
    assert scores["dci"]["score"] == 1
    assert (tmp_path / "circles.png").exists()
    assert 'PyTorch is not installed; get it with: pip install "lddr[train]"' in run.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("train --dataset circles", "train"),
        ("sweep circles --preset quick", "cluster"),
        ("demo", "cluster"),
        ("explore .", "explore"),
        ("show circles-dvae", "train"),
        ("compare circles-dvae rooms-dvae", "train"),
        ("push circles-dvae me/model", "train"),
    ],
)
def test_what_is_missing_is_one_sentence_that_says_what_to_install(base, tmp_path, words, extra):
    run = subprocess.run([base, "-m", "lddr", *words.split()], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 2
    assert run.stderr.count("\n") == 1
    assert f'is not installed; get it with: pip install "lddr[{extra}]"' in run.stderr
    assert not list(tmp_path.iterdir())


def test_the_explorer_does_not_open_where_it_could_open_no_model(base, tmp_path):
    link(["starlette", "uvicorn"], tmp_path / "more")
    words = [base, "-m", "lddr", "explore", "--pretrained", "--port", "0", "--no-open-browser"]
    run = subprocess.run(words, env={"PYTHONPATH": str(tmp_path / "more")}, capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr == 'lddr: PyTorch is not installed; get it with: pip install "lddr[train]"\n'


@pytest.mark.parametrize("words", ["evaluate runs --metrics mig", "select runs --by udr"])
def test_run_folders_are_opened_with_torch_only(base, tmp_path, words):
    shutil.copytree(ROOT / "src" / "lddr" / "pretrained" / "circles-dvae", tmp_path / "runs" / "one")
    (tmp_path / "runs" / "one" / "scores.json").write_text('{"training": {"elbo": -1.0}}')
    run = subprocess.run([base, "-m", "lddr", *words.split()], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 2
    assert 'PyTorch is not installed; get it with: pip install "lddr[train]"' in run.stderr


def test_every_extra_brings_what_its_sentence_promises():
    offered = PROJECT["optional-dependencies"]
    for package, (_, extra) in OPTIONAL_PACKAGES.items():
        assert extra is None or package in {Requirement(line).name for line in offered[extra]}
    [everything] = map(Requirement, offered["all"])
    assert everything.extras == set(offered) - {"all", "dev"}
    assert "lddr[all]" in offered["dev"]
    assert not set(OPTIONAL_PACKAGES) & {Requirement(line).name for line in PROJECT["dependencies"]}


def test_only_known_parts_have_a_sentence():
    with pytest.raises(ModuleNotFoundError, match="nonsense"), suggesting_extras():
        raise ModuleNotFoundError("No module named 'nonsense'", name="nonsense")
    with pytest.raises(UserError, match="TensorBoard is not installed"), suggesting_extras():
        raise ModuleNotFoundError("No module named 'tensorboard'", name="tensorboard")
    check_installed("torch")


def test_a_missing_package_is_noticed_before_anything_begins(monkeypatch):
    monkeypatch.setattr("lddr.errors.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="PyTorch is not installed"):
        check_installed("torch")
