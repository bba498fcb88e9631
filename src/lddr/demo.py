"""`lddr demo`: pictures of the synthetic datasets, a few VAEs and D-VAEs on circles, and their report."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lddr.config import configure
from lddr.console import watched
from lddr.data.dataset import Dataset, datasets
from lddr.data.sheet import factor_sheet, overview
from lddr.errors import UserError, check_installed
from lddr.files import write_json, written_whole
from lddr.report.pages import write_report
from lddr.report.style import model_title
from lddr.runs.index import read_run
from lddr.sweeps.cluster import run_study
from lddr.sweeps.study import Study

MODELS = ("vae", "dvae")
SEEDS = (0, 1)  # the first two, not selected by results
METRICS = ("mig", "modularity")
WHY = "A circle at x and y has two factors: does each of two latents take one of them, or do both mix them?"


def run_demo(out: Path, steps: int | None = None) -> None:
    """Write the pictures and summary.json into the folder `out`, and runs and report into its subfolders."""
    check_installed("ray", "torch", "safetensors")
    chosen = draw_datasets(out)
    study = sweep_circles(out / "runs", steps)
    scores = draw_spaces(study, out)
    summary = {"datasets": {dataset.name: about(dataset) for dataset in chosen}, "circles": scores}
    write_json(out / "summary.json", summary)
    page, told = write_report([out / "runs"], out / "report")
    print(*told, f"open {page}", sep="\n")


def draw_datasets(out: Path) -> list[Dataset]:
    """Draw one picture of all synthetic datasets, then one of each."""
    chosen = [datasets[name]() for name in datasets if not datasets[name].needs_files]
    with written_whole(out / "datasets.png") as draft:
        overview(chosen).save(draft)
    print(f"look at {out}/datasets.png: pictures that lddr draws itself", flush=True)
    for dataset in watched(chosen, "drawing the factors of each"):
        with written_whole(out / f"{dataset.name}.png") as draft:
            factor_sheet(dataset).save(draft)
    return chosen


def sweep_circles(out: Path, steps: int | None) -> Study:
    """Train and score a few Gaussian and categorical models with the quick preset, in parallel on all cores."""
    configs = [configure(model, "circles", "quick", steps=steps, seed=seed) for seed in SEEDS for model in MODELS]
    study = Study("circles", configs, METRICS)
    print(f"{WHY}\ntraining {len(SEEDS)} VAEs and {len(SEEDS)} D-VAEs on circles to see", flush=True)
    outcome = run_study(study, out)
    if outcome.stopped:
        raise KeyboardInterrupt
    if outcome.failures:
        raise UserError(f"{outcome.failures[0].folder} failed: {outcome.failures[0].error}")
    return study


def draw_spaces(study: Study, out: Path) -> dict[str, list[dict[str, float]]]:
    """Draw the codes of a grid of circles for every model; return the scores, by seed."""
    from lddr_paper.latent_figures import GRID, latent_spaces, space_of

    spaces: dict[str, NDArray] = {"x and y": np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1)}
    scores: dict[str, list[dict[str, float]]] = {}
    for config in sorted(study.configs, key=lambda config: MODELS.index(config.model)):
        run = read_run(out / "runs" / config.run_name)
        title = f"{model_title(config.model)}, seed {config.training.seed}, MIG {run.scores['mig']:.2f}"
        print(f"{title}, in {run.folder}")
        spaces[title] = space_of(run)
        kept = {name: run.scores[name] for name in ("mig", "elbo", "elbo_noiseless", "reconstruction", "kl")}
        scores.setdefault(config.model, []).append(kept)
    with written_whole(out / "circles-latent-spaces.png") as draft:
        latent_spaces(spaces, "The same grid of circles: its factors, and the latents of each model").savefig(
            draft, dpi=150
        )
    print(f"look at {out}/circles-latent-spaces.png: lines along the axes are what is wanted")
    return scores


def about(dataset: Dataset) -> dict[str, object]:
    """Describe a dataset by its numbers and names."""
    factors = {factor.name: factor.size for factor in dataset.space.factors}
    words = (type(dataset).__doc__ or "").partition("\n")[0]
    return {"images": len(dataset), "shape": list(dataset.image_shape), "factors": factors, "about": words}
