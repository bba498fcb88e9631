"""What is shipped: the wheel works on its own, and CI runs what the Makefile offers."""

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import yaml

import lddr

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Run a program of an environment that has the wheel, and behind it the packages of this one, without lddr."""
    folder = tmp_path_factory.mktemp("package")
    _run([sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)])
    (wheel,) = folder.glob("lddr-*.whl")
    _run([sys.executable, "-m", "venv", "--without-pip", str(folder / "environment")])
    python = folder / "environment" / "bin" / "python"
    _run(
        [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(python),
            "install",
            "--quiet",
            "--no-deps",
            "--no-index",
            str(wheel),
        ]
    )
    (packages,) = (folder / "environment" / "lib").glob("*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    (folder / "elsewhere").mkdir()

    def run(program, *words, code=0):
        return _run([str(python.with_name(program)), *words], cwd=folder / "elsewhere", code=code)

    return run


def _run(words, cwd=None, code=0):
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(words, cwd=cwd, env=surroundings, capture_output=True, text=True)
    if "No matching distribution found for hatchling" in run.stderr:
        pytest.skip("a wheel is built with hatchling, which could not be fetched")
    assert run.returncode == code, run.stderr
    return run


@pytest.mark.xdist_group("package")
@pytest.mark.skipif(os.name == "nt", reason="environments look otherwise there")
class TestTheWheel:
    def test_it_is_the_wheel_that_is_used(self, installed):
        place = installed("python", "-c", "import lddr; print(lddr.__file__)").stdout
        assert "environment" in place
        assert str(ROOT) not in place

    def test_it_tells_its_version(self, installed):
        assert installed("lddr", "--version").stdout == f"lddr {lddr.__version__}\n"

    def test_it_finds_its_parts(self, installed):
        assert "num_bins 20" in installed("lddr", "metrics").stdout

    def test_it_has_the_studies(self, installed):
        refused = installed("lddr", "sweep", "circels", "--dry-run", code=2).stderr
        assert "did you mean 'circles'" in refused
        code = "import lddr.studies as shipped, os; print(*os.listdir(next(iter(shipped.__path__))))"
        assert set(installed("python", "-c", code).stdout.split()) == {path.name for path in ROOT.glob("studies/*")}

    def test_it_has_the_reproduction_of_the_paper(self, installed):
        code = "from lddr_paper.published import paper_results; print(paper_results()['paper'])"
        assert "Discrete" in installed("python", "-c", code).stdout

    def test_it_has_the_trained_models(self, installed):
        assert "rooms-dvae" in installed("lddr", "models", "--pretrained").stdout


def test_ci_runs_what_the_makefile_offers():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "test.yml").read_text())["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    commands = [step["run"].split() for step in steps if "run" in step]
    assert all(words[0] == "make" and words[1] in targets for words in commands)
    assert {"test", "wheel", "docs"} <= {words[1] for words in commands}
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]) for step in steps if "uses" in step)


def test_the_version_is_the_same_everywhere():
    assert re.fullmatch(r"\d+\.\d+\.\d+", lddr.__version__)
    assert f"\nversion: {lddr.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"\n## {lddr.__version__} " in (ROOT / "CHANGELOG.md").read_text()


def test_the_paper_is_cited():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    paper = cited["preferred-citation"]
    assert paper["title"] == "Learning Disentangled Discrete Representations"
    assert [author["family-names"] for author in paper["authors"]] == ["Friede", "Reimers", "Stuckenschmidt", "Niepert"]
