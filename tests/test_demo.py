import json

from PIL import Image

from lddr.cli import main
from lddr.data.dataset import datasets


def test_the_demo_writes_a_picture_of_every_drawn_dataset(tmp_path, capsys):
    main(["demo", "--out", str(tmp_path / "demo")])
    drawn = {name for name in datasets if datasets[name].origin == "drawn"}
    summary = json.loads((tmp_path / "demo" / "summary.json").read_text())
    assert set(summary) == drawn
    assert summary["sprites"]["images"] == 737_280
    for name in (*drawn, "datasets"):
        with Image.open(tmp_path / "demo" / f"{name}.png") as picture:
            assert picture.width > 640
    assert "datasets.png" in capsys.readouterr().out
