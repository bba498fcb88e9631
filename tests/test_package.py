"""What is shipped: the wheel works on its own, and CI runs what the Makefile offers."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import lddr

ROOT = Path(__file__).parents[1]


TRIED = """
import contextlib, io, json, os
import lddr, lddr.studies
from lddr.cli import main
from lddr_paper.published import paper_results

def printed(*words):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(out):
        with contextlib.suppress(SystemExit):
            main(list(words))
    return out.getvalue()

print(json.dumps({
    "place": lddr.__file__,
    "version": printed("--version"),
    "metrics": printed("metrics"),
    "sweep": printed("sweep", "circels", "--dry-run"),
    "studies": os.listdir(next(iter(lddr.studies.__path__))),
    "paper": paper_results()["paper"],
    "pretrained": printed("models", "--pretrained"),
}))
"""


@pytest.mark.xdist_group("package")
def test_the_wheel_has_everything(tmp_path):
    """It is unpacked before the installed package, and has to find all of its files there."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    built = subprocess.run(build, capture_output=True, text=True)
    if "No matching distribution found for hatchling" in built.stderr:
        pytest.skip("a wheel is built with hatchling, which could not be fetched")
    (wheel,) = tmp_path.glob("lddr-*.whl")
    place = tmp_path / "unpacked"
    shutil.unpack_archive(wheel, place, "zip")
    surroundings = os.environ | {"PYTHONPATH": str(place), "COLUMNS": "200"}
    run = subprocess.run([sys.executable, "-c", TRIED], cwd=tmp_path, env=surroundings, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert found["place"].startswith(str(place))
    assert found["version"] == f"lddr {lddr.__version__}\n"
    assert "num_bins 20" in found["metrics"]
    assert "did you mean 'circles'" in found["sweep"]
    assert set(found["studies"]) == {path.name for path in ROOT.glob("studies/*")}
    assert "Discrete" in found["paper"]
    assert "rooms-dvae" in found["pretrained"]
    (entry,) = place.glob("*.dist-info/entry_points.txt")
    assert "lddr = lddr.cli:main" in entry.read_text()


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
