"""Other people's trackers: each is told about a run in a thread of its own, so that training never waits for it."""

import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from importlib.util import find_spec
from queue import SimpleQueue
from typing import Any, ClassVar, Self

from lddr.console import say
from lddr.errors import UserError, check_installed, unknown
from lddr.files import reason_of, write_json
from lddr.runs.folder import RunFolder
from lddr.runs.index import Value

PROJECT = "lddr"
PATIENCE = 60.0  # seconds at the end for what is still to be sent


class Service(ABC):
    """A tracker: what it does with a run; everything but `prepare` happens in the same thread."""

    package: ClassVar[str]

    def prepare(self) -> None:  # noqa: B027 (most need nothing)
        """Refuse, before anything is trained, what the user can mend."""

    @abstractmethod
    def begin(self, run: RunFolder, settings: Mapping[str, Value], identity: str | None) -> str:
        """Begin a run, or go on with the one of this identity; gives its identity."""

    @abstractmethod
    def log(self, step: int, values: Mapping[str, float]) -> None: ...

    @abstractmethod
    def end(self, step: int, scores: Mapping[str, float], is_finished: bool) -> None: ...


class Wandb(Service):
    """Weights & Biases, below the run's folder as far as it writes files; WANDB_MODE=offline keeps all of it there."""

    package = "wandb"

    def prepare(self) -> None:
        import wandb

        if os.environ.get("WANDB_MODE", "online") != "online":
            return
        try:
            wandb.login()
        except Exception as error:  # whatever it raises, there is no login
            mend = "log in with: wandb login, or keep everything here with WANDB_MODE=offline"
            raise UserError(f"wandb cannot be used ({reason_of(error)}); {mend}") from error

    def begin(self, run: RunFolder, settings: Mapping[str, Value], identity: str | None) -> str:
        import wandb

        names: Any = {"project": os.environ.get("WANDB_PROJECT", PROJECT), "name": run.path.name, "dir": str(run.path)}
        options: Any = {"reinit": "create_new", "settings": wandb.Settings(console="off", silent=True)}
        self._run = wandb.init(**names, id=identity, resume="allow", config=dict(settings), **options)
        if not self._run.offline and self._run.url:
            say(f"tracked at {self._run.url}")
        return self._run.id

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def end(self, step: int, scores: Mapping[str, float], is_finished: bool) -> None:
        self._run.summary.update(dict(scores))
        self._run.finish(exit_code=0 if is_finished else 1)


class MLflow(Service):
    """MLflow, where MLFLOW_TRACKING_URI says, else in `mlflow.db` or `mlruns` beside the run's folder."""

    package = "mlflow"

    def begin(self, run: RunFolder, settings: Mapping[str, Value], identity: str | None) -> str:
        import mlflow
        from mlflow.entities import Param

        self._client = mlflow.MlflowClient(None if mlflow.is_tracking_uri_set() else self._beside(run))
        if identity is not None:
            self._client.update_run(identity, status="RUNNING")
            self._run = identity
            return identity
        self._run = self._client.create_run(self._experiment(), run_name=run.path.name).info.run_id
        self._client.log_batch(self._run, params=[Param(name, str(value)) for name, value in settings.items()])
        return self._run

    @staticmethod
    def _beside(run: RunFolder) -> str:
        """A database; plain files where what MLflow needs for one is not installed, which it wants to be told."""
        place = run.path.parent.resolve()
        if find_spec("sqlalchemy"):
            return f"sqlite:///{place / 'mlflow.db'}"
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
        return (place / "mlruns").as_uri()

    def _experiment(self) -> str:
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT)
        for _ in range(2):  # another run may make it at the same time
            if found := self._client.get_experiment_by_name(name):
                return found.experiment_id
            try:
                return self._client.create_experiment(name)
            except Exception as error:
                reason = error
        raise reason

    def log(self, step: int, values: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = round(time.time() * 1000)
        self._client.log_batch(self._run, [Metric(name, value, now, step) for name, value in values.items()])

    def end(self, step: int, scores: Mapping[str, float], is_finished: bool) -> None:
        self.log(step, scores)
        self._client.set_terminated(self._run, "FINISHED" if is_finished else "KILLED")


class Trackio(Service):
    """Trackio, where TRACKIO_DIR or TRACKIO_SPACE_ID says; it finds a run again by its name."""

    package = "trackio"

    def begin(self, run: RunFolder, settings: Mapping[str, Value], identity: str | None) -> str:
        import trackio

        project, name = os.environ.get("TRACKIO_PROJECT", PROJECT), identity or run.path.name
        with redirect_stdout(sys.stderr):  # which it greets on, and where others expect results
            resume = "allow" if identity else "never"
            self._run = trackio.init(project, name, config=dict(settings), resume=resume, embed=False)
        return self._run.name

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def end(self, step: int, scores: Mapping[str, float], is_finished: bool) -> None:
        if scores:
            self._run.log(dict(scores), step=step)
        with redirect_stdout(sys.stderr):
            self._run.finish()


SERVICES: dict[str, type[Service]] = {service.package: service for service in (Wandb, MLflow, Trackio)}


class Tracked:
    """A run as a tracker sees it; whatever goes wrong there is said once, and the run goes on without it.

    What it is called there, and how far it was told, is kept in the run's folder: a run that goes on is the same there.
    """

    def __init__(self, name: str, run: RunFolder, settings: Mapping[str, Value]) -> None:
        if name not in SERVICES:
            raise UserError(unknown("tracker", name, SERVICES))
        check_installed(name)
        self._name, self._run, self._settings = name, run, settings
        self._service = SERVICES[name]()
        self._service.prepare()
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"lddr-{name}", daemon=True)
        self._scores: Mapping[str, float] = {}
        self._step = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *problem: object) -> None:
        self._orders.put(lambda: self._service.end(self._step, self._scores, kind is None))
        self._orders.put(None)
        self._thread.join(PATIENCE)
        if self._thread.is_alive():
            say(f"{self._name} did not take everything within {PATIENCE:g} s; {self._run.log_file} has it")

    def record(self, step: int, values: Mapping[str, float]) -> None:
        """What stands in a line of the log; a step that was told before, which is the same again, is not repeated."""
        self._orders.put(lambda: self._log(step, dict(values)))

    def scored(self, scores: Mapping[str, float]) -> None:
        """What came of it."""
        self._scores = {f"final/{name}": value for name, value in scores.items()}

    def _work(self) -> None:
        try:
            known = self._run.tracked_as.get(self._name, {})
            self._step = known.get("step", 0)
            self._identity = self._service.begin(self._run, self._settings, known.get("id"))
            self._keep()
            while (order := self._orders.get()) is not None:
                order()
        except Exception as error:  # a network, an account, a full disk elsewhere
            say(f"{self._name} no longer tracks {self._run.path.name} ({reason_of(error)}); the run goes on")

    def _log(self, step: int, values: dict[str, float]) -> None:
        if step > self._step:
            self._service.log(step, values)
            self._step = step
            self._keep()

    def _keep(self) -> None:
        if self._run.is_run:  # else writing would bring back a folder that somebody removed
            kept = {"id": self._identity, "step": self._step}
            write_json(self._run.tracking_file, self._run.tracked_as | {self._name: kept})
