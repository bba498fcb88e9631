"""`lddr demo`: the datasets drawn here as pictures, a few VAEs and D-VAEs on circles, and their report."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from lddr.config import configure
from lddr.data.dataset import Dataset, datasets
from lddr.data.load import load_dataset
from lddr.data.sheet import factor_sheet, overview
from lddr.errors import UserError
from lddr.files import write_json, written_whole
from lddr.report.circles import latent_spaces
from lddr.report.commands import make_report
from lddr.runs.index import read_run
from lddr.sweeps.cluster import sweep
from lddr.sweeps.study import Study
from lddr.trained import Trained

MODELS = {"vae": "VAE", "dvae": "D-VAE"}
SEEDS = (1, 2)
METRICS = ("mig", "modularity", "gap")
GRID = np.arange(0, 40, 3)  # which of the 40 values of x and y make the grid of the picture


def run_demo(out: Path, steps: int | None = None) -> None:
    """Write the pictures and summary.json into the folder `out`, runs and report into folders of it."""
    chosen = draw_datasets(out)
    study = sweep_circles(out / "runs", steps)
    scores = draw_spaces(study, out)
    summary = {"datasets": {dataset.name: about(dataset) for dataset in chosen}, "circles": scores}
    write_json(out / "summary.json", summary)
    print(f"written: {out}/datasets.png, {out}/circles-latent-spaces.png, a picture of each dataset")
    make_report([out / "runs"], out / "report")


def draw_datasets(out: Path) -> list[Dataset]:
    """One picture per drawn dataset and one of all of them."""
    chosen = [datasets[name]() for name in datasets if not datasets[name].needs_files]
    for dataset in track(chosen, "drawing", console=Console(stderr=True), transient=True):
        with written_whole(out / f"{dataset.name}.png") as draft:
            factor_sheet(dataset).save(draft)
    with written_whole(out / "datasets.png") as draft:
        overview(chosen).save(draft)
    for dataset in chosen:
        print(repr(dataset))
    return chosen


def sweep_circles(out: Path, steps: int | None) -> Study:
    """Train and score a few models of both families with the quick preset, side by side on all cores."""
    configs = [configure(model, "circles", "quick", steps=steps, seed=seed) for seed in SEEDS for model in MODELS]
    study = Study("circles", configs, METRICS)
    print(f"training {len(configs)} models on circles, {configs[0].training.steps} steps each", flush=True)
    outcome = sweep(study, out)
    if outcome.stopped:
        raise KeyboardInterrupt
    if outcome.failures:
        raise UserError(f"{outcome.failures[0].folder} failed: {outcome.failures[0].error}")
    return study


def draw_spaces(study: Study, out: Path) -> dict[str, dict[str, float]]:
    """Draw where the first model of each family puts a grid of circles; gives its scores."""
    x, y = np.meshgrid(GRID, GRID, indexing="ij")
    spaces: dict[str, NDArray] = {"x and y": np.stack([x, y], axis=-1)}
    scores = {}
    for config in study.configs[: len(MODELS)]:
        run = read_run(out / "runs" / config.run_name)
        dataset = load_dataset("circles", config.resolution)
        codes = Trained.load(run.folder).represent(dataset.images(np.arange(len(dataset))))
        title = f"{MODELS[config.model]}, MIG {run.scores['mig']:.2f}"
        print(f"{title}, in {run.folder}")
        spaces[title] = codes.reshape(40, 40, 2)[x, y]
        scores[config.model] = {name: run.scores[name] for name in ("mig", "elbo", "reconstruction", "kl")}
    with written_whole(out / "circles-latent-spaces.png") as draft:
        latent_spaces(spaces, "The same grid of circles in three spaces").savefig(draft, dpi=150)
    return scores


def about(dataset: Dataset) -> dict[str, object]:
    """What a dataset holds, in numbers and names."""
    factors = {factor.name: factor.size for factor in dataset.space.factors}
    return {"images": len(dataset), "shape": list(dataset.image_shape), "factors": factors, "about": dataset.summary}
