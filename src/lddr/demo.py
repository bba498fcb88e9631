"""`lddr demo`: every dataset that is drawn here, as pictures and a summary."""

import json
from pathlib import Path

from rich.console import Console
from rich.progress import track

from lddr.data.dataset import Dataset, datasets
from lddr.data.sheet import factor_sheet, overview
from lddr.files import written_whole


def run_demo(out: Path) -> None:
    """Write one picture per drawn dataset, one of all of them, and summary.json into the folder `out`."""
    chosen = [datasets[name]() for name in datasets if datasets[name].origin == "drawn"]
    for dataset in track(chosen, "drawing", console=Console(stderr=True), transient=True):
        with written_whole(out / f"{dataset.name}.png") as draft:
            factor_sheet(dataset).save(draft)
    with written_whole(out / "datasets.png") as draft:
        overview(chosen).save(draft)
    with written_whole(out / "summary.json") as draft:
        draft.write_text(json.dumps({dataset.name: summary(dataset) for dataset in chosen}, indent=1) + "\n")
    for dataset in chosen:
        print(repr(dataset))
    print(f"written: {out}/datasets.png, a picture of each dataset beside it, and {out}/summary.json")


def summary(dataset: Dataset) -> dict[str, object]:
    """What a dataset holds, in numbers and names."""
    factors = {factor.name: factor.size for factor in dataset.space.factors}
    return {"images": len(dataset), "shape": list(dataset.image_shape), "factors": factors, "about": dataset.summary}
