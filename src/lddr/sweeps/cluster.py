"""A study on Ray: workers that train and score runs, and the queue that feeds them."""

import os
import platform
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psutil

from lddr.config import Config
from lddr.data.dataset import Dataset
from lddr.data.load import load_dataset
from lddr.errors import UserError, check_installed
from lddr.files import BusyError, alone, write_json
from lddr.runs.folder import RunFolder, loaded
from lddr.runs.machine import Machine
from lddr.sweeps.progress import Job, SweepProgress
from lddr.sweeps.stage import stage_of
from lddr.sweeps.study import Study

if TYPE_CHECKING:
    from lddr.data.dataset import Dataset


EVERY = 0.5  # seconds between two looks
GRACE = 2.0  # seconds for Ray to end itself


@contextmanager
def watched_over() -> Iterator[None]:
    """While this lasts, a process stands by that ends the Ray below us should we be killed."""
    command = [sys.executable, "-m", __name__, str(os.getpid())]
    watcher = subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        watcher.kill()
        watcher.wait()


def watch(pid: int) -> None:
    """Remember Ray's processes below another one while it lives, and end those that are left soon after it."""
    known: dict[psutil.Process, bool] = {}  # whether it is Ray's
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        while parent.is_running() and parent.status() != psutil.STATUS_ZOMBIE:
            for process in parent.children(recursive=True):
                known[process] = known.get(process, False) or _is_rays(process)
            time.sleep(EVERY)
    _, left = psutil.wait_procs([process for process, is_rays in known.items() if is_rays], timeout=GRACE)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _is_rays(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any(word.startswith("ray::") or f"{os.sep}ray{os.sep}" in word for word in process.cmdline())
    return False


if __name__ == "__main__":
    watch(int(sys.argv[1]))


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
    from lddr.runs.loop import Stopped

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
    from lddr.runs.evaluate import evaluate_run
    from lddr.runs.run import run

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
    from lddr.runs.trackers import Tracked

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


SPARE = 1  # runs asked for beyond the room there is: a cluster that grows on demand must see a demand
PAUSE = 2.0  # seconds before a run is tried again
LOOK = 1.0  # seconds between two looks at the runs
SAVING = 60.0  # seconds the runs get to save when the sweep is stopped
OBJECT_STORE = 80 * 2**20  # bytes, about the least Ray accepts: only settings and outcomes go through it


@dataclass(frozen=True)
class Options:
    """Where a sweep is carried out and how, which does not change what comes of it."""

    address: str | None = None  # None: this machine
    workers: int | None = None  # None: as many runs at once as there is room for
    cpus_per_run: int = 1
    gpus_per_run: float = 0.0
    retries: int = 3
    checkpoint_seconds: float = Machine.checkpoint_seconds
    quiet: bool = False
    track: str | None = None  # the tracker that is told about every run
    tensorboard: bool = False
    compile: bool = False

    def __post_init__(self) -> None:
        workers = 1 if self.workers is None else self.workers
        if min(workers, self.cpus_per_run) < 1 or min(self.gpus_per_run, self.retries) < 0:
            raise UserError("a sweep needs at least one worker and one CPU per run; GPUs and retries are 0 or more")


@dataclass(frozen=True)
class Failure:
    """A run that could not be finished, and why."""

    folder: Path
    error: str


@dataclass
class Outcome:
    """What became of a sweep's runs: there before, finished now (and trained by this very sweep), failed."""

    there: int = 0
    finished: int = 0
    trained: int = 0
    failures: list[Failure] = field(default_factory=list)
    stopped: bool = False


def run_study(study: Study, out: Path, options: Options | None = None, dataset: Dataset | None = None) -> Outcome:
    """Train and evaluate what the study lacks below `out`; a run that keeps failing does not hold up the others.

    `dataset` holds the images of all runs if they are only in memory; otherwise workers load them by name.
    """
    options, out = options or Options(), out.absolute()
    jobs = [Job(config, out / config.run_name) for config in study.configs]
    wanted = study.wanted
    there = {job.folder: stage_of(job.config, out, wanted)[0] == "finished" for job in jobs}
    missing = [job for job in jobs if not there[job.folder]]
    failures = _on_other_images([job for job in jobs if there[job.folder]], options, dataset)
    outcome = Outcome(there=len(jobs) - len(missing) - len(failures), failures=failures)
    if missing:
        for package in ("ray", *(["torch"] if options.address is None else [])):  # what a cluster has is not known here
            check_installed(package)
        order = _orders(study, out, options)
        with connected(options) as ray, _sigterm_is_ctrl_c():
            with SweepProgress(study.name, missing, outcome.there, options.quiet) as progress:
                _Engine(ray, missing, order, options, progress, outcome, dataset).work()
    return outcome


def _on_other_images(finished: Sequence[Job], options: Options, in_memory: Dataset | None) -> list[Failure]:
    """The finished runs whose images or labels are no longer those they were trained on; each dataset is loaded once.

    A cluster may have images that are not here: then there is nothing to compare with.
    """
    failures, datasets = [], dict[tuple[str, int | str | None, str | None, str], Dataset | None]()
    for job in finished:
        images = job.config.images
        if images not in datasets:
            with nullcontext() if options.address is None else suppress(UserError):
                datasets[images] = in_memory or load_dataset(*images)
        dataset = datasets.setdefault(images, None)
        try:
            if dataset is not None:
                RunFolder(job.folder).check(dataset)
        except UserError as error:
            failures.append(Failure(job.folder, str(error)))
    return failures


def _orders(study: Study, out: Path, options: Options) -> Callable[[Config], Order]:
    mark, home = mark_of(out), Path.cwd()
    machine = Machine(
        device="cuda" if options.gpus_per_run else "cpu",
        threads=options.cpus_per_run,
        quiet=True,
        checkpoint_seconds=options.checkpoint_seconds,
        track=options.track,
        tensorboard=options.tensorboard,
        compile=options.compile,
    )

    def order(config: Config) -> Order:
        return Order(config, out, mark, home, tuple(study.metrics), study.scoring, machine)

    return order


class _Engine:
    """Keeps as many runs in flight as there is room for, until every run is finished or given up."""

    def __init__(
        self,
        ray: Any,
        jobs: Sequence[Job],
        order: Callable[[Config], Order],
        options: Options,
        progress: SweepProgress,
        outcome: Outcome,
        dataset: Dataset | None = None,
    ) -> None:
        self._ray, self._order, self._options = ray, order, options
        self._progress, self._outcome = progress, outcome
        self._images = () if dataset is None else (_sent(ray, dataset),)  # once, not with every run
        self._waiting = deque(jobs)
        self._later: deque[tuple[float, Job]] = deque()  # in the order of when they are due
        self._flying: dict[Any, Job] = {}
        self._attempts: Counter[Path] = Counter()
        needs = {"num_cpus": options.cpus_per_run, "num_gpus": options.gpus_per_run}
        self._task = ray.remote(max_retries=0, **needs)(carry_out)  # retries are counted here, whatever the reason

    def work(self) -> None:
        try:
            while self._waiting or self._later or self._flying:
                self._submit()
                for landed in self._landed():
                    self._settle(self._flying.pop(landed), self._answer(landed))
                self._progress.look(self._flying.values())
        except KeyboardInterrupt:
            self._outcome.stopped = True
            self._stop()

    def _submit(self) -> None:
        while self._later and self._later[0][0] <= time.monotonic():
            self._waiting.append(self._later.popleft()[1])
        free = self._window() - len(self._flying)
        for _ in range(min(free, len(self._waiting))):
            job = self._waiting.popleft()
            task = self._task.options(name=job.folder.name)
            self._flying[task.remote(self._order(job.config), *self._images)] = job

    def _window(self) -> int:
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        there = sum(room(node, self._options) for node in nodes)
        if not there:
            self._progress.say_once(_no_room(self._options))
        return min(there + SPARE, self._options.workers or there + SPARE)

    def _landed(self) -> list[Any]:
        if not self._flying:
            time.sleep(LOOK / 4)
            return []
        return self._ray.wait(list(self._flying), num_returns=1, timeout=LOOK)[0]

    def _answer(self, landed: Any) -> Answer:
        """What the worker says, or how it was lost."""
        try:
            return self._ray.get(landed)
        except self._ray.exceptions.RayError as error:
            return Answer("failed", f"{type(error).__name__}: {str(error).strip().splitlines()[0]}")

    def _settle(self, job: Job, answer: Answer) -> None:
        if answer.state == "finished":
            self._outcome.finished += 1
            self._outcome.trained += answer.trained
            self._progress.finished(job)
        elif answer.state == "busy":  # another sweep has it: see later what became of it, without holding a core
            self._put_off(job)
        else:
            self._failed(job, answer)

    def _failed(self, job: Job, answer: Answer) -> None:
        self._attempts[job.folder] += 1
        if answer.state == "refused" or self._attempts[job.folder] > self._options.retries:
            self._outcome.failures.append(Failure(job.folder, answer.error))
            self._progress.failed(job, answer.error)
        else:
            self._put_off(job)
            self._progress.say(f"{job.folder.name} will be tried again: {answer.error}")

    def _put_off(self, job: Job) -> None:
        self._later.append((time.monotonic() + PAUSE, job))

    def _stop(self) -> None:
        """Have every run save and end: to a worker's main thread, `cancel` is a Ctrl-C, which training waits for."""
        self._progress.say("stopping: the runs save their state (Ctrl-C again to leave at once)")
        for task in self._flying:
            self._ray.cancel(task)
        if self._flying:
            self._ray.wait(list(self._flying), num_returns=len(self._flying), timeout=SAVING)


def _sent(ray: Any, dataset: Dataset) -> Any:
    try:
        return ray.put(dataset)
    except TypeError as error:  # Ray's for whatever cannot be pickled
        reason = str(error).strip().splitlines()[0]
        cure = "give them as an array or a folder"
        raise UserError(f"the images {dataset.name} cannot be sent to other processes ({reason}); {cure}") from error


def room(resources: dict[str, float], options: Options) -> int:
    """How many runs fit on a node with these resources."""
    needs = {"CPU": options.cpus_per_run, "GPU": options.gpus_per_run}
    return min(int(resources.get(name, 0) / need + 1e-6) for name, need in needs.items() if need)


def _no_room(options: Options) -> str:
    gpus = f" and {options.gpus_per_run:g} GPUs" if options.gpus_per_run else ""
    needs = f"a run needs {options.cpus_per_run} CPUs{gpus}"
    if options.address is None:
        raise UserError(f"{needs}, more than there is here; lower --cpus-per-run or --gpus-per-run")
    return f"{needs}, and no node has them yet: waiting for one that has"


@contextmanager
def connected(options: Options) -> Iterator[Any]:
    """A connection to Ray, quiet: the one there is, else the cluster's, else a Ray of our own on all cores."""
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_SCHEDULER_EVENTS": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
    os.environ.update(quiet | dict(os.environ))
    import ray

    if ray.is_initialized():
        yield ray
        return
    with watched_over() if options.address is None else nullcontext():
        _connect(ray, options.address)
        try:
            yield ray
        finally:
            ray.shutdown()


def _connect(ray: Any, address: str | None) -> None:
    import joblib

    ours = {"num_cpus": joblib.cpu_count(), "object_store_memory": OBJECT_STORE, "include_dashboard": False}
    where = {"address": "local", **ours} if address is None else {"address": address}
    try:
        _knock(address or "")
        ray.init(**where, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # Ray raises that itself when a busy machine starts it too slowly
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"cannot reach Ray at {address or 'this machine'} ({reason}); see docs/cluster.md") from error
    ray._private.worker._worker_logs_enabled = False  # else every lost worker is a paragraph on stdout


def _knock(address: str) -> None:
    """Find out at once that nobody is there: Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    if port.isdigit():
        socket.create_connection((host.removeprefix("ray://").strip("[]"), int(port)), timeout=10).close()


@contextmanager
def _sigterm_is_ctrl_c() -> Iterator[None]:
    """A batch system that ends the sweep is met as a user who does; Ray's own handler would end at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
