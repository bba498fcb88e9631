"""The one training loop."""

import math
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

import torch

from lddr.console import say
from lddr.errors import UserError
from lddr.runs.folder import CONFIG, LOG, RunFolder
from lddr.runs.machine import Machine
from lddr.training import checkpoint
from lddr.training.feed import Feed, Labels
from lddr.training.learner import Learner
from lddr.training.tracking import Tracker

LOG_EVERY = 100  # steps; a line of the log is the mean over them


class Stopped(KeyboardInterrupt):
    """Training was asked to stop and has saved its state; whoever catches errors and goes on shall not go on."""


def train(learner: Learner, feed: Feed, labels: Labels | None, folder: RunFolder, machine: Machine) -> None:
    """Train to the last step, from the newest checkpoint in the folder if there is one."""
    steps = learner.config.training.steps
    found = checkpoint.load_newest(folder.checkpoints, warn=say)
    first, sums = 0, None
    if found is not None:
        _check_origin(found, learner.config.fingerprint, folder)
        learner.restore(found.tensors)
        first, sums = found.step, found.tensors.get("sums")
    tracker = Tracker(folder, steps, first or None, machine.quiet, machine.tensorboard)
    saved_at = time.monotonic()
    with _asked_to_stop() as stop, tracker:
        for step in range(first, steps):
            loss, parts = learner.losses(feed.batch(step), labels.train.batch(step) if labels else None, step)
            values = torch.stack(list(parts.values())).cpu().double()
            _check(dict(zip(parts, values.tolist(), strict=True)), step, folder)
            learner.update(loss, step)

            sums = values if sums is None else sums + values
            tracker.show(step + 1, parts)
            if (step + 1) % LOG_EVERY == 0:
                means = dict(zip(parts, (sums / LOG_EVERY).tolist(), strict=True))
                tracker.record(step + 1, means | (learner.validation(labels.validation) if labels else {}))
                sums = None
            late = time.monotonic() - saved_at > machine.checkpoint_seconds
            if step + 1 < steps and (late or stop.is_set()):
                tracker.sync()
                folder.require(CONFIG, LOG)  # else writing would bring back a folder that somebody removed
                state = learner.tensors() | ({} if sums is None else {"sums": sums})
                checkpoint.save(folder.checkpoints, step + 1, state, {"fingerprint": learner.config.fingerprint})
                saved_at = time.monotonic()
            if step + 1 < steps and stop.is_set():
                raise Stopped(f"stopped at step {step + 1} of {steps}, saved in {folder}; start it again to go on")
        tracker.sync()


def _check_origin(found: checkpoint.Checkpoint, fingerprint: str, folder: RunFolder) -> None:
    """Refuse a state of another run, and a log that lost lines which this state counts on."""
    origin = found.facts.get("fingerprint", fingerprint)
    if origin != fingerprint:
        what = f"the checkpoint of step {found.step} in {folder} is of another run, {origin}, not of {fingerprint}"
        raise UserError(f"{what}; move that folder away")
    logged = found.step - found.step % LOG_EVERY
    if logged and all(record["step"] != logged for record in folder.log):
        state = f"the checkpoint of step {found.step} counts on"
        raise UserError(f"{folder.log_file} has no line of step {logged}, which {state}; move that folder away")


def _check(values: Mapping[str, float], step: int, folder: RunFolder) -> None:
    """Stop before a loss that is no number spoils the weights, and say which term it was."""
    if math.isfinite(values["loss"]):
        return
    spoiled = [name for name, value in values.items() if name not in ("loss", "elbo") and not math.isfinite(value)]
    culprit = spoiled[0] if spoiled else "loss"
    kept = folder.saved_step
    last = f"the last good checkpoint is of step {kept}" if kept else "there is no checkpoint yet"
    raise UserError(f"training diverged at step {step}: {culprit} is not finite; {last}; try a lower learning rate")


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """An event that Ctrl-C and SIGTERM set, instead of ending the process at once; a second Ctrl-C does that."""
    stop = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def note(number: int, frame: FrameType | None) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
