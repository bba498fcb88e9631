"""Measure what the latents do in the first 1,000 steps, with and without the output bias at the mean brightness.

    python tools/first_steps.py           # 8 models, about 10 minutes of one core: results/dark_images/steps.csv
    python tools/first_steps.py --draw    # only the figure, from the table

Dark images are dSprites, light ones the same with black and white exchanged. The settings are the paper's (64x64).
"""

import csv
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from lddr.config import Config, configure
from lddr.data.dataset import Dataset, as_floats, stream
from lddr.data.load import as_dataset, load_dataset
from lddr.files import written_whole
from lddr.training.batches import Batches, as_tensor
from lddr.training.collapse import latent_use
from lddr.training.trainer import Trainer
from lddr.vae import evaluating

FOLDER = Path(__file__).parent.parent / "results" / "dark_images"
STEPS, EVERY, TRAINING_IMAGES, TEST_IMAGES = 1_000, 40, 8_000, 256
TITLES = {"dvae": "D-VAE", "vae": "VAE"}


def image_sets() -> dict[str, Dataset]:
    """Return the same random dSprites images, dark and light."""
    images = load_dataset("dsprites").draw(np.random.default_rng(0), TRAINING_IMAGES)
    return {"dark": as_dataset(images), "light": as_dataset(255 - images)}


@torch.no_grad()
def information(trainer: Trainer, images: torch.Tensor) -> float:
    """Return the nats that the categories of all latents encode about the images; NaN for Gaussian latents."""
    if not trainer.vae.latent.is_discrete:
        return float("nan")
    with evaluating(trainer.vae):
        tables = trainer.vae.encode(images).parameters  # (images, latents, categories)
    return float((torch.special.entr(tables.mean(0)).sum() - torch.special.entr(tables).sum((1, 2)).mean()).item())


def measure(model: str, brightness: str, dataset: Dataset, mean_bias: bool) -> list[dict[str, Any]]:
    """Train one model and return a row for every 40 steps."""
    config: Config = configure(model, "dsprites", "paper", mean_bias=mean_bias, precision="bf16")
    trainer = Trainer(config, dataset, torch.device("cpu"))
    batches = Batches(trainer, dataset)
    images = as_tensor(as_floats(dataset.draw(stream(0, "first steps"), TEST_IMAGES)), torch.device("cpu"))
    rows = []
    for step in range(1, STEPS + 1):
        terms = trainer.step(batches.batch(step - 1))
        if step == 1 or step % EVERY == 0:
            use = latent_use(trainer.vae, images)
            values = {"kl": terms["kl"].item(), "reconstruction": terms["reconstruction"].item()}
            counts = {"active": use.active, "saturated": use.saturated}
            row = {"images": brightness, "model": model, "mean_bias": mean_bias, "step": step} | values | counts
            rows.append(row | {"information": information(trainer, images)})
    print(rows[-1], flush=True)
    return rows


def write_table() -> None:
    """Train all models and write their rows."""
    torch.set_num_threads(1)
    rows = [
        row
        for brightness, dataset in image_sets().items()
        for model in TITLES
        for mean_bias in (False, True)
        for row in measure(model, brightness, dataset, mean_bias)
    ]
    with written_whole(FOLDER / "steps.csv") as draft, draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(
            {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in row.items()} for row in rows
        )


def draw() -> None:
    """Draw KL and active latents against steps."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot as plt

    with (FOLDER / "steps.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    figure, axes = plt.subplots(2, 4, figsize=(11, 4.6), sharex=True, sharey="row", layout="constrained")
    columns = [(model, brightness) for model in TITLES for brightness in ("dark", "light")]
    for column, (model, brightness) in enumerate(columns):
        for mean_bias, colour, label in (("False", "#b2182b", "bias at 0"), ("True", "#2166ac", "bias at the mean")):
            wanted = (model, brightness, mean_bias)
            chosen = [row for row in rows if (row["model"], row["images"], row["mean_bias"]) == wanted]
            steps = [int(row["step"]) for row in chosen]
            for axis, name in zip(axes[:, column], ("kl", "active"), strict=True):
                axis.plot(steps, [float(row[name]) for row in chosen], color=colour, label=label)
        axes[0, column].set_title(f"{TITLES[model]}, {brightness} images")
        axes[1, column].set_xlabel("step")
    axes[0, 0].set_ylabel("KL (nats)")
    axes[1, 0].set_ylabel("active latents of 10")
    axes[0, 0].legend(frameon=False)
    for axis in axes.flat:
        axis.spines[["top", "right"]].set_visible(False)
    with written_whole(FOLDER / "steps.png") as draft:
        figure.savefig(draft, dpi=110, format="png")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    if "--draw" not in sys.argv:
        write_table()
    draw()
