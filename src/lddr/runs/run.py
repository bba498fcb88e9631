"""Train, evaluate and save one run; started again it resumes, and when it is finished it does nothing."""

import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any

import torch

import lddr
from lddr.config import Config
from lddr.console import say
from lddr.data.dataset import Dataset, identity
from lddr.data.factors import FactorTable
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.hardware import Machine, chosen_device, has_fast_bf16, usable_cores
from lddr.latents.latent import usual_supervision
from lddr.metrics.elbo import bounds
from lddr.objectives.objective import Objective
from lddr.runs.folder import CONFIG, FORMAT, LOG, MODEL, RunFolder
from lddr.runs.index import flat_scores, flat_settings, is_collapsed
from lddr.runs.loop import train
from lddr.runs.tracking import TrackedRun
from lddr.training.accelerator import batches_for, capture, trainer_on
from lddr.training.batches import Batches
from lddr.training.checkpoint import module_tensors, save_model
from lddr.training.trainer import Trainer
from lddr.vae import VAE

MANY_STEPS, TIMED_STEPS = 500, 5
REMEDY = "try more --steps, --mean-bias or another --learning-rate"  # for a model that has learned nothing


def run(
    config: Config,
    out: Path,
    machine: Machine | None = None,
    dataset: Dataset | None = None,
    vae: VAE | None = None,
    objective: Objective | None = None,
) -> Path:
    """Train the model of these settings in its folder below `out`, or resume it; returns the folder.

    A run that saw other images or labels is refused, finished or not. `vae` and `objective` are a user's own modules,
    which the settings name.
    """
    machine = machine or Machine()
    folder = RunFolder(out / config.run_name)
    seen = dataset or load_dataset(*config.images)
    if folder.is_finished:
        folder.check(seen)
        return folder.path
    tracked = None if machine.track is None else TrackedRun(machine.track, folder, flat_settings(config.as_dict()))
    if seen.reading and not machine.quiet:
        say(seen.reading)
    device = chosen_device(machine.device)
    if config.training.precision == "bf16" and device.type == "cpu" and not has_fast_bf16():
        say("this processor has no fast bf16: the run will be slow, fp32 is the better choice here")
    trainer = trainer_on(device, config, seen, vae, objective)
    if machine.compile:
        capture(trainer)
    batches = batches_for(trainer, seen)  # errors in settings and data are raised by now, before there is a folder
    if not machine.quiet:
        _print_use_of_labels(config, seen)
        _print_duration(trainer, batches, folder)
    with folder.alone(say=say), limited_threads(machine, folder):
        if folder.is_finished:  # another process was faster
            folder.check(seen)
        else:
            _train_and_save(trainer, batches, folder, machine, tracked)
    return folder.path


@contextmanager
def limited_threads(machine: Machine, folder: RunFolder) -> Iterator[None]:
    """Use the requested number of torch threads, else that of the run's start, else one per core; then restore it.

    The order of a sum, and with it the last bits of a result, may depend on their number.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(machine.threads or folder.threads or min(before, usable_cores()))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _print_duration(trainer: Trainer, batches: Batches, folder: RunFolder) -> None:
    """Print the expected duration of a run that takes longer than a few seconds, from a few losses and gradients.

    The model stays as it is: no gradient is applied, and the buffers of layers such as batch norm are restored.
    """
    steps = trainer.config.training.steps - (folder.saved_step or 0)
    if trainer.device.type != "cpu" or steps < MANY_STEPS:
        return
    seconds, buffers = [], {name: each.clone() for name, each in trainer.vae.named_buffers()}
    for step in range(TIMED_STEPS):
        start = time.perf_counter()
        trainer.loss(batches.batch(step)).backward()
        seconds.append(time.perf_counter() - start)
    trainer.optimizer.zero_grad()
    for name, buffer in trainer.vae.named_buffers():
        buffer.copy_(buffers[name])
    minutes = steps * median(seconds) / 60
    expected = f"{minutes / 60:.1f} hours" if minutes >= 90 else f"{max(1, round(minutes))} min"
    say(f"training {steps:,} steps, about {expected} on this machine")


def _train_and_save(
    trainer: Trainer, batches: Batches, folder: RunFolder, machine: Machine, tracked: TrackedRun | None
) -> None:
    """Train in this folder, which may have the start of the same run on the same images, and no other."""
    config, dataset = trainer.config, batches.dataset
    if not folder.is_run:
        versions = {"lddr": lddr.__version__, "torch": torch.__version__, "python": platform.python_version()}
        versions["threads"] = str(torch.get_num_threads())
        images = identity(dataset) | ({"path": dataset.path} if dataset.path else {})
        folder.write_config(config, versions, images)
    elif folder.config != config:
        raise UserError(f"{folder.config_file} holds other settings than its name says; move that folder away")
    else:
        folder.check(dataset)
    with tracked or nullcontext():
        hooks = [hook for hook in (machine.on_log, tracked.record if tracked else None) if hook is not None]
        train(trainer, batches, folder, machine, hooks)
        scores = _save_results(trainer, batches, folder, machine)
        if tracked:
            tracked.set_scores(flat_scores({"training": scores}))


def _save_results(trainer: Trainer, batches: Batches, folder: RunFolder, machine: Machine) -> dict[str, Any]:
    """Save the model and its scores, and return the scores."""
    config, dataset = trainer.config, batches.dataset
    folder.require(CONFIG, LOG)
    facts = {"format": FORMAT, "settings": config.as_dict(), "image_shape": list(dataset.image_shape)}
    facts["background"] = dataset.preparation and dataset.preparation.background
    if trainer.objective.discriminator is not None:
        tensors = module_tensors("discriminator", trainer.objective.discriminator)
        save_model(folder.discriminator_file, tensors, facts)
    save_model(folder.model_file, module_tensors("vae", trainer.vae), facts)
    scores = bounds(trainer.vae, config.training.steps, dataset)
    if is_collapsed(scores):
        say(
            f"warning: {folder.path.name} has learned nothing: its reconstructions ({scores['reconstruction']:.1f} "
            f"nats) are no better than the mean image ({scores['mean_picture']:.1f} nats), and selectors leave it out; "
            f"{REMEDY}"
        )
    folder.require(CONFIG, LOG, MODEL)
    scores |= trainer.validation(batches.validation)
    if config.supervision is not None:
        scores |= config.supervision.guessing(trainer.vae.latent, dataset)
    folder.write_scores(scores)
    shutil.rmtree(folder.checkpoints, ignore_errors=True)  # nothing is left to resume
    return scores


def _print_use_of_labels(config: Config, dataset: Dataset) -> None:
    """Print how the labels of a user's own images are used, or how to use them."""
    space, supervision = dataset.space, config.supervision
    if supervision is not None and isinstance(space, FactorTable):
        train, validation = map(len, supervision.split(dataset))
        say(
            f"supervised ({supervision.loss}) by {train:,} labelled images of {len(dataset):,}, {validation:,} more "
            f"validate; the first latents are tied to: {space}"
        )
    elif not space.is_complete and (loss := usual_supervision(config.latent)):
        count = f"{space.num_labelled:,} of {len(dataset):,} images are labelled"
        say(f"{count}, but this run does not train with the labels; set supervision (for example {loss}) to use them")
