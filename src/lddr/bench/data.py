"""`lddr bench data`: batches of 64 from every dataset that is here, beside one Python call per image."""

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from lddr.bench.timing import in_fresh_process, interleaved, resident_megabytes
from lddr.data.dataset import Dataset, Images, datasets, stream
from lddr.data.load import load_dataset
from lddr.files import written_whole

BATCH, PEER_BATCHES, HELD = 64, 20, 4096


def run_bench(batches: int, out: Path | None) -> None:
    """Measure, print the table and write it."""
    with synthetic_dsprites():
        names = [name for name in datasets if datasets[name].origin == "drawn"] + ["dsprites"]
        rows = [measure(name, batches) for name in track(names, "measuring", console=Console(stderr=True))]
    table = Table(box=None, header_style="bold", title="float batches of 64 (median of interleaved repeats)")
    for heading in rows[0]:
        table.add_column(heading, justify="left" if heading == "dataset" else "right")
    for row in rows:
        table.add_row(*(value if isinstance(value, str) else f"{value:,.1f}" for value in row.values()))
    Console().print(table)
    if out is not None:
        with written_whole(out) as draft:
            draft.write_text(json.dumps(rows, indent=1) + "\n")


def measure(name: str, batches: int) -> dict[str, Any]:
    """Images per second of ours and of the usual way, and the memory and start-up time of ours in a fresh process."""
    dataset = load_dataset(name)
    seconds = interleaved({"ours": our_batches(dataset, batches), "usual": usual_batches(dataset)})
    fresh = in_fresh_process("lddr.bench.data:start_up", name)
    return {
        "dataset": name,
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
    """What the peers do: images held as an array, a map-style dataset, one call and one conversion per image."""
    import torch
    from torch.utils.data import DataLoader

    held = np.ascontiguousarray(dataset.images(dataset.space.sample(stream(0, "held"), HELD), stream(0, "chance")))

    class PerImage(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return PEER_BATCHES * BATCH

        def __getitem__(self, index: int) -> torch.Tensor:
            image = held[np.random.randint(HELD)]  # noqa: NPY002 (as the peers draw)
            return torch.from_numpy(image.astype(np.float32) / 255).permute(2, 0, 1)

    loader = DataLoader(PerImage(), batch_size=BATCH, shuffle=True)

    def run() -> int:
        return sum(len(batch) for batch in loader)

    return run


def start_up(name: str) -> dict[str, float]:
    """Seconds to the first batch and resident memory after many, everything included."""
    start = time.perf_counter()
    dataset = load_dataset(name)
    dataset.batch(0, 0, BATCH)
    ready = time.perf_counter() - start
    for step in range(500):
        dataset.batch(0, step, BATCH)
    return {"ready, s": ready, "resident, MB": resident_megabytes()}


@contextmanager
def synthetic_dsprites() -> Iterator[None]:
    """A stand-in for the official dSprites file, full length, filled with our own sprites, gone afterwards."""
    import h5py

    sprites = load_dataset("sprites")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "dsprites" / "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.hdf5"
        path.parent.mkdir()
        with h5py.File(path, "w") as file:
            stored = file.create_dataset("imgs", (len(sprites), 64, 64), np.uint8, chunks=(1024, 64, 64), compression=1)
            for first in track(
                range(0, len(sprites), 1024), "writing a stand-in for dSprites", console=Console(stderr=True)
            ):
                stored[first : first + 1024] = _binary(sprites.images(np.arange(first, first + 1024)))
        before = dict(os.environ)
        os.environ |= {"LDDR_DATA": folder, "XDG_CACHE_HOME": folder}
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _binary(images: Images) -> Images:
    return (images[..., 0] > 0).astype(np.uint8)
