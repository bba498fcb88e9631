"""A training step of disent's VAE with disent's networks, by Lightning's trainer; runs in disent's environment."""

from collections.abc import Callable, Iterator
from itertools import cycle
from threading import Semaphore, Thread
from typing import Any

import numpy as np
import torch

try:
    import torchvision  # noqa: F401
except RuntimeError:  # a torchvision for CUDA with a torch without it: disent imports it, but its VAE needs no operator
    _operators = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

import lightning
from disent.frameworks.vae import Vae
from disent.model import AutoEncoder
from disent.model.ae import DecoderConv64, EncoderConv64
from torch import Tensor


class ReadyBatches:
    """Batches in memory in place of a DataLoader, again and again."""

    def __init__(self, batches: list[dict[str, tuple[Tensor]]]) -> None:
        self.batches = batches

    def __iter__(self) -> Iterator[dict[str, tuple[Tensor]]]:
        return cycle(self.batches)


class StepByStep(lightning.Callback):
    """Lets the training take one step each time that it is asked for one."""

    def __init__(self) -> None:
        self._asked, self._done = Semaphore(0), Semaphore(0)
        self._loss = float("nan")

    def on_train_batch_start(self, *given: Any) -> None:
        self._asked.acquire()

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, *more: Any) -> None:
        self._loss = float(outputs["loss"])
        self._done.release()

    def step(self) -> float:
        self._asked.release()
        if not self._done.acquire(timeout=600):
            raise RuntimeError("Lightning has stopped; its error is above")
        return self._loss


def prepared(file: str) -> Callable[[], float]:
    """Return a function that takes a training step on the next batch (images, height, width, 1) and gives its loss."""
    batches = [torch.from_numpy(batch).permute(0, 3, 1, 2).contiguous() for batch in np.load(file)]
    framework = Vae(
        AutoEncoder(
            EncoderConv64(x_shape=(1, 64, 64), z_size=10, z_multiplier=2),
            DecoderConv64(x_shape=(1, 64, 64), z_size=10),
        ),
        Vae.cfg(optimizer="adam", optimizer_kwargs={"lr": 1e-4}, recon_loss="bce", loss_reduction="mean_sum"),
    )
    turns = StepByStep()
    trainer = lightning.Trainer(
        accelerator="cpu",
        max_steps=-1,
        logger=False,
        callbacks=[turns],
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    ready = ReadyBatches([{"x_targ": (batch,)} for batch in batches])
    Thread(target=trainer.fit, args=(framework, ready), daemon=True).start()
    return turns.step
