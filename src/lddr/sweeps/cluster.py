"""A study on Ray: workers that train and score runs, and the queue that feeds them."""

import logging
import os
import platform
import secrets
import signal
import socket
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lddr.config import Config
from lddr.data.dataset import Dataset
from lddr.data.load import load_dataset
from lddr.errors import UserError, check_installed
from lddr.files import BusyError, alone, write_json
from lddr.hardware import Machine, keep_freed_memory, usable_cores
from lddr.runs.folder import RunFolder, loaded
from lddr.sweeps.progress import Job, SweepProgress, stage_of
from lddr.sweeps.study import Study

SPARE_RUNS = 1  # requested beyond the room there is: a cluster that grows on demand must see a demand
RETRY_SECONDS = 2.0  # before a run is tried again
POLL_SECONDS = 1.0  # between two looks at the runs
SAVING_SECONDS = 60.0  # that the runs get to save when the sweep is stopped
OBJECT_STORE = 80 * 2**20  # bytes, about the least Ray accepts: only settings and results go through it


@dataclass(frozen=True)
class SweepOptions:
    """Where and how a sweep runs; none of it changes the results."""

    address: str | None = None  # None: this machine
    workers: int | None = None  # None: as many runs at once as there is room for
    cpus_per_run: int = 1
    gpus_per_run: float = 0.0
    retries: int = 3
    checkpoint_seconds: float = Machine.checkpoint_seconds
    quiet: bool = False
    track: str | None = None  # the experiment tracker that receives every run
    tensorboard: bool = False
    compile: bool = False

    def __post_init__(self) -> None:
        workers = 1 if self.workers is None else self.workers
        if min(workers, self.cpus_per_run) < 1 or min(self.gpus_per_run, self.retries) < 0:
            raise UserError("a sweep needs at least one worker and one CPU per run; GPUs and retries are 0 or more")

    @property
    def machine(self) -> Machine:
        """How each run is trained."""
        return Machine(
            device="cuda" if self.gpus_per_run else "cpu",
            threads=self.cpus_per_run,
            quiet=True,
            checkpoint_seconds=self.checkpoint_seconds,
            track=self.track,
            tensorboard=self.tensorboard,
            compile=self.compile,
        )


@dataclass(frozen=True)
class Failure:
    """A run that could not be finished, and why."""

    folder: Path
    error: str


@dataclass
class Outcome:
    """How many runs existed before, were finished now (and trained by this sweep), and which failed."""

    there: int = 0
    finished: int = 0
    trained: int = 0
    failures: list[Failure] = field(default_factory=list)
    stopped: bool = False


def run_study(study: Study, out: Path, options: SweepOptions | None = None, dataset: Dataset | None = None) -> Outcome:
    """Train and evaluate the runs of a study that are missing below `out`; a failing run does not stop the others.

    `dataset` holds the images of all runs if they are only in memory; otherwise workers load them by name.
    """
    options, out, wanted = options or SweepOptions(), out.absolute(), study.wanted
    jobs = [Job(config, out / config.run_name) for config in study.configs]
    stages = {job: stage_of(job.config, out, wanted)[0] for job in jobs}
    finished = [job for job in jobs if stages[job] == "finished"]
    missing = [job for job in jobs if stages[job] != "finished"]
    failures = _on_other_images(finished, options, dataset)
    outcome = Outcome(there=len(finished) - len(failures), failures=failures)
    if missing:
        check_installed("ray")
        if options.address is None:  # a cluster may have what is not installed here
            check_installed("torch")
        shared = (out, mark_of(out), Path.cwd(), tuple(study.metrics), study.scoring, options.machine)
        with connected(options) as ray, sigterm_is_ctrl_c():
            images = () if dataset is None else (_sent(ray, dataset),)  # once, not with every run
            tasks = {job: (RunTask(job.config, *shared), *images) for job in missing}
            with SweepProgress(study.name, missing, outcome.there, options.quiet) as progress:
                _Queue(ray, options, progress, outcome).work(tasks)
    return outcome


def _on_other_images(finished: Iterable[Job], options: SweepOptions, in_memory: Dataset | None) -> list[Failure]:
    """Return the finished runs whose images or labels have changed since; each dataset is loaded once.

    A cluster may have images that are not here: then there is nothing to compare with.
    """
    failures = []
    datasets: dict[Any, Dataset | None] = {}
    for job in finished:
        images = job.config.images
        if images not in datasets:
            datasets[images] = in_memory
            with nullcontext() if options.address is None else suppress(UserError):
                datasets[images] = in_memory or load_dataset(*images)
        if (dataset := datasets[images]) is not None:
            try:
                RunFolder(job.folder).check(dataset)
            except UserError as error:
                failures.append(Failure(job.folder, str(error)))
    return failures


class _Queue:
    """Keeps as many runs in flight as there is room for, until every run is finished or given up.

    Ray's own retries would neither report the reason nor distinguish a busy run from a failed one.
    """

    def __init__(self, ray: Any, options: SweepOptions, progress: SweepProgress, outcome: Outcome) -> None:
        self._ray, self._options, self._progress, self._outcome = ray, options, progress, outcome
        self._waiting: deque[tuple[float, Job]] = deque()  # with the time from which on they may start, in its order
        self._flying: dict[Any, Job] = {}
        self._attempts: Counter[Job] = Counter()

    def work(self, tasks: Mapping[Job, Sequence[Any]]) -> None:
        """Run all tasks, each given by the arguments of `run_task`."""
        needs = {"num_cpus": self._options.cpus_per_run, "num_gpus": self._options.gpus_per_run}
        remote = self._ray.remote(max_retries=0, **needs)(run_task)
        self._waiting.extend((0.0, job) for job in tasks)
        try:
            while self._waiting or self._flying:
                free = self._window() - len(self._flying)
                while free > 0 and self._waiting and self._waiting[0][0] <= time.monotonic():
                    _, job = self._waiting.popleft()
                    self._flying[remote.options(name=job.folder.name).remote(*tasks[job])] = job
                    free -= 1
                if self._flying:
                    for done in self._ray.wait(list(self._flying), num_returns=1, timeout=POLL_SECONDS)[0]:
                        self._settle(self._flying.pop(done), self._result(done))
                else:
                    time.sleep(POLL_SECONDS / 4)
                self._progress.look(self._flying.values())
        except KeyboardInterrupt:
            self._outcome.stopped = True
            self._stop()

    def _window(self) -> int:
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        fitting = sum(room(node, self._options) for node in nodes)
        if not fitting:
            gpus = f" and {self._options.gpus_per_run:g} GPUs" if self._options.gpus_per_run else ""
            needs = f"a run needs {self._options.cpus_per_run} CPUs{gpus}"
            if self._options.address is None:
                raise UserError(f"{needs}, more than there is here; lower --cpus-per-run or --gpus-per-run")
            self._progress.say(f"{needs}, and no node has them yet: waiting for one that has", once=True)
        return min(fitting + SPARE_RUNS, self._options.workers or fitting + SPARE_RUNS)

    def _result(self, done: Any) -> "TaskResult":
        """Return the worker's result, or how the worker was lost."""
        try:
            return self._ray.get(done)
        except self._ray.exceptions.RayError as error:
            return TaskResult("failed", f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")

    def _settle(self, job: Job, result: "TaskResult") -> None:
        if result.state == "finished":
            self._outcome.finished += 1
            self._outcome.trained += result.trained
            self._progress.finished(job)
            return
        self._attempts[job] += result.state != "busy"  # another process works on it: look again later
        if result.state == "refused" or self._attempts[job] > self._options.retries:
            self._outcome.failures.append(Failure(job.folder, result.error))
            self._progress.failed(job, result.error)
            return
        self._waiting.append((time.monotonic() + RETRY_SECONDS, job))
        if result.state == "failed":
            self._progress.say(f"{job.folder.name} will be tried again: {result.error}")

    def _stop(self) -> None:
        """Let every run save and end: `cancel` is a Ctrl-C to a worker's main thread, which training handles."""
        self._progress.say("stopping: the runs save their state (Ctrl-C again to leave at once)")
        for task in self._flying:
            self._ray.cancel(task)
        if self._flying:
            self._ray.wait(list(self._flying), num_returns=len(self._flying), timeout=SAVING_SECONDS)


def _sent(ray: Any, dataset: Dataset) -> Any:
    try:
        return ray.put(dataset)
    except TypeError as error:  # what Ray raises if something cannot be pickled
        reason = str(error).strip().splitlines()[0]
        fix = "give them as an array or a folder"
        raise UserError(f"the images {dataset.name} cannot be sent to other processes ({reason}); {fix}") from error


def room(resources: dict[str, float], options: SweepOptions) -> int:
    """Return how many runs fit on a node with these resources."""
    needs = {"CPU": options.cpus_per_run, "GPU": options.gpus_per_run}
    return min(int(resources.get(name, 0) / need + 1e-6) for name, need in needs.items() if need)


# in a worker


@dataclass(frozen=True)
class RunTask:
    """One run: its settings, where it is saved, which metrics to compute, and how to train it."""

    config: Config
    out: Path
    mark: str  # the result of `mark_of(out)` where the sweep was started
    home: Path  # relative paths of datasets start here
    metrics: tuple[str, ...]
    scoring: Mapping[str, Mapping[str, Any]]  # settings of metrics that differ from the published ones
    machine: Machine


@dataclass(frozen=True)
class TaskResult:
    """How a task ended: the user must fix "refused", "failed" may succeed later, "busy" belongs to another process."""

    state: Literal["finished", "busy", "refused", "failed"]
    error: str = ""
    trained: bool = False  # and not only evaluated, or found finished


def run_task(task: RunTask, dataset: Dataset | None = None) -> TaskResult:
    """Train and evaluate a run; errors become results, so an exception means that the process was lost.

    `dataset` holds images that only the sweep has in memory; others are loaded here, by their name.
    """
    from lddr.runs.loop import Stopped

    try:
        return TaskResult("finished", trained=_train_and_evaluate(task, dataset))
    except BusyError:
        return TaskResult("busy")
    except Stopped:
        return TaskResult("failed", "its worker was asked to stop")
    except UserError as error:
        return TaskResult("refused", str(error))
    except Exception as error:
        with suppress(OSError):
            RunFolder(task.out / task.config.run_name).error_file.write_text(traceback.format_exc())
        return TaskResult("failed", f"{type(error).__name__}: {error}")


def _train_and_evaluate(task: RunTask, dataset: Dataset | None) -> bool:
    """Return whether the run was trained here."""
    import torch

    from lddr.runs.evaluate import evaluate_run
    from lddr.runs.run import run

    _check_shared(task)
    with suppress(OSError):  # a node may lack it: only relative paths need it
        os.chdir(task.home)
    threads, device = task.machine.threads or 1, task.machine.device
    torch.set_num_threads(threads)
    if device == "cpu":
        keep_freed_memory()
    folder = RunFolder(task.out / task.config.run_name)
    with folder.alone("sweep", wait=False):
        with folder.alone("run", wait=False):  # a `lddr train` of this run: try again later, too
            trained = not folder.is_finished
        run(task.config, task.out, task.machine, loaded(*task.config.images) if dataset is None else dataset)
        if task.metrics:
            evaluate_run(folder.path, task.metrics, settings=task.scoring, jobs=threads, quiet=True, device=device)
            if task.machine.track is not None:
                _send_scores(task.machine.track, folder)
        folder.error_file.unlink(missing_ok=True)
    return trained


def _send_scores(tracker: str, folder: RunFolder) -> None:
    from lddr.runs.index import read_run
    from lddr.runs.tracking import TrackedRun

    run = read_run(folder.path)
    with TrackedRun(tracker, folder, run.settings) as tracked:
        tracked.set_scores({name: value for name, value in run.scores.items() if "." not in name})


def mark_of(out: Path) -> str:
    """Return random characters kept in a folder, by which other machines recognise that they see the same one."""
    path = out / ".mark.json"
    with alone(out / "mark"):
        if not path.exists():
            write_json(path, secrets.token_hex(8))
    return path.read_text()


def _check_shared(task: RunTask) -> None:
    seen = None
    with suppress(OSError):
        seen = (task.out / ".mark.json").read_text()
    if seen != task.mark:
        raise UserError(f"{platform.node()} does not see this {task.out}; use an --out on a disk all nodes share")


# Ray's processes


@contextmanager
def connected(options: SweepOptions) -> Iterator[Any]:
    """Connect to the Ray that is initialised, else to the cluster, else to a new local one on all cores."""
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SCHEDULER_EVENTS": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    os.environ.update(quiet | dict(os.environ))
    import ray

    if ray.is_initialized():
        yield ray
        return
    where: dict[str, Any] = {"address": options.address}
    if options.address is None:
        where = {"address": "local", "num_cpus": usable_cores(), "object_store_memory": OBJECT_STORE}
        where["include_dashboard"] = False
    try:
        _check_reachable(options.address or "")
        ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # Ray raises that class itself if a busy machine starts it too slowly
        place, reason = options.address or "this machine", str(error).strip().splitlines()[0]
        raise UserError(f"cannot reach Ray at {place} ({reason}); see docs/cluster.md") from error
    ray._private.worker._worker_logs_enabled = False  # otherwise every lost worker is a paragraph on stdout
    try:
        yield ray
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Raise OSError at once if there is no cluster: Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit():
        socket.create_connection((host.removeprefix("ray://").strip("[]"), int(port)), timeout=10).close()


@contextmanager
def sigterm_is_ctrl_c() -> Iterator[None]:
    """Treat the SIGTERM of a batch system as Ctrl-C; Ray's own handler would end the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
