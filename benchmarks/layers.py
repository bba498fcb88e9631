"""Where the time of a step goes, layer by layer, compared with multiplying alone."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lddr.bench import DATASETS
from lddr.config import configure
from lddr.data.load import load_dataset, warmed
from lddr.hardware import keep_freed_memory
from lddr.networks.coders import Layer
from lddr.timing import fair_clock, interleaved, show
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer

MODEL = "dvae"
REPEATS = 15


class Part(NamedTuple):
    """Something a step does, and how many times the products of its forward way it takes in all."""

    forward: Callable[[], object]
    backward: Callable[[], object] = tuple  # nothing
    products: int = 0


def run_bench(threads: int, out: Path | None) -> None:
    """Measure, print a table for images of one channel and of three, and write both."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    rows = [row for name in track(DATASETS, "measuring", console=Console(stderr=True)) for row in measure(name)]
    show(rows, f"parts of a step of {MODEL}, batch 64, 64x64, {threads} thread(s), medians in ms", out)


def measure(dataset: str, repeats: int = REPEATS) -> list[dict[str, Any]]:
    """Forward and backward time of every layer and of the rest of a step, and its limit by a large matmul."""
    trainer, batches = _trainer(dataset)
    parts = _layers(trainer, batches) | _others(trainer, batches)
    forward = {name: _once(part.forward) for name, part in parts.items()}
    backward = {f"{name}, backward": _once(part.backward) for name, part in parts.items()}
    seconds = interleaved(forward | backward | {"matmul": _matmul()}, repeats, fair_clock(torch.get_num_threads()))
    rows = [
        _row(name, seconds[name], seconds[f"{name}, backward"], _operations(part) * seconds["matmul"])
        for name, part in parts.items()
    ]
    everything = [sum(row[column] for row in rows) / 1000 for column in ("forward", "backward", "limit")]
    return [{"dataset": dataset} | row for row in [*rows, _row("all", *everything)]]


def _row(name: str, forward: float, backward: float, limit: float) -> dict[str, Any]:
    """From seconds to milliseconds."""
    forward, backward, limit = 1000 * forward, 1000 * backward, 1000 * limit
    both = forward + backward
    shown = {"part": name, "forward": forward, "backward": backward, "both": both, "limit": limit}
    return shown | {"of the limit, %": 100 * limit / both, "over it": both - limit}


def _trainer(dataset: str) -> tuple[Trainer, Batches]:
    loaded = warmed(load_dataset(dataset))
    trainer = Trainer(configure(MODEL, dataset), loaded, torch.device("cpu"))
    return trainer, Batches(trainer, loaded)


def _layers(trainer: Trainer, batches: Batches) -> dict[str, Part]:
    """Every layer of both networks with what it really sees, forward and backward."""
    seen: dict[str, tuple[nn.Module, Tensor]] = {}

    def remember(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def hook(layer: nn.Module, given: tuple[Tensor, ...]) -> None:
            seen[name] = layer, given[0].detach()

        return hook

    networks = {"encoder": trainer.vae.encoder, "decoder": trainer.vae.decoder}
    named = [(f"{part}: {name}", layer) for part, one in networks.items() for name, layer in one.named_modules()]
    hooks = [each.register_forward_pre_hook(remember(name)) for name, each in named if isinstance(each, Layer)]
    trainer.loss(batches.batch(0))
    for hook in hooks:
        hook.remove()
    first = next(iter(seen))  # the gradient of the images, its third product, is not computed
    return {_title(name, each): _part(each, given, 2 + (name != first)) for name, (each, given) in seen.items()}


def _title(name: str, layer: nn.Module) -> str:
    sizes = [str(getattr(layer, each)) for each in ("in_channels", "out_channels") if hasattr(layer, each)]
    sizes = sizes or [str(getattr(layer, each)) for each in ("in_features", "out_features")]
    return f"{name} ({' to '.join(sizes)})"


def _part(layer: Callable[[Tensor], Tensor], given: Tensor, products: int = 3) -> Part:
    """Two products: of the result and of the weights' gradient; a third is of the gradient of what it was given."""
    given.requires_grad_(products == 3)
    weights = list(layer.parameters()) if isinstance(layer, nn.Module) else []
    result = layer(given)
    wanted, slope = weights + [given] * given.requires_grad, torch.ones_like(result)
    return Part(lambda: layer(given), lambda: torch.autograd.grad(result, wanted, slope, retain_graph=True), products)


def _others(trainer: Trainer, batches: Batches) -> dict[str, Part]:
    """What a step does besides its layers."""
    steps, inputs = count(), batches.batch(0)
    outputs, logits = trainer.vae.encoder(inputs.images).detach(), trainer.vae(inputs.images).reconstruction.detach()

    def latents(outputs: Tensor) -> Tensor:
        posterior = trainer.vae.latent(outputs)
        return posterior.rsample(inputs.noise, inputs.noise_scale).sum() + posterior.mean_kl

    trainer.loss(inputs).backward()  # so that Adam has gradients; the rate is 0, and nothing moves
    trainer.optimizer.learning_rate = 0.0
    return {
        "batch and noise": Part(lambda: batches.batch(next(steps))),
        "latents": _part(latents, outputs),
        "reconstruction": _part(lambda given: trainer.vae.likelihood(given, inputs.images), logits),
        "Adam": Part(trainer.optimizer.step),
    }


def _once(run: Callable[[], object]) -> Callable[[], int]:
    def one() -> int:
        run()
        return 1

    return one


def _matmul() -> Callable[[], int]:
    """A product of large matrices, which takes its turns with the others; gives its operations."""
    left, right = torch.randn(2, 1024, 1024)

    def one() -> int:
        left @ right
        return 2 * 1024**3

    return one


def _operations(part: Part) -> int:
    if not part.products:
        return 0
    with FlopCounterMode(display=False) as counter:
        part.forward()
    return part.products * counter.get_total_flops()
