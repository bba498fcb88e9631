"""How fast is this machine? Training steps beside plain PyTorch and the limit of the device, and models side by side.

Sides take turns, so that a busy machine slows all of them alike. The benchmarks of developers are in benchmarks/.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode

from lddr.config import Config, configure
from lddr.data.dataset import Dataset, stream
from lddr.data.load import load_dataset, warmed
from lddr.errors import UserError
from lddr.hardware import chosen_device, has_fast_bf16, keep_freed_memory, matmul_peak
from lddr.timing import Worker, fair_clock, interleaved, show
from lddr.training.accelerator import batches_for, capture, trainer_on
from lddr.training.trainer import LOG_EVERY, LossAverages

MODELS, DATASETS = ("dvae", "factor-dvae"), ("dsprites", "rooms")  # one channel and three
PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
REPEATS = 7


@dataclass(frozen=True)
class Place:
    """Where it is measured: a device, and how many threads of the CPU."""

    device: str
    threads: int

    @property
    def precisions(self) -> list[str]:
        """Those that are fast there: else it would take hours."""
        return [name for name in PRECISIONS if name == "fp32" or has_fast_bf16(self.device)]

    def limit(self, precision: str) -> float:
        """Operations per second."""
        size = 1024 if self.device == "cpu" else 4096
        return matmul_peak(PRECISIONS[precision], size, device=self.device)

    def __str__(self) -> str:
        name = torch.cuda.get_device_name() if self.device.startswith("cuda") else self.device
        return f"{name}, {self.threads} thread(s)"


def run_train(steps: int | None, threads: int, out: Path | None, device: str = "cpu", compiled: bool = False) -> None:
    """Measure, print the table and write it."""
    torch.set_num_threads(threads)
    place = Place(str(chosen_device(device)), threads)
    steps = steps or (5 if place.device == "cpu" else 2 * LOG_EVERY)  # whole lines of the log, which cost a wait
    cases = [(model, dataset) for model in MODELS for dataset in DATASETS]
    rows = [
        measure_training(*case, steps, place, compiled)
        for case in track(cases, "measuring", console=Console(stderr=True), transient=True)
    ]
    show(rows, f"one training step, batch 64, 64x64, {place}", out)
    if "bf16" not in place.precisions:
        print("bf16 was left out: this processor has no instructions for it")


def measure_training(model: str, dataset: str, steps: int, place: Place, compiled: bool = False) -> dict[str, Any]:
    """Milliseconds per step of each way, how many times faster ours are, the limit, and the peak memory.

    Each way has a process of its own, and they take turns: how ours keeps its memory would help the usual way too.
    """
    precisions = place.precisions
    ours = [*precisions, *(f"{name} compiled" for name in precisions if compiled)]
    arguments = (model, dataset, str(place.threads), place.device)
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(Worker("lddr.bench:prepared", name, *arguments)) for name in ("usual", *ours)
        }
        seconds = interleaved({name: partial(side.run, steps) for name, side in sides.items()}, repeats=REPEATS)
        memory = {name: side.peak_megabytes() for name, side in sides.items()}
    work = operations(model, dataset)
    return {
        "model": model,
        "dataset": dataset,
        **{f"{name}, ms": 1000 * value for name, value in seconds.items()},
        **{f"{name}, times faster": seconds["usual"] / seconds[name] for name in ours},
        **{f"limit {name}, ms": 1000 * work / place.limit(name) for name in precisions},
        **{f"{name}, peak MB": value for name, value in memory.items()},
    }


def prepared(side: str, model: str, dataset: str, threads: str, device: str = "cpu") -> Callable[[], None]:
    """A training step of the usual way, or of ours in a precision, ready to be taken."""
    torch.set_num_threads(int(threads))
    if side == "usual":
        return PlainTraining(warmed(load_dataset(dataset)), model == "factor-dvae", device).step
    if device == "cpu":
        keep_freed_memory()
    precision, _, compiled = side.partition(" ")
    return _ours(model, dataset, precision, torch.device(device), bool(compiled))


def _ours(model: str, dataset: str, precision: str, device: torch.device, compiled: bool) -> Callable[[], None]:
    """A turn of the loop, but for checkpoints."""
    loaded = warmed(load_dataset(dataset))
    trainer = trainer_on(device, configure(model, dataset, precision=precision), loaded)
    if compiled:
        capture(trainer)
    batches, averages, steps = batches_for(trainer, loaded), LossAverages(0, None), count()

    def one_step() -> None:
        step = next(steps)
        averages.add(trainer.step(batches.batch(step)))
        if trainer.checks_every_step or (step + 1) % LOG_EVERY == 0:
            averages.read()

    return one_step


def operations(model: str, dataset: str) -> int:
    """Floating-point operations of a step in matmuls and convolutions, forward and backward."""
    training = PlainTraining(load_dataset(dataset), model == "factor-dvae")
    with FlopCounterMode(display=False) as counter:
        training.step()
    return counter.get_total_flops()


# models side by side


def run_models(models: Sequence[str], dataset: str, preset: str, threads: int, out: Path | None) -> None:
    """Measure, print the table and write it."""
    if not models:
        raise UserError("no model is named; give some with commas between them, such as dvae,tripod")
    torch.set_num_threads(threads)
    keep_freed_memory()
    title = f"one training step, batch 64, {dataset}, {preset}, {threads} thread(s)"
    show(measure_models(models, dataset, preset), title, out)


def measure_models(
    models: Sequence[str], dataset: str, preset: str, repeats: int = REPEATS, **settings: Any
) -> list[dict]:
    """Milliseconds per step, and how many times those of the first model."""
    sides = {model: _step(model, dataset, preset, settings) for model in models}
    seconds = interleaved(sides, repeats, fair_clock(torch.get_num_threads()))
    return [
        {"model": model, "ms": 1000 * seconds[model], f"times {models[0]}": seconds[model] / seconds[models[0]]}
        for model in models
    ]


def _step(model: str, dataset: str, preset: str, settings: dict[str, Any]) -> Callable[[], int]:
    """The next step of a training, whatever its published batch is."""
    return next_step(configure(model, dataset, preset, batch_size=64, **settings))


def next_step(config: Config) -> Callable[[], int]:
    """Goes on by a step whenever it is called, and returns 1."""
    loaded = warmed(load_dataset(*config.images))
    trainer = trainer_on(torch.device("cpu"), config, loaded)
    batches, steps = batches_for(trainer, loaded), count()

    def one_step() -> int:
        trainer.step(batches.batch(next(steps)))
        return 1

    return one_step


# the usual way, for comparison: plain layers, plain Adam, a DataLoader

LATENTS, CATEGORIES, BATCH, HELD = 10, 64, 64, 4096


def plain_networks(channels: int) -> tuple[nn.Sequential, nn.Sequential]:
    """The paper's encoder and decoder at 64x64, as written down."""
    encoder = nn.Sequential(
        *(nn.Conv2d(channels, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU()),
        *(nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 4, 2, 1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, LATENTS * CATEGORIES)),
    )
    decoder = nn.Sequential(
        *(nn.Linear(LATENTS, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU(), nn.Unflatten(1, (64, 4, 4))),
        *(nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU()),
        *(nn.ConvTranspose2d(32, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, channels, 4, 2, 1)),
    )
    return encoder, decoder


def plain_discriminator() -> nn.Sequential:
    hidden = [layer for _ in range(5) for layer in (nn.Linear(1000, 1000), nn.LeakyReLU(0.01))]
    return nn.Sequential(nn.Linear(LATENTS, 1000), nn.LeakyReLU(0.01), *hidden, nn.Linear(1000, 2))


class PlainTraining:
    """One training step after the other, of a D-VAE or, with a discriminator, of a FactorDVAE."""

    def __init__(self, dataset: Dataset, factor: bool, device: str = "cpu") -> None:
        self.device = device
        self.encoder, self.decoder = (network.to(device) for network in plain_networks(dataset.image_shape[2]))
        self.adam = torch.optim.Adam([*self.encoder.parameters(), *self.decoder.parameters()], 1e-4)
        self.positions = torch.linspace(-1, 1, CATEGORIES, device=device)
        self.discriminator = plain_discriminator().to(device) if factor else None
        if self.discriminator is not None:
            self.referee = torch.optim.Adam(self.discriminator.parameters(), 1e-4, betas=(0.5, 0.9))
        self._batches = _endless(dataset)

    def step(self) -> None:
        images = next(self._batches).to(self.device)
        logits = self.encoder(images).view(-1, LATENTS, CATEGORIES)
        gumbel = -torch.log(-torch.log(torch.rand_like(logits).clamp(1e-20, 1 - 1e-7)))
        z = torch.softmax(logits + gumbel, dim=2) @ self.positions
        reconstruction = functional.binary_cross_entropy_with_logits(self.decoder(z), images, reduction="sum") / BATCH
        probabilities = torch.softmax(logits, dim=2)
        log_probabilities = torch.log_softmax(logits, dim=2)
        kl = (probabilities * (log_probabilities + np.log(CATEGORIES))).sum((1, 2)).mean()
        loss = reconstruction + kl
        if self.discriminator is not None:
            verdict = self.discriminator(z)
            loss = loss + 10 * (verdict[:, 0] - verdict[:, 1]).mean()
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        if self.discriminator is not None:
            self._referee_step(self.discriminator, z.detach())

    def _referee_step(self, discriminator: nn.Module, z: Tensor) -> None:
        permuted = torch.stack([column[torch.randperm(len(column), device=z.device)] for column in z.T], dim=1)
        zeros, ones = (torch.full((BATCH,), value, device=z.device) for value in (0, 1))
        real, fake = discriminator(z), discriminator(permuted)
        loss = 0.5 * (functional.cross_entropy(real, zeros) + functional.cross_entropy(fake, ones))
        self.referee.zero_grad()
        loss.backward()
        self.referee.step()


class _PerImage(torch.utils.data.Dataset):
    """All images in one array, looked up and converted one by one."""

    def __init__(self, dataset: Dataset) -> None:
        self.images = np.ascontiguousarray(dataset.images(dataset.space.sample(stream(0, "held"), HELD)))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Tensor:
        return torch.from_numpy(self.images[index].astype(np.float32) / 255).permute(2, 0, 1)


def _endless(dataset: Dataset) -> Iterator[Tensor]:
    loader = DataLoader(_PerImage(dataset), batch_size=BATCH, shuffle=True)
    while True:
        yield from loader
