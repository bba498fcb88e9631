"""Carry out a run: train, measure, save; started again it goes on, and when it is finished it does nothing."""

import platform
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch

import lddr
from lddr import terms
from lddr.config import Config
from lddr.console import say
from lddr.data.dataset import Dataset, as_floats, identity, stream
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.hardware import chosen_device, has_fast_bf16, keep_freed_memory
from lddr.networks.vae import VAE
from lddr.objectives.objective import mean_kl
from lddr.runs.folder import CONFIG, FORMAT, LOG, MODEL, RunFolder
from lddr.runs.index import flat_settings
from lddr.runs.machine import Machine, free_cores
from lddr.training.checkpoint import module_tensors, save_model
from lddr.training.feed import Feed, as_tensor
from lddr.training.learner import Learner
from lddr.training.loop import train
from lddr.training.trackers import Tracked

EVALUATION_BATCHES, EVALUATION_SIZE = 16, 64
LEARNED = 0.95  # of the error of the mean picture: above that, nothing to speak of is learned


def run(config: Config, out: Path, machine: Machine | None = None, dataset: Dataset | None = None) -> Path:
    """Train the model of these settings in its folder below `out`, or go on with it; gives the folder."""
    machine = machine or Machine()
    folder = RunFolder(out / config.run_name)
    if folder.is_finished:
        return folder.path
    tracked = None if machine.track is None else Tracked(machine.track, folder, flat_settings(config.as_dict()))
    seen = dataset or load_dataset(*config.images)
    if seen.reading and not machine.quiet:
        say(seen.reading)
    learner = _learner(config, machine, seen)
    feed = Feed(learner, seen)  # what cannot be trained is refused by now: before there is a folder
    with folder.alone(say=say):
        if not folder.is_finished:
            with _threads(machine, folder):
                _carry_out(learner, feed, folder, machine, tracked)
    return folder.path


@contextmanager
def _threads(machine: Machine, folder: RunFolder) -> Iterator[None]:
    """As many of torch's threads as wanted, else as the run began with, else as there are free cores; then as before.

    The order of a sum, and with it the last bits of a result, may depend on their number.
    """
    before, begun_with = torch.get_num_threads(), folder.threads if folder.is_run else None
    torch.set_num_threads(machine.threads or begun_with or min(before, free_cores()))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _learner(config: Config, machine: Machine, dataset: Dataset) -> Learner:
    device = chosen_device(machine.device)
    if device.type == "cpu":
        keep_freed_memory()
    if config.training.precision == "bf16" and device.type == "cpu" and not has_fast_bf16():
        say("this processor has no fast bf16: the run will be slow, fp32 is the better choice here")
    learner = Learner(config, dataset, device)
    if machine.compile:
        learner.capture()
    return learner


def _carry_out(learner: Learner, feed: Feed, folder: RunFolder, machine: Machine, tracked: Tracked | None) -> None:
    _write_config(learner.config, folder, feed.dataset)
    with tracked or nullcontext():
        hooks = [machine.on_log, tracked.record if tracked else None]
        train(learner, feed, folder, machine, [hook for hook in hooks if hook is not None])
        scores = _measured(learner, feed, folder, machine)
        if tracked:
            tracked.scored(scores)


def _measured(learner: Learner, feed: Feed, folder: RunFolder, machine: Machine) -> dict[str, float]:
    """Save the model and its scores, and give them."""
    config, dataset = learner.config, feed.dataset
    folder.require(CONFIG, LOG)
    facts = {"format": FORMAT, "settings": config.as_dict(), "image_shape": list(dataset.image_shape)}
    facts["background"] = dataset.preparation and dataset.preparation.background
    if learner.adversary is not None:
        save_model(folder.adversary_file, module_tensors("discriminator", learner.adversary.network), facts)
    save_model(folder.model_file, module_tensors("vae", learner.vae), facts)
    scores = elbo(learner.vae, dataset, learner.device)
    if not machine.quiet:
        _say_if_nothing_is_learned(scores, config)
    folder.require(CONFIG, LOG, MODEL)
    scores |= learner.validation(feed.validation)
    folder.write_scores(scores)
    shutil.rmtree(folder.checkpoints, ignore_errors=True)  # nothing left to go on with
    return scores


def _write_config(config: Config, folder: RunFolder, dataset: Dataset) -> None:
    """Every setting and what it ran on; a folder that holds other settings, or saw other images, is refused."""
    if folder.is_run:
        if folder.config != config:
            raise UserError(f"{folder.config_file} holds other settings than its name says; move that folder away")
        folder.check(dataset)
        return
    versions = {"lddr": lddr.__version__, "torch": torch.__version__, "python": platform.python_version()}
    versions["threads"] = str(torch.get_num_threads())
    folder.write_config(config, versions, identity(dataset))


@torch.no_grad()
def elbo(vae: VAE, dataset: Dataset, device: torch.device) -> dict[str, float]:
    """Noiseless reconstruction, KL and ELBO in nats per image, on images that are the same for every run.

    Beside them what the mean of these pictures would reach: a model that does no better has learned nothing.
    """
    sums, mean = torch.zeros(2, dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for number in range(EVALUATION_BATCHES):
        drawn = dataset.draw(stream(0, "evaluation", number), EVALUATION_SIZE)
        here = as_tensor(as_floats(drawn), torch.device("cpu"))
        images = here.to(device)
        logits, latent = vae(images)
        mean = mean + here.double().mean(0) / EVALUATION_BATCHES
        sums += torch.stack([terms.bernoulli_reconstruction(logits, images), mean_kl(latent)]).cpu().double()
    reconstruction, kl = (sums / EVALUATION_BATCHES).tolist()
    trivial = float((torch.special.entr(mean) + torch.special.entr(1 - mean)).sum())
    return {"elbo": -reconstruction - kl, "reconstruction": reconstruction, "kl": kl, "mean_picture": trivial}


def _say_if_nothing_is_learned(scores: dict[str, float], config: Config) -> None:
    reached, trivial = scores["reconstruction"], scores["mean_picture"]
    if reached > LEARNED * trivial:
        steps, rate = config.training.steps, config.training.learning_rate
        say(
            f"this model has learned next to nothing: its pictures are {reached:.0f} nats from the images, one mean "
            f"picture {trivial:.0f}; try more than {steps} steps, or another learning rate than {rate:g}"
        )
