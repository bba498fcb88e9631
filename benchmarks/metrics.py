"""Encoding for the whole suite of metrics, compared with the published way, on the same model."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rich.console import Console
from rich.progress import track

from lddr.data.dataset import Dataset, Images, stream
from lddr.data.factors import Factor, FactorGrid
from lddr.data.load import load_dataset
from lddr.metrics.evaluate import BATCH, Encode, encode_images, plan_samples
from lddr.metrics.metric import choose_metrics
from lddr.timing import interleaved, show

PUBLISHED_BATCH = 16
CALLS = 60  # of the published way in each repeat; the rest of its draws is extrapolated
IMAGES = 8 * BATCH  # of ours in each repeat


class CarsSized(Dataset):
    """As many images as Cars3D has, with its factors, of rooms."""

    name = "cars3d-sized"
    origin = "drawn"

    def __init__(self) -> None:
        self._rooms = load_dataset("rooms")
        self.image_shape = self._rooms.image_shape
        self.space = FactorGrid((Factor("elevation", 4), Factor("azimuth", 24), Factor("object", 183)))

    def images(self, indices: ArrayLike, generator: np.random.Generator | None = None) -> Images:
        return self._rooms.images(np.asarray(indices) * (len(self._rooms) // len(self)))


def run_bench(threads: int, out: Path | None) -> None:
    """Measure, print the table and write it."""
    import torch

    torch.set_num_threads(threads)
    cases = (load_dataset("dsprites"), CarsSized())
    rows = [measure(dataset) for dataset in track(cases, "measuring", console=Console(stderr=True))]
    show(rows, "encoding for all metrics; totals are extrapolated from the time of an image", out)


def measure(dataset: Dataset) -> dict[str, Any]:
    """The time of an image in both ways, how many of them each way encodes, and what that makes in all."""
    plan = plan_samples(dataset.space, choose_metrics("all"), seed=0)
    represent = model_of(dataset)
    seconds = interleaved(
        {"published": published(dataset, represent), "ours": ours(dataset, represent, plan.images)}, repeats=5
    )
    totals = seconds["published"] * plan.drawn, seconds["ours"] * len(plan.images)
    return {
        "dataset": dataset.name,
        "images": len(dataset),
        "published: encoded": plan.drawn,
        "µs each": 1e6 * seconds["published"],
        "s in all": totals[0],
        "ours: encoded": len(plan.images),
        "µs each ": 1e6 * seconds["ours"],
        "s in all ": totals[1],
        "times faster": totals[0] / totals[1],
    }


def model_of(dataset: Dataset) -> Encode:
    """The paper's D-VAE, a few steps into its training: how good it is changes no time."""
    from lddr.runs.run import Machine
    from lddr.trained import train

    return train(dataset, steps=2, machine=Machine("cpu", quiet=True)).represent


def published(dataset: Dataset, represent: Encode) -> Callable[[], int]:
    """A draw of factor values, a look-up and a call of the encoder for every 16 images."""
    sizes = dataset.space.sizes
    random = np.random.RandomState(0)

    def run() -> int:
        for _ in range(CALLS):
            factors = np.stack([random.randint(size, size=PUBLISHED_BATCH) for size in sizes], axis=1)
            represent(dataset.images(dataset.space.indices_of(factors)))
        return CALLS * PUBLISHED_BATCH

    return run


def ours(dataset: Dataset, represent: Encode, images: np.ndarray) -> Callable[[], int]:
    """Planned images in large batches, written into the table of codes."""
    some = np.sort(stream(0, "bench").choice(images, min(IMAGES, len(images)), replace=False))

    def run() -> int:
        encode_images(dataset, dataset.space, some, represent, seed=0)
        return len(some)

    return run
