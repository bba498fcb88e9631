import json

import pytest
from PIL import Image

from lddr.cli import main
from lddr.data.dataset import datasets
from lddr.demo import sweep_circles
from lddr.hardware import Machine
from lddr.runs.evaluate import evaluate_run
from lddr.runs.run import run
from lddr.sweeps.cluster import Outcome

QUIET = Machine(device="cpu", threads=1, quiet=True)


def one_after_the_other(study, out):
    """A sweep in this process."""
    for config in study.configs:
        evaluate_run(run(config, out, QUIET), study.metrics, quiet=True)
    return Outcome(finished=len(study.configs))


@pytest.mark.parametrize("with_ray", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_demo_draws_trains_and_compares(with_ray, tmp_path, capsys, monkeypatch):
    if not with_ray:
        monkeypatch.setattr("lddr.demo.run_study", one_after_the_other)
    main(["demo", "--out", str(tmp_path / "demo"), "--steps", "3"])
    out = capsys.readouterr().out
    drawn = {name for name in datasets if not datasets[name].needs_files}
    summary = json.loads((tmp_path / "demo" / "summary.json").read_text())
    assert set(summary["datasets"]) == drawn
    assert summary["datasets"]["dsprites"]["images"] == 737_280
    assert set(summary["circles"]) == {"vae", "dvae"}
    assert [0 <= scores["mig"] <= 1 for scores in summary["circles"]["dvae"]] == [True, True]
    for name in (*drawn, "datasets", "circles-latent-spaces"):
        with Image.open(tmp_path / "demo" / f"{name}.png") as picture:
            assert picture.width > 640
    assert out.index("datasets.png") < out.index("training 2 VAEs and 2 D-VAEs") < out.index("D-VAE, seed 1, MIG")
    page = tmp_path / "demo" / "report" / "index.html"
    assert f"open {page}" in out
    assert "Median MIG" in page.read_text()
    runs = {file: file.stat().st_mtime_ns for file in (tmp_path / "demo" / "runs").rglob("model.safetensors")}
    assert len(runs) == 4
    sweep_circles(tmp_path / "demo" / "runs", steps=3)
    assert {file: file.stat().st_mtime_ns for file in runs} == runs  # the second time nothing is trained
