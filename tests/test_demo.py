import json

from PIL import Image

from lddr.cli import main
from lddr.data.dataset import datasets
from lddr.demo import sweep_circles


def test_the_demo_draws_trains_and_compares(tmp_path, capsys):
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
