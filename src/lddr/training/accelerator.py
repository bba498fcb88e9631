"""Everything that only accelerators need: batches made ahead, steps that the host does not wait for, CUDA graphs.

Nothing here has run on a GPU yet; the tests use the CPU and the meta device, and a stand-in for the graph.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

from lddr.config import Config
from lddr.data.dataset import Dataset
from lddr.objectives.objective import Objective
from lddr.training.batches import Batch, Batches, Draws, as_pixels
from lddr.training.trainer import LOG_EVERY, Trainer
from lddr.vae import VAE

SHARE = 0.5  # of a device's free memory that images may take
CHUNK = 4096  # images
BLOCK_BYTES = 128 * 2**20  # of the draws that are sent together, at most
FOUND_INF = ("cuda", "meta")  # devices whose fused Adam is known to respect `found_inf`
WARM_UP = 3  # steps before a graph is recorded, on a stream of their own, as torch's guide to CUDA graphs asks

Terms = dict[str, Tensor]
Step = Callable[[Batch], Terms]
Recorded = tuple[Terms, Callable[[], None]]  # the results, and what computes them again
Record = Callable[[Callable[[], Terms]], Recorded]


def trainer_on(
    device: torch.device,
    config: Config,
    dataset: Dataset,
    vae: VAE | None = None,
    objective: Objective | None = None,
) -> Trainer:
    """Return the trainer of a run for this device."""
    kind = AsynchronousTrainer if device.type in FOUND_INF else Trainer
    return kind(config, dataset, device, vae, objective)


def batches_for(trainer: Trainer, dataset: Dataset) -> Batches:
    """Return the batches of a run for its device."""
    return Batches(trainer, dataset) if trainer.device.type == "cpu" else BatchesAhead(trainer, dataset)


class AsynchronousTrainer(Trainer):
    """A trainer whose host never waits: from the first non-finite loss on, `found_inf` on the device stops all updates.

    With `capture`, the step is recorded as a CUDA graph and replayed: one launch, whatever it consists of.
    """

    checks_every_step = False

    def __init__(self, config: Config, dataset: Dataset, device: torch.device, *own: Any) -> None:
        super().__init__(config, dataset, device, *own)
        self.found_inf = torch.zeros((), device=device)
        self._step: Step = self._plain_step
        self._plain_steps = math.inf  # before one is recorded

    def step(self, batch: Batch) -> Terms:
        """Take a step; the terms of a replayed one are valid until the next."""
        self._plain_steps -= 1
        if self._plain_steps >= 0:
            return self._step(batch)
        if self._plain_steps == -1:
            for _, _, _, optimizer in self._trained():  # gradients of the replayed step have memory of their own
                optimizer.zero_grad()
            self._batch = tree_map_only(Tensor, torch.clone, batch)
            self._terms, self._replay = self._record(lambda: self._step(self._batch))
        torch._foreach_copy_(_tensors(self._batch), _tensors(batch))
        self._replay()
        return self._terms

    def _plain_step(self, batch: Batch) -> Terms:
        loss = self.loss(batch)
        torch.logical_or(self.found_inf, loss.total.detach() * 0, out=self.found_inf)  # 0 · NaN and 0 · ∞ are NaN
        self.update(loss, batch, self.found_inf)
        return loss.terms

    def replay(self, warm_up: Callable[[Step], Step], record: Record) -> None:
        """Take a few more steps as they are, then record one and replay it from then on."""
        self._step, self._record, self._plain_steps = warm_up(self._plain_step), record, WARM_UP


def capture(trainer: Trainer) -> None:
    """Let torch compile the networks; on CUDA the whole step, optimizers included, becomes one graph."""
    networks = [trainer.vae.encoder, trainer.vae.decoder, trainer.objective.discriminator]
    for network in networks:
        if network is not None:
            network.compile()
    if isinstance(trainer, AsynchronousTrainer) and trainer.device.type == "cuda":
        trainer.replay(on_own_stream, record_graph)


class BatchesAhead(Batches):
    """Batches on a device with memory of its own.

    The whole dataset is kept there if it fits and images depend on their index alone. A thread draws blocks of many
    steps ahead; a block ends where a line of a long log does, if it is not too large. On CUDA, the host's side of a
    transfer is pinned, so that the host does not wait for it.
    """

    def __init__(self, trainer: Trainer, dataset: Dataset, keep: bool | None = None) -> None:
        super().__init__(trainer, dataset)
        self._kept: Tensor | None = None
        if self._fits() if keep is None else keep:
            self._kept = self._all_images()
        self._last = trainer.config.training.steps
        self._is_pinned = self.device.type == "cuda"
        one = sum(each.nbytes for each in self.draw(0).values())
        self._size = max(1, min(LOG_EVERY, BLOCK_BYTES // one))
        self._maker = ThreadPoolExecutor(1, "lddr-batches")
        self._here, self._draws = range(0), Draws()
        self._next, self._coming = range(0), Future[Draws]()

    def batch(self, step: int) -> Batch:
        if step not in self._here:
            self._fetch(step)
        place = step - self._here.start
        draws = {name: each[place] for name, each in self._draws.items()}
        pictures = draws["pictures"] if self._kept is None else self._kept[draws["pictures"]]
        return self._batch(as_pixels(pictures), draws, *draws["schedules"].unbind())

    def pictures(self, generator: np.random.Generator, size: int) -> Tensor:
        """Return images in bytes, or only their indices where the device has all images."""
        if self._kept is None:
            return super().pictures(generator, size)
        return torch.from_numpy((self.sampler or self.dataset.space).sample(generator, size))

    def _fetch(self, step: int) -> None:
        if step != self._next.start or not self._next:  # the first one, or a jump
            self._prepare(step)
        self._here, made = self._next, self._coming.result()
        self._draws = {name: each.to(self.device, non_blocking=self._is_pinned) for name, each in made.items()}
        self._prepare(self._here.stop)

    def _prepare(self, step: int) -> None:
        """Let the thread start with the block of a step; there is nothing to do after the last step."""
        self._next = range(step, min((step // self._size + 1) * self._size, max(self._last, step)))
        if self._next:
            self._coming = self._maker.submit(self._made, self._next)

    def _made(self, steps: range) -> Draws:
        drawn = [self.draw(step) for step in steps]
        block = {name: torch.stack([each[name] for each in drawn]) for name in drawn[0]}
        block["schedules"] = block["schedules"].float()  # not every device has doubles
        return {name: each.pin_memory() if self._is_pinned else each for name, each in block.items()}

    def _fits(self) -> bool:
        if self.device.type != "cuda" or not self.dataset.is_fixed:
            return False
        free, _ = torch.cuda.mem_get_info(self.device)
        return len(self.dataset) * int(np.prod(self.dataset.image_shape)) < SHARE * free

    def _all_images(self) -> Tensor:
        kept = torch.empty((len(self.dataset), *self.dataset.image_shape), dtype=torch.uint8, device=self.device)
        for first in range(0, len(self.dataset), CHUNK):
            numbers = np.arange(first, min(first + CHUNK, len(self.dataset)))
            kept[first : first + CHUNK] = torch.from_numpy(np.ascontiguousarray(self.dataset.images(numbers)))
        return kept


def on_own_stream(step: Step) -> Step:
    """Return the same step on a stream of its own, unless it is being recorded."""
    aside = torch.cuda.Stream()

    def taken(batch: Batch) -> Terms:
        if torch.cuda.is_current_stream_capturing():
            return step(batch)
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            terms = step(batch)
        torch.cuda.current_stream().wait_stream(aside)
        return terms

    return taken


def record_graph(body: Callable[[], Terms]) -> Recorded:
    """Record without running it; every replay reads and writes the same memory."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        terms = body()
    return terms, graph.replay


def _tensors(batch: Batch) -> list[Tensor]:
    """Return all tensors of a batch: on an accelerator schedules are tensors, too."""
    return [each for each in tree_leaves(batch) if each is not None]
