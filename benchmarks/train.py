"""Whole training steps compared with plain PyTorch and with the limit of the device, each in a process of its own."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.worker import Worker
from lddr.bench import DATASETS, MODELS, REPEATS, next_step
from lddr.config import configure
from lddr.console import watched
from lddr.data.dataset import Dataset, stream
from lddr.data.load import load_dataset, warmed
from lddr.hardware import chosen_device, has_fast_bf16, keep_freed_memory, matmul_peak
from lddr.timing import interleaved, show
from lddr.training.trainer import LOG_EVERY

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}


def run_bench(steps: int | None, threads: int, out: Path | None, device: str = "cpu", compiled: bool = False) -> None:
    """Time training steps, print the table and write it."""
    torch.set_num_threads(threads)
    device = str(chosen_device(device))
    steps = steps or (5 if device == "cpu" else 2 * LOG_EVERY)  # whole lines of the log, which wait for the device
    precisions = [name for name in PRECISIONS if name == "fp32" or has_fast_bf16(device)]  # others would take hours
    cases = [(model, dataset) for model in MODELS for dataset in DATASETS]
    rows = [_measured(*case, steps, device, threads, precisions, compiled) for case in watched(cases, "measuring")]
    name = torch.cuda.get_device_name() if device.startswith("cuda") else device
    show(rows, f"one training step, batch 64, 64x64, {name}, {threads} thread(s)", out)
    if "bf16" not in precisions:
        print("bf16 was left out: this processor has no instructions for it")


def _measured(
    model: str, dataset: str, steps: int, device: str, threads: int, precisions: Sequence[str], compiled: bool
) -> dict[str, Any]:
    """Return milliseconds per step of each way, how many times faster ours are, the limit, and the peak memory.

    Each way has a process of its own, since the way ours keeps freed memory would help plain PyTorch too.
    """
    ours = [*precisions, *(f"{name} compiled" for name in precisions if compiled)]
    arguments = (model, dataset, str(threads), device)
    with ExitStack() as stack:
        sides = {
            name: stack.enter_context(Worker("benchmarks.train:prepared", name, *arguments))
            for name in ("usual", *ours)
        }
        seconds = interleaved({name: partial(side.run, steps) for name, side in sides.items()}, repeats=REPEATS)
        memory = {name: side.peak_megabytes() for name, side in sides.items()}
    work, size = operations(model, dataset), 1024 if device == "cpu" else 4096
    limits = {name: work / matmul_peak(PRECISIONS[name], size, device=device) for name in precisions}
    return {
        "model": model,
        "dataset": dataset,
        **{f"{name}, ms": 1000 * value for name, value in seconds.items()},
        **{f"{name}, times faster": seconds["usual"] / seconds[name] for name in ours},
        **{f"limit {name}, ms": 1000 * value for name, value in limits.items()},
        **{f"{name}, peak MB": value for name, value in memory.items()},
    }


def prepared(side: str, model: str, dataset: str, threads: str, device: str = "cpu") -> Callable[[], object]:
    """Return a function that takes a training step of plain PyTorch ("usual"), or of ours in a precision."""
    torch.set_num_threads(int(threads))
    if side == "usual":
        return PlainTraining(warmed(load_dataset(dataset)), model == "factor-dvae", device).step
    if device == "cpu":
        keep_freed_memory()
    precision, _, compiled = side.partition(" ")
    return next_step(configure(model, dataset, precision=precision), device, bool(compiled))


def operations(model: str, dataset: str) -> int:
    """Return the floating-point operations of a step in matmuls and convolutions, forward and backward."""
    training = PlainTraining(load_dataset(dataset), model == "factor-dvae")
    with FlopCounterMode(display=False) as counter:
        training.step()
    return counter.get_total_flops()


# plain PyTorch, for comparison: plain layers, Adam, a DataLoader

LATENTS, CATEGORIES, BATCH, HELD = 10, 64, 64, 4096


def plain_networks(channels: int) -> tuple[nn.Sequential, nn.Sequential]:
    """Return the paper's encoder and decoder for 64x64 images."""
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
            self.discriminator_adam = torch.optim.Adam(self.discriminator.parameters(), 1e-4, betas=(0.5, 0.9))
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
            scores = self.discriminator(z)
            loss = loss + 10 * (scores[:, 0] - scores[:, 1]).mean()
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        if self.discriminator is not None:
            self._discriminator_step(self.discriminator, z.detach())

    def _discriminator_step(self, discriminator: nn.Module, z: Tensor) -> None:
        permuted = torch.stack([column[torch.randperm(len(column), device=z.device)] for column in z.T], dim=1)
        zeros, ones = (torch.full((BATCH,), value, device=z.device) for value in (0, 1))
        real, fake = discriminator(z), discriminator(permuted)
        loss = 0.5 * (functional.cross_entropy(real, zeros) + functional.cross_entropy(fake, ones))
        self.discriminator_adam.zero_grad()
        loss.backward()
        self.discriminator_adam.step()


class _PerImage(torch.utils.data.Dataset):
    """Images in one array, converted one by one."""

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
