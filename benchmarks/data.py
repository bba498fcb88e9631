"""Batches of 64 from every dataset that is here, compared with one Python call per image."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from rich.console import Console
from rich.progress import track

from benchmarks.worker import one_thread
from lddr.data.dataset import Dataset, datasets, stream
from lddr.data.drawn.circles import CORNERS
from lddr.data.load import load_dataset
from lddr.timing import interleaved, show

BATCH, PEER_BATCHES, HELD = 64, 20, 4096


def run_bench(batches: int, out: Path | None) -> None:
    """Measure, print the table and write it."""
    names = [name for name in datasets if not datasets[name].why_missing()]
    rows = [measure(name, batches) for name in track(names, "measuring", console=Console(stderr=True))]
    show(rows, "float batches of 64 (median of interleaved repeats)", out)


def measure(name: str, batches: int) -> dict[str, Any]:
    """Images per second of ours and of the usual way, and the memory and start-up time of ours in a fresh process."""
    dataset = load_dataset(name)
    seconds = interleaved({"ours": our_batches(dataset, batches), "usual": usual_batches(dataset)})
    fresh = in_fresh_process("benchmarks.data:start_up", name)
    return {
        "dataset": name,
        "from": dataset.origin,
        "ours, images/s": 1 / seconds["ours"],
        "one call per image, images/s": 1 / seconds["usual"],
        "times faster": seconds["usual"] / seconds["ours"],
        **fresh,
    }


def our_batches(dataset: Dataset, batches: int) -> Callable[[], int]:
    """Training batches as the training loop asks for them."""

    def run() -> int:
        for step in range(batches):
            dataset.batch(0, step, BATCH)
        return batches * BATCH

    return run


def usual_batches(dataset: Dataset) -> Callable[[], int]:
    """What the peers do: a call per image that makes it and converts it, and a DataLoader that stacks them."""
    import torch
    from torch.utils.data import DataLoader

    random = np.random.RandomState(0)
    make_one = _drawn_one_by_one if dataset.name == "circles" else _looked_up_one_by_one(dataset)

    class PerImage(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return PEER_BATCHES * BATCH

        def __getitem__(self, _: int) -> torch.Tensor:
            return torch.from_numpy(make_one(random)).permute(2, 0, 1)

    loader = DataLoader(PerImage(), batch_size=BATCH)

    def run() -> int:
        return sum(len(batch) for batch in loader)

    return run


def _drawn_one_by_one(random: np.random.RandomState) -> NDArray[np.float32]:
    """Circles as Spriteworld draws them: a polygon on a canvas."""
    canvas = Image.new("L", (64, 64))
    ImageDraw.Draw(canvas).polygon([tuple(corner) for corner in 64 * (random.uniform(0.2, 0.8, 2) + CORNERS)], fill=255)
    return np.flipud(np.asarray(canvas).astype(np.float32) / np.float32(255))[..., np.newaxis].copy()


def _looked_up_one_by_one(dataset: Dataset) -> Callable[[np.random.RandomState], NDArray[np.float32]]:
    """All images held as one array; a draw of one value of every factor, the number, a look-up, a conversion."""
    chance = {"color_dsprites": _colour_one, "noisy_dsprites": _noise_one}.get(dataset.name, _as_it_is)
    plain = dataset if chance is _as_it_is else load_dataset("dsprites")
    held = np.ascontiguousarray(plain.images(plain.space.sample(stream(0, "held"), HELD)))
    sizes = dataset.space.sizes
    bases = np.cumprod([1, *sizes[:0:-1]])[::-1]

    def look_up(random: np.random.RandomState) -> NDArray[np.float32]:
        factors = np.stack([random.randint(size, size=1) for size in sizes], axis=1)
        return chance(held[np.dot(factors, bases) % HELD].astype(np.float32)[0] / 255, random)

    return look_up


def _as_it_is(image: NDArray[np.float32], random: np.random.RandomState) -> NDArray[np.float32]:
    return image


def _colour_one(image: NDArray[np.float32], random: np.random.RandomState) -> NDArray[np.float32]:
    return np.repeat(image, 3, axis=2) * random.uniform(0.5, 1, 3).astype(np.float32)


def _noise_one(image: NDArray[np.float32], random: np.random.RandomState) -> NDArray[np.float32]:
    return np.minimum(np.repeat(image, 3, axis=2) + random.uniform(0, 1, (64, 64, 3)).astype(np.float32), 1)


def start_up(name: str) -> dict[str, float]:
    """Seconds to the first batch and resident memory after many, everything included."""
    start = time.perf_counter()
    dataset = load_dataset(name)
    dataset.batch(0, 0, BATCH)
    ready = time.perf_counter() - start
    for step in range(500):
        dataset.batch(0, step, BATCH)
    return {"ready, s": ready, "resident, MB": resident_megabytes()}


def in_fresh_process(function: str, *arguments: str) -> dict[str, float]:
    """Call "module:function" with strings in a new Python with one thread, and return its dictionary of numbers."""
    module, name = function.split(":")
    code = f"import json, sys; from {module} import {name}; print(json.dumps({name}(*sys.argv[1:])))"
    command = [sys.executable, "-c", code, *arguments]
    return json.loads(subprocess.run(command, env=one_thread(), check=True, capture_output=True, text=True).stdout)


def resident_megabytes() -> float:
    """Return the RAM that this process holds now."""
    return psutil.Process().memory_info().rss / 1e6
