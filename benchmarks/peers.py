"""Training steps with the paper's networks: lddr compared with other frameworks, each in an environment of its own."""

import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np

from benchmarks.worker import Worker
from lddr import __version__
from lddr.bench import PAPER_STEPS, REPEATS
from lddr.config import configure
from lddr.data.dataset import stream
from lddr.data.load import load_dataset, warmed
from lddr.errors import UserError
from lddr.timing import in_turns, show

BATCHES, BATCH = 8, 64
CHECKED, COMPARED = 50, 5  # steps before the timing; the mean loss of the last ones must be less than of the first ones


@dataclass(frozen=True)
class Side:
    """A framework, the model of lddr that it is compared with, and the packages whose versions count."""

    title: str
    model: str
    packages: tuple[str, ...]


OURS = {
    "lddr-dvae": Side("lddr", "dvae", ("torch",)),
    "lddr-vae": Side("lddr", "vae", ("torch",)),
}
PEERS = {
    "pythae": Side("pythae", "vae", ("pythae", "torch")),
    "disent": Side("disent", "vae", ("disent", "lightning", "torch")),
    "jax": Side("JAX (Haiku, Optax), as the authors use", "dvae", ("jax", "dm-haiku", "optax")),
}


def run_bench(pythons: Sequence[str], out: Path | None, steps: int = 5, repeats: int = REPEATS) -> None:
    """Time training steps of lddr and of the peers that are found, print the table and write it."""
    found = _found(pythons)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "batches.npy"
        np.save(file, ready_batches())
        workers = {
            name: stack.enter_context(Worker("benchmarks.peers:prepared", side.model)) for name, side in OURS.items()
        }
        for name, (python, _) in found.items():
            function = f"benchmarks.frameworks.{name}:prepared"
            workers[name] = stack.enter_context(Worker(function, str(file), python=python))
        losses = dict.fromkeys(OURS, "–")
        for name in found:
            try:
                losses[name] = checked(workers[name])
            except RuntimeError as problem:
                print(f"{name} was left out: {problem}")
                del workers[name]
        times = in_turns(
            {name: partial(worker.run, steps) for name, worker in workers.items()},
            repeats,
            lambda: sum(worker.processor_seconds for worker in workers.values()),
        )
    ours, named = f"lddr {__version__}, torch {_versions(sys.executable, ('torch',))[0]}", OURS | PEERS
    versions = dict.fromkeys(OURS, ours) | {name: text for name, (_, text) in found.items()}
    rows = [_row(named[name], versions[name], times[name], times, losses[name]) for name in times]
    show(rows, f"one training step, batch {BATCH}, 64x64, dsprites, {platform.machine()}, 1 thread", out)


def _row(side: Side, version: str, seconds: list[float], times: dict[str, list[float]], losses: str) -> dict[str, Any]:
    reference = times[f"lddr-{side.model}"]
    return {
        "code": side.title,
        "model": side.model,
        "versions": version,
        f"loss in {CHECKED} steps": losses,
        "times lddr's": median(one / other for one, other in zip(seconds, reference, strict=True)),
        "ms": 1000 * median(seconds),
        "hours for the paper's 300,000 steps": PAPER_STEPS * median(seconds) / 3600,
    }


def checked(worker: Worker) -> str:
    """Return the mean loss of the first and of the last of some steps in words; an error unless it falls."""
    losses = [worker.value() for _ in range(CHECKED)]
    first, last = mean(losses[:COMPARED]), mean(losses[-COMPARED:])
    if not last < first:
        raise RuntimeError(f"it does not train: the loss goes from {first:g} to {last:g} in {CHECKED} steps")
    return f"{first:.1f} → {last:.1f}"


def ready_batches() -> np.ndarray:
    """Return float32 batches of dSprites images: (batches, images, height, width, 1)."""
    dataset = load_dataset("dsprites")
    images = dataset.images(dataset.space.sample(stream(0, "peers"), BATCHES * BATCH))
    return (images.astype(np.float32) / 255).reshape(BATCHES, BATCH, *images.shape[1:])


def prepared(model: str) -> Callable[[], float]:
    """Return a function that takes a training step of lddr, including the batch, and returns its loss."""
    import torch

    from lddr.hardware import keep_freed_memory
    from lddr.training.accelerator import batches_for, trainer_on

    torch.set_num_threads(1)
    keep_freed_memory()
    config = configure(model, "dsprites", "paper")
    dataset = warmed(load_dataset(*config.images))
    trainer = trainer_on(torch.device("cpu"), config, dataset)
    batches, steps = batches_for(trainer, dataset), count()
    return lambda: trainer.step(batches.batch(next(steps)))["loss"].item()


def _found(pythons: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return name → Python and versions of the peers that are installed in the environments given as NAME=PATH."""
    given = dict(each.partition("=")[::2] for each in pythons)
    for name, path in given.items():
        if name not in PEERS or not path:
            raise UserError(f"--python takes NAME=PATH with a name of {', '.join(PEERS)}, not {name!r}")
    found = {}
    for name, side in PEERS.items():
        versions = _versions(given[name], side.packages) if name in given else []
        if versions:
            texts = [f"{package} {version}" for package, version in zip(side.packages, versions, strict=True)]
            found[name] = given[name], ", ".join(texts)
        else:
            print(f"{name} was not found; give the Python of its environment with --python {name}=PATH")
    return found


def _versions(python: str, packages: Sequence[str]) -> list[str]:
    """Return the versions of packages in the environment of a Python; nothing unless it has all of them."""
    code = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    try:
        asked = subprocess.run([python, "-c", code, *packages], capture_output=True, text=True)
    except OSError:
        return []
    return asked.stdout.split() if asked.returncode == 0 else []
