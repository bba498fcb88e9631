"""The stranger's test: parts in one file of their own go through the real commands, and no other file knows them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import requests

pytestmark = pytest.mark.xdist_group("stranger")  # in one process: the commands are run once
HERE = Path(__file__).parent
SMALL = ["--dataset", "stripes", "--num-latents", "3", "--num-stairs", "4", "--width", "4", "--steps", "100"]
SMALL += ["--mean-bias", "--learning-rate", "0.01"]  # so that something is learned in so few
NETWORKS = ["--encoder", "flat", "--decoder", "flat", "--likelihood", "cosh", "--sharpness-of-pixels", "40"]


@pytest.fixture(scope="module")
def lddr(tmp_path_factory):
    """Run a command in a folder of its own, with the stranger's parts on the path; gives what it printed."""
    folder = tmp_path_factory.mktemp("stranger")
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    surroundings = os.environ | {"LDDR_PLUGINS": "parts", "PYTHONPATH": path, "COLUMNS": "200"}

    def command(*words, **options):
        options = {"capture_output": True, "text": True, "cwd": folder, "env": surroundings} | options
        run = subprocess.run([sys.executable, "-m", "lddr", *words], **options)
        assert run.returncode == 0, run.stderr
        return run.stdout

    command.folder, command.env = folder, surroundings
    return command


@pytest.fixture(scope="module")
def runs(lddr):
    """Two trained and scored runs."""
    point = ["--latent", "stairs", "--objective", "guess", "--critic-weight", "2"]
    trained = [lddr("train", *point, *SMALL, *NETWORKS, "--seed", str(seed), "--threads", "1") for seed in (0, 1)]
    lddr("evaluate", "runs", "--metrics", "spread,mig,gap", "--set", "gap.batches=2")
    return [lddr.folder / text.strip() for text in trained]


def test_settings_and_names_come_from_the_parts(lddr, runs):
    config = json.loads((runs[0] / "config.json").read_text())["settings"]
    assert config["model"] == "stairs+guess"
    assert config["latent"] == {"name": "stairs", "num_latents": 3, "num_stairs": 4}
    assert config["objective"] == {"name": "guess", "critic_weight": 2.0}
    assert config["likelihood"] == {"name": "cosh", "sharpness_of_pixels": 40.0}
    assert (config["networks"]["encoder"], config["networks"]["decoder"]) == ("flat", "flat")
    assert runs[0].name.startswith("stripes_stairs+guess_critic_weight=2_seed=0_")
    assert "--num-stairs" in lddr("train", "--latent", "stairs", "--objective", "guess", "--help")
    assert "staircase latents" in lddr("models")
    assert "stripes" in lddr("data", "list")
    assert "How far the codes lie apart" in lddr("metrics")


def test_the_critic_and_the_height_were_trained_and_kept(runs):
    from safetensors.torch import load_file

    assert (runs[0] / "discriminator.safetensors").exists()
    assert load_file(runs[0] / "model.safetensors")["vae.latent.height"].item() != 1.0


def test_scores_and_the_gap_are_there(runs):
    metrics = json.loads((runs[0] / "scores.json").read_text())["metrics"]
    assert metrics["spread"]["score"] > 0
    assert metrics["spread"]["settings"]["samples"] == 100
    assert metrics["gap"]["score"] > 0  # it is discrete, and says so itself


def test_the_list_knows_the_family(lddr, runs):
    table = json.loads(lddr("runs", "ls", "runs", "--json", "--where", "latent=stairs"))
    assert {row["objective"] for row in table} == {"guess"}
    assert len(table) == 2


def test_the_selector_chooses(lddr, runs):
    assert any(run.name.rsplit("_", 1)[-1] in lddr("select", "runs", "--by", "widest") for run in runs)


def test_the_report_draws_the_figure_and_the_card_the_model(lddr, runs):
    lddr("report", "runs", "--out", "report")
    page = (lddr.folder / "report" / "index.html").read_text()
    assert "A line through the spreads." in page
    assert "--critic-weight" in page  # the exact command
    assert "--likelihood cosh" in page
    assert "--encoder flat" in page
    lddr("show", str(runs[0]), "--out", "card")
    assert list((lddr.folder / "card").rglob("*.html"))


def test_a_study_takes_the_point(lddr):
    study = 'name = "x"\n[[blocks]]\nlatent = "stairs"\nobjective = "guess"\ndataset = "stripes"\nnum_stairs = [4, 5]\n'
    (lddr.folder / "study.toml").write_text(study)
    assert "x: 2 runs" in lddr("sweep", "study.toml", "--dry-run")


def test_the_explorer_turns_its_latents(lddr, runs):
    words = [sys.executable, "-m", "lddr", "explore", "runs", "--port", "0", "--no-open-browser"]
    with subprocess.Popen(
        words, cwd=lddr.folder, env=lddr.env, stderr=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        try:
            address = next(found[0] for line in server.stdout if (found := re.findall(r"http://\S+", line.decode())))
            address = address.rstrip("/")
            (token, *_) = [run["token"] for run in requests.get(f"{address}/api/runs", timeout=60).json()["runs"]]
            model = requests.get(f"{address}/api/runs/{token}/model", timeout=60).json()
            assert len(model["latents"]) == 3
            assert all(len(latent["values"]) == 4 for latent in model["latents"])
        finally:
            server.terminate()
