"""What a training run reports: its log, which survives a kill, TensorBoard, progress, and experiment trackers."""

import errno
import json
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from importlib.util import find_spec
from itertools import takewhile
from pathlib import Path
from queue import SimpleQueue
from typing import Any, ClassVar, Self

from lddr.console import Progress, say
from lddr.errors import UserError, check_installed, suggesting_extras, unknown
from lddr.files import reason_of, write_json, writing
from lddr.hardware import OnLog
from lddr.runs.folder import RunFolder, record_of
from lddr.runs.index import Value

Values = Mapping[str, float]
PROJECT = "lddr"
PATIENCE = 60.0  # seconds that a tracker gets at the end for what is still to be sent


class Log:
    """One JSON object per line and record, in order of the steps; an interrupted log ends with the same bytes."""

    def __init__(self, path: Path, resume_step: int | None = None) -> None:
        """Resume after `resume_step`, without the lines after it; None starts a new log."""
        self._path = path
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
            self._file.truncate(_length_until(path.read_bytes(), resume_step))

    def record(self, step: int, values: Values) -> None:
        """Append one line; the system has it, safe from a kill, when this returns."""
        line = json.dumps({"step": step, **values}).encode() + b"\n"
        with writing(self._path):
            if self._file.write(line) < len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def sync(self) -> None:
        """Flush every line to the disk, before a checkpoint that relies on them."""
        with writing(self._path):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def _length_until(content: bytes, step: int | None) -> int:
    """Return the bytes of the whole lines up to and including `step`."""

    def is_kept(line: bytes) -> bool:
        record = record_of(line)
        return step is not None and record is not None and record["step"] <= step

    return sum(map(len, takewhile(is_kept, content.splitlines(keepends=True))))


class TensorBoard:
    """Event files for TensorBoard; steps after the one resumed from are discarded and written again."""

    def __init__(self, folder: Path, resume_step: int | None = None) -> None:
        with suggesting_extras():
            from torch.utils.tensorboard import SummaryWriter
        self._folder = folder
        with writing(folder):
            self._writer = SummaryWriter(str(folder), purge_step=0 if resume_step is None else resume_step + 1)

    def record(self, step: int, values: Values) -> None:
        with writing(self._folder):
            for name, value in values.items():
                self._writer.add_scalar(name, value, step)

    def sync(self) -> None:
        with writing(self._folder):
            self._writer.flush()

    def close(self) -> None:
        with writing(self._folder):
            self._writer.close()


class TrainingLog(ExitStack):
    """Log, TensorBoard and progress of one run: `record` keeps values, `show` only displays them."""

    def __init__(
        self,
        folder: RunFolder,
        total_steps: int,
        resume_step: int | None = None,
        quiet: bool = False,
        tensorboard: bool = False,
        hooks: Sequence[OnLog] = (),
    ) -> None:
        super().__init__()
        self._hooks, self._steps = hooks, (total_steps, resume_step or 0)
        boards = [TensorBoard(folder.tensorboard, resume_step)] if tensorboard else []
        self._records: list[Log | TensorBoard] = [Log(folder.log_file, resume_step), *boards]
        self._progress = Progress(quiet, lines_every=10.0, keep=True)

    def __enter__(self) -> Self:
        for record in self._records:
            self.callback(record.close)
        self.enter_context(self._progress)
        self._task = self.enter_context(self._progress.task("training", *self._steps, "steps"))
        return self

    def record(self, step: int, values: Values) -> None:
        """Keep a line, then call the hooks."""
        for record in self._records:
            record.record(step, values)
        for hook in self._hooks:
            hook(step, values)

    def show(self, step: int, values: Values) -> None:
        self._task.update(step, lambda: "  ".join(f"{name} {value:.4g}" for name, value in values.items()))

    def sync(self) -> None:
        """Flush every record to the disk: call it before a checkpoint is saved."""
        for record in self._records:
            record.sync()


class Tracker(ABC):
    """An experiment tracker. The constructor raises UserError, before anything is trained, for what the user can fix.

    Everything else is called in one thread.
    """

    package: ClassVar[str]

    @abstractmethod
    def begin(self, run: RunFolder, settings: Mapping[str, Value], identity: str | None) -> str:
        """Start a run, or resume the one of this identity; return its identity."""

    @abstractmethod
    def log(self, step: int, values: Values) -> None: ...

    @abstractmethod
    def end(self, step: int, scores: Values, is_finished: bool) -> None: ...


class Wandb(Tracker):
    """Weights & Biases, with its files in the run's folder; WANDB_MODE=offline keeps everything there."""

    package = "wandb"

    def __init__(self) -> None:
        import wandb

        if os.environ.get("WANDB_MODE", "online") != "online":
            return
        try:
            wandb.login()
        except Exception as error:  # whatever it raises, there is no login
            fix = "log in with: wandb login, or keep everything here with WANDB_MODE=offline"
            raise UserError(f"wandb cannot be used ({reason_of(error)}); {fix}") from error

    def begin(self, run: RunFolder, settings: Mapping[str, Value], identity: str | None) -> str:
        import wandb

        names: Any = {"project": os.environ.get("WANDB_PROJECT", PROJECT), "name": run.path.name, "dir": str(run.path)}
        options: Any = {"reinit": "create_new", "settings": wandb.Settings(console="off", silent=True)}
        self._run = wandb.init(**names, id=identity, resume="allow", config=dict(settings), **options)
        if not self._run.offline and self._run.url:
            say(f"tracked at {self._run.url}")
        return self._run.id

    def log(self, step: int, values: Values) -> None:
        self._run.log(dict(values), step=step)

    def end(self, step: int, scores: Values, is_finished: bool) -> None:
        self._run.summary.update(dict(scores))
        self._run.finish(exit_code=0 if is_finished else 1)


class MLflow(Tracker):
    """MLflow, at MLFLOW_TRACKING_URI if it is set, else in `mlflow.db` or `mlruns` next to the run's folder."""

    package = "mlflow"

    def begin(self, run: RunFolder, settings: Mapping[str, Value], identity: str | None) -> str:
        import mlflow
        from mlflow.entities import Param

        self._client = mlflow.MlflowClient(None if mlflow.is_tracking_uri_set() else self.local_uri(run))
        if identity is None:
            identity = self._client.create_run(self._experiment(), run_name=run.path.name).info.run_id
            self._client.log_batch(identity, params=[Param(name, str(value)) for name, value in settings.items()])
        self._client.update_run(identity, status="RUNNING")
        self._run = identity
        return identity

    @staticmethod
    def local_uri(run: RunFolder) -> str:
        """Return a database, or plain files if what MLflow needs for a database is not installed."""
        place = run.path.parent.resolve()
        if find_spec("sqlalchemy"):
            return f"sqlite:///{place / 'mlflow.db'}"
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        return (place / "mlruns").as_uri()

    def _experiment(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        try:
            return self._client.create_experiment(name)
        except Exception:  # it exists, or another run creates it at the same time
            if found := self._client.get_experiment_by_name(name):
                return found.experiment_id
            raise

    def log(self, step: int, values: Values) -> None:
        from mlflow.entities import Metric

        now = round(time.time() * 1000)
        self._client.log_batch(self._run, [Metric(name, value, now, step) for name, value in values.items()])

    def end(self, step: int, scores: Values, is_finished: bool) -> None:
        self.log(step, scores)
        self._client.set_terminated(self._run, "FINISHED" if is_finished else "KILLED")


class Trackio(Tracker):
    """Trackio, at TRACKIO_DIR or TRACKIO_SPACE_ID; it finds a run again by its name."""

    package = "trackio"

    def begin(self, run: RunFolder, settings: Mapping[str, Value], identity: str | None) -> str:
        import trackio

        project, name = os.environ.get("TRACKIO_PROJECT", PROJECT), identity or run.path.name
        with redirect_stdout(sys.stderr):  # it prints a greeting, and stdout is for results
            resume = "allow" if identity else "never"
            self._run = trackio.init(project, name, config=dict(settings), resume=resume, embed=False)
        return self._run.name

    def log(self, step: int, values: Values) -> None:
        self._run.log(dict(values), step=step)

    def end(self, step: int, scores: Values, is_finished: bool) -> None:
        if scores:
            self._run.log(dict(scores), step=step)
        with redirect_stdout(sys.stderr):
            self._run.finish()


TRACKERS: dict[str, type[Tracker]] = {tracker.package: tracker for tracker in (Wandb, MLflow, Trackio)}


class TrackedRun:
    """A run in a tracker, which a thread feeds so that training never waits; if it fails, training continues.

    The run's identity in the tracker and the last step sent are kept in the run's folder: a resumed run is the same
    run there.
    """

    def __init__(self, name: str, run: RunFolder, settings: Mapping[str, Value]) -> None:
        if name not in TRACKERS:
            raise UserError(unknown("tracker", name, TRACKERS))
        check_installed(name)
        self._name, self._run, self._settings = name, run, settings
        self._tracker = TRACKERS[name]()
        self._queue: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"lddr-{name}", daemon=True)
        self._scores: Values = {}
        self._step = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *problem: object) -> None:
        self._queue.put(lambda: self._tracker.end(self._step, self._scores, kind is None))
        self._queue.put(None)
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            say(f"{self._name} did not take everything within {PATIENCE:g} s; {self._run.log_file} has it")

    def record(self, step: int, values: Values) -> None:
        """Send a line of the log; a step that was sent before, with the same values, is not repeated."""
        self._queue.put(lambda: self._log(step, dict(values)))

    def set_scores(self, scores: Values) -> None:
        """Send these scores at the end."""
        self._scores = {f"final/{name}": value for name, value in scores.items()}

    def _work(self) -> None:
        try:
            known = self._run.tracked_as.get(self._name, {})
            self._step = known.get("step", 0)
            self._identity = self._tracker.begin(self._run, self._settings, known.get("id"))
            self._keep()
            while (send := self._queue.get()) is not None:
                send()
        except Exception as error:  # a network, an account, a full disk elsewhere
            say(f"{self._name} no longer tracks {self._run.path.name} ({reason_of(error)}); training continues")

    def _log(self, step: int, values: Values) -> None:
        if step > self._step:
            self._tracker.log(step, values)
            self._step = step
            self._keep()

    def _keep(self) -> None:
        if self._run.is_run:  # otherwise writing would bring back a folder that was removed
            kept = {"id": self._identity, "step": self._step}
            write_json(self._run.tracking_file, self._run.tracked_as | {self._name: kept})
