"""What a worker of a sweep does: train and evaluate one run, unless somebody else is at it."""

import os
import platform
import secrets
import traceback
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lddr.config import Config
from lddr.errors import UserError
from lddr.files import BusyError, alone, write_json
from lddr.runs.folder import RunFolder, loaded
from lddr.runs.machine import Machine

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset


@dataclass(frozen=True)
class Order:
    """One run: its settings, where it goes, what to measure, and how to carry it out."""

    config: Config
    out: Path
    mark: str  # what `mark_of` gives for `out` where the sweep was started
    home: Path  # relative paths of datasets count from here
    metrics: tuple[str, ...]
    scoring: Mapping[str, Mapping[str, Any]]  # settings of metrics that are not the published ones
    machine: Machine

    @property
    def folder(self) -> Path:
        return self.out / self.config.run_name


@dataclass(frozen=True)
class Answer:
    """How it ended: "refused" is the user's to mend, "failed" may go well another time, "busy" is somebody else's."""

    state: Literal["finished", "busy", "refused", "failed"]
    error: str = ""
    trained: bool = False  # and not only evaluated, or found finished


def carry_out(order: Order, dataset: "Dataset | None" = None) -> Answer:
    """Train and evaluate; every end is an answer, so that an exception means a lost process.

    The dataset is for images that only the sweep has in memory; others are loaded here, by their name.
    """
    from lddr.training.loop import Stopped

    try:
        return Answer("finished", trained=_train_and_evaluate(order, dataset))
    except BusyError:
        return Answer("busy")
    except Stopped:
        return Answer("failed", "its worker was asked to stop")
    except UserError as error:
        return Answer("refused", str(error))
    except Exception as error:
        with suppress(OSError):
            RunFolder(order.folder).error_file.write_text(traceback.format_exc())
        return Answer("failed", f"{type(error).__name__}: {error}")


def _train_and_evaluate(order: Order, dataset: "Dataset | None") -> bool:
    import torch

    from lddr.hardware import keep_freed_memory
    from lddr.metrics.evaluate import evaluate_run
    from lddr.runs.carry_out import run

    _check_that_it_is_shared(order)
    with suppress(OSError):  # a node may do without it: only relative paths need it
        os.chdir(order.home)
    torch.set_num_threads(order.machine.threads or 1)
    if order.machine.device == "cpu":
        keep_freed_memory()
    folder = RunFolder(order.folder)
    with folder.alone("sweep", wait=False):
        with folder.alone("run", wait=False):  # a `lddr train` of this run: come back later, too
            trained = not folder.is_finished
        if dataset is None:
            dataset = loaded(*order.config.images)
        run(order.config, order.out, order.machine, dataset)
        if order.metrics:
            jobs, device = order.machine.threads or 1, order.machine.device
            evaluate_run(folder.path, order.metrics, settings=order.scoring, jobs=jobs, quiet=True, device=device)
            if order.machine.track is not None:
                _tell_scores(order.machine.track, folder)
        folder.error_file.unlink(missing_ok=True)
    return trained


def _tell_scores(tracker: str, folder: RunFolder) -> None:
    from lddr.runs.index import read_run
    from lddr.training.trackers import Tracked

    run = read_run(folder.path)
    with Tracked(tracker, folder, run.settings) as tracked:
        tracked.scored({name: value for name, value in run.scores.items() if "." not in name})


def mark_of(out: Path) -> str:
    """Characters kept in a folder by which other machines tell that they see the same one."""
    path = out / ".mark.json"
    with alone(out / "mark"):
        if not path.exists():
            write_json(path, secrets.token_hex(8))
    return path.read_text()


def _check_that_it_is_shared(order: Order) -> None:
    try:
        seen = (order.out / ".mark.json").read_text()
    except OSError:
        seen = None
    if seen != order.mark:
        raise UserError(f"{platform.node()} does not see this {order.out}; use an --out on a disk all nodes share")
