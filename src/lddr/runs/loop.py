"""The one training loop."""

import math
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from lddr.console import say
from lddr.errors import UserError
from lddr.hardware import Machine, OnLog
from lddr.runs.folder import CONFIG, LOG, RunFolder
from lddr.runs.tracking import TrainingLog
from lddr.training import checkpoint
from lddr.training.batches import Batches
from lddr.training.collapse import CollapseWatch
from lddr.training.trainer import LOG_EVERY, LossAverages, Trainer, log_interval

FORMAT = 2  # of checkpoints; those without a number have 100 steps in every line and a noise schedule a step shorter


class Stopped(KeyboardInterrupt):
    """Training was asked to stop and has saved its state; a handler of errors must not continue."""


def train(trainer: Trainer, batches: Batches, folder: RunFolder, machine: Machine, hooks: Sequence[OnLog] = ()) -> None:
    """Train to the last step, from the folder's newest checkpoint if there is one; call hooks with each log line."""
    steps = trainer.config.training.steps
    interval = log_interval(steps)
    found = _newest(trainer, folder)
    first, sums = 0, None
    if found is not None:
        trainer.restore(found.tensors)
        first, sums = found.step, found.tensors.get("sums")
    log = TrainingLog(folder, steps, first or None, machine.quiet, machine.tensorboard, hooks)
    averages, saved_at = LossAverages(first, sums), time.monotonic()
    watch = CollapseWatch(trainer.vae, batches.dataset, trainer.config)
    with _asked_to_stop() as stop, log:
        for step in range(first, steps):
            averages.add(trainer.step(batches.batch(step)))

            is_last, stops = step + 1 == steps, stop.is_set()
            logs = is_last or (step + 1) % interval == 0
            saves = not is_last and (stops or time.monotonic() - saved_at > machine.checkpoint_seconds)
            if trainer.checks_every_step or logs or saves:
                _check_finite(averages.read(), folder)
            log.show(step + 1, averages.latest)
            if logs:
                log.record(step + 1, averages.line(step % interval + 1) | trainer.validation(batches.validation))
                watch.look(step + 1)
            if saves:
                log.sync()
                folder.require(CONFIG, LOG)  # otherwise writing would bring back a removed folder
                state = trainer.tensors() | ({} if averages.sums is None else {"sums": averages.sums})
                facts = {"format": FORMAT, "fingerprint": trainer.config.fingerprint}
                checkpoint.save(folder.checkpoints, step + 1, state, facts)
                saved_at = time.monotonic()
            if stops and not is_last:
                raise Stopped(f"stopped at step {step + 1} of {steps}, saved in {folder}; start it again to resume")
        log.sync()


def _newest(trainer: Trainer, folder: RunFolder) -> checkpoint.Checkpoint | None:
    """Return the newest checkpoint that this run can be resumed from, with a warning if its format is older."""
    found = checkpoint.load_newest(folder.checkpoints, warn=say)
    if found is None:
        return None
    config, latent, steps = trainer.config, trainer.vae.latent, trainer.config.training.steps
    interval = log_interval(steps)
    if "format" not in found.facts:
        older = f"the checkpoint of step {found.step} in {folder} is of an older version of lddr"
        if interval < LOG_EVERY:
            say(f"{older}, which logged a run of {steps} steps in other lines; starting from the beginning")
            return None
        if latent.noise_scale(0, steps) != latent.noise_scale(steps, steps):
            say(f"{older}, whose noise schedule ended a step earlier; resuming with the schedule of this version")
    check_origin(found, config.fingerprint, interval, folder)
    return found


def check_origin(found: checkpoint.Checkpoint, fingerprint: str, interval: int, folder: RunFolder) -> None:
    """Raise UserError for a checkpoint of another run, or if the log lost lines from before the checkpoint."""
    origin = found.facts.get("fingerprint", fingerprint)
    if origin != fingerprint:
        what = f"the checkpoint of step {found.step} in {folder} is of another run, {origin!r}, not of {fingerprint}"
        raise UserError(f"{what}; move that folder away")
    logged = found.step - found.step % interval
    if logged and all(record["step"] != logged for record in folder.log):
        state = f"the checkpoint of step {found.step} counts on"
        raise UserError(f"{folder.log_file} has no line of step {logged}, which {state}; move that folder away")


def _check_finite(terms: Mapping[int, Mapping[str, float]], folder: RunFolder) -> None:
    """Raise UserError at a loss that is NaN or infinite, which the trainer did not apply, and name the term."""
    for step, values in terms.items():
        if math.isfinite(values["loss"]):
            continue
        non_finite = [name for name, value in values.items() if not math.isfinite(value)]
        culprit = next((name for name in non_finite if name not in ("loss", "elbo")), "loss")
        kept = folder.saved_step
        last = f"the last good checkpoint is of step {kept}" if kept else "there is no checkpoint yet"
        raise UserError(f"training diverged at step {step}: {culprit} is not finite; {last}; try a lower learning rate")


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set instead of ending the process; a second Ctrl-C ends it at once."""
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
