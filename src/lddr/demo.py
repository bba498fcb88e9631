"""`lddr demo`: the datasets drawn here as pictures, then a VAE and a D-VAE on circles and their latent spaces."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from lddr.data.dataset import Dataset, datasets
from lddr.data.sheet import factor_sheet, overview
from lddr.files import write_json, written_whole

MODELS = {"vae": "VAE", "dvae": "D-VAE"}
SEED = 1
GRID = np.arange(0, 40, 3)  # which of the 40 values of x and y make the grid of the picture


def run_demo(out: Path, steps: int | None = None) -> None:
    """Write the pictures and summary.json into the folder `out`, the runs into its folder runs."""
    chosen = draw_datasets(out)
    scores = train_circles(out, steps)
    summary = {"datasets": {dataset.name: about(dataset) for dataset in chosen}, "circles": scores}
    write_json(out / "summary.json", summary)
    print(
        f"written: {out}/datasets.png, {out}/circles-latent-spaces.png, a picture of each dataset, {out}/summary.json"
    )


def draw_datasets(out: Path) -> list[Dataset]:
    """One picture per drawn dataset and one of all of them."""
    chosen = [datasets[name]() for name in datasets if datasets[name].origin == "drawn"]
    for dataset in track(chosen, "drawing", console=Console(stderr=True), transient=True):
        with written_whole(out / f"{dataset.name}.png") as draft:
            factor_sheet(dataset).save(draft)
    with written_whole(out / "datasets.png") as draft:
        overview(chosen).save(draft)
    for dataset in chosen:
        print(repr(dataset))
    return chosen


def train_circles(out: Path, steps: int | None) -> dict[str, dict[str, float]]:
    """Train both models with the quick preset, measure them, and draw where each puts a grid of circles."""
    from lddr.config import configure
    from lddr.data.load import load_dataset
    from lddr.metrics.mig import mig
    from lddr.report.circles import latent_spaces
    from lddr.run import Machine, run
    from lddr.trained import Trained

    x, y = np.meshgrid(GRID, GRID, indexing="ij")
    spaces: dict[str, NDArray] = {"x and y": np.stack([x, y], axis=-1)}
    scores = {}
    for model, title in MODELS.items():
        config = configure(model, "circles", "quick", steps=steps, seed=SEED)
        dataset = load_dataset("circles", config.resolution)
        print(f"training a {title} on circles: {config.training.steps} steps", flush=True)
        folder = run(config, out / "runs", Machine(device="cpu", threads=1))
        codes = Trained.load(folder).represent(dataset.images(np.arange(len(dataset))))
        score = mig(codes, dataset.space.factors_of(np.arange(len(dataset)))).score
        print(f"{title}: MIG {score:.2f}, in {folder}")
        spaces[f"{title}, MIG {score:.2f}"] = codes.reshape(40, 40, 2)[x, y]
        scores[model] = {"mig": score} | json.loads((folder / "scores.json").read_text())["training"]
    with written_whole(out / "circles-latent-spaces.png") as draft:
        latent_spaces(spaces, "The same grid of circles in three spaces").savefig(draft, dpi=150)
    return scores


def about(dataset: Dataset) -> dict[str, object]:
    """What a dataset holds, in numbers and names."""
    factors = {factor.name: factor.size for factor in dataset.space.factors}
    return {"images": len(dataset), "shape": list(dataset.image_shape), "factors": factors, "about": dataset.summary}
