"""How far a study is: the stage of each run, a running sweep's display, median scores, and the cost of the rest."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic, process_time
from typing import Any, Literal, Self

from lddr.config import Config, Training
from lddr.console import Progress, Task, watched
from lddr.data import height_and_width
from lddr.data.dataset import datasets
from lddr.data.load import why_missing
from lddr.metrics.evaluate import is_scored
from lddr.metrics.metric import Metric
from lddr.runs.folder import RunFolder
from lddr.runs.index import common_elbo, read_run
from lddr.runs.tables import shown
from lddr.settings import as_text, rules_of
from lddr.supervision import Supervision
from lddr.sweeps.study import Study

Stage = Literal["finished", "trained", "begun", "new"]

TRAINING_SHARE = 0.9  # of a run's work; the rest is its evaluation
LOOK_SECONDS = 30.0  # between two lines of a sweep, and two looks at the logs where there is no terminal
SPEED_SECONDS = 600.0  # over which the speed of a sweep is averaged
STAND_INS = ("dsprites", "rooms")  # drawn datasets, in grey and in colour, to time steps with
TIMED_SECONDS, WARM_UP_STEPS = 0.5, 2  # the least to time of a kind of run; steps before that, which allocate memory


def stage_of(config: Config, out: Path, wanted: Mapping[str, Metric]) -> tuple[Stage, int]:
    """Return how far a run is, and its training steps left; a finished run has all wanted scores."""
    folder, steps = RunFolder(out / config.run_name), config.training.steps
    if folder.is_finished:
        scores = folder.metrics
        scored = all(is_scored(scores.get(name), metric) for name, metric in wanted.items())
        return ("finished" if scored else "trained"), 0
    saved = folder.saved_step
    return ("new", steps) if saved is None else ("begun", steps - saved)


@dataclass(frozen=True, eq=False)
class Job:
    """A run to be made, and its folder."""

    config: Config
    folder: Path

    @property
    def steps(self) -> int:
        return self.config.training.steps

    @property
    def steps_done(self) -> int:
        """The step of the last line in the log, or all steps if there are weights."""
        folder = RunFolder(self.folder)
        return self.steps if folder.model_file.exists() else folder.last_step


class SweepProgress(Progress):
    """The display of one sweep; `look` reads the runs' own logs, so that workers need not report."""

    def __init__(self, name: str, jobs: Sequence[Job], there: int, quiet: bool = False) -> None:
        super().__init__(quiet, LOOK_SECONDS, keep=True)
        self._jobs, self._runs, self._failures = list(jobs), there + len(jobs), 0
        self._first = {job: 0 if self.quiet else job.steps_done for job in jobs}  # not this sweep's work
        self._finished_steps, self._bars = 0, dict[Job, Task]()
        self._sweep = Task(self, f"sweep {name}", *self._work(), window=SPEED_SECONDS)
        self._due, self._printed = 0.0, set[str]()

    def __enter__(self) -> Self:
        super().__enter__()
        self._sweep.note = self._note
        if not self.quiet:
            self._sweep.show()
        return self

    def __exit__(self, *problem: object) -> None:
        for bar in self._bars.values():
            bar.remove()
        self._sweep.note = self._note
        self._sweep.total, self._sweep.done = self._work()
        self._sweep.finish()
        super().__exit__(*problem)

    def say(self, sentence: str, once: bool = False) -> None:
        if not (once and sentence in self._printed):
            self._printed.add(sentence)
            self.line(f"lddr: {sentence}")

    def finished(self, job: Job) -> None:
        self._jobs.remove(job)
        self._finished_steps += job.steps

    def failed(self, job: Job, error: str) -> None:
        self._jobs.remove(job)
        self._failures += 1
        self.say(f"{job.folder.name} failed: {error}")

    def look(self, jobs: Collection[Job]) -> None:
        """Read how far these runs are and show it, unless that was only just done."""
        if self.quiet or (now := monotonic()) < self._due:
            return
        self._due = now + max(1.0, self.interval)  # many logs on a network disk take their time
        steps = {job: job.steps_done for job in jobs}
        # runs are queued before there is room for them: those that advance are running
        running = {job: step for job, step in steps.items() if step != self._first[job]}
        if self.bars:
            self._show_runs(running)
        self._sweep.total, done = self._work(steps)
        self._sweep.update(done, lambda: self._note(f"{len(running)} running"))

    def _work(self, steps: Mapping[Job, int] | None = None) -> tuple[float, float]:
        """Return the work of all runs that have not failed, and the part that is done, in steps."""
        done = sum((steps or {}).get(job, self._first[job]) for job in self._jobs)
        total = self._finished_steps + sum(job.steps for job in self._jobs)
        return total, self._finished_steps + TRAINING_SHARE * done

    def _note(self, running: str = "") -> str:
        failures = f"{self._failures} failed" if self._failures else ""
        ended = self._runs - len(self._jobs)
        return "  ".join(filter(None, [f"{ended}/{self._runs} runs", running, failures]))

    def _show_runs(self, running: Mapping[Job, int]) -> None:
        for job in self._bars.keys() - running:
            self._bars.pop(job).remove()
        for job, step in running.items():
            if job not in self._bars and len(self._bars) < self.console.height - 3:
                self._bars[job] = Task(self, job.folder.name, job.steps, step, window=SPEED_SECONDS)
            if job in self._bars:
                note = f"{step}/{job.steps}" if step < job.steps else "evaluating"
                self._bars[job].update(step, partial(str, note))


def score_rows(study: Study, out: Path) -> list[dict[str, str]]:
    """Return a row per point of the grid, with the median over its seeds of every score."""
    points: dict[Config, list[Config]] = {}
    for config in study.configs:
        points.setdefault(replace(config, training=replace(config.training, seed=0)), []).append(config)
    runs = {config: read_run(out / config.run_name) for config in study.configs}
    finished = {config: run for config, run in runs.items() if run.state == "finished"}
    names, settings = [common_elbo(finished.values()), *study.metrics], [point.flat() for point in points]
    varied, rows = _varied(settings), []
    for point, configs in zip(settings, points.values(), strict=True):
        scores = [finished[config].scores for config in configs if config in finished]
        row = {name: "" if point.get(name) is None else as_text(point[name]) for name in varied}
        row["runs"] = f"{len(scores)}/{len(configs)}"
        for name in names:
            values = [each[name] for each in scores if name in each]
            row[name] = shown(float(median(values))) if values else "-"
        rows.append(row)
    return rows


def _varied(points: list[dict[str, Any]]) -> list[str]:
    """Return the model, and every setting with several values among the points that have it."""
    values: dict[str, set[str]] = {}
    for settings in points:
        for name, value in settings.items():
            values.setdefault(name, set()).add(str(value))
    implied = ("model", "latent", "objective")  # the model's name implies the others
    return ["model"] + [name for name, found in values.items() if len(found) > 1 and name not in implied]


@dataclass(frozen=True)
class Share:
    """Runs left that cost the same per step."""

    shape: Config  # what their cost depends on, everything else at its default, on the dataset they are timed on
    datasets: tuple[str, ...]
    runs: int
    steps: int
    seconds_per_step: float | None  # None if it could not be measured

    @property
    def core_hours(self) -> float:
        return self.steps * (self.seconds_per_step or 0.0) / 3600

    def cells(self) -> tuple[str, ...]:
        """Return model, datasets, runs left, milliseconds per step and core-hours, for a table."""
        seconds, shape = self.seconds_per_step, self.shape
        model = f"{shape.model}, {shape.supervision.loss}" if shape.supervision else shape.model
        size = ""
        if shape.resolution is not None:
            size = f" at {'x'.join(map(str, height_and_width(shape.resolution)))}, width {shape.networks.width}"
        cost = ("?", "?") if seconds is None else (f"{1000 * seconds:,.1f}", f"{self.core_hours:,.1f}")
        return model, ", ".join(self.datasets) + size, f"{self.runs:,}", *cost


@dataclass(frozen=True)
class Estimate:
    """How many runs a study has, how many are at which stage, and what is left to train."""

    study: str
    stages: dict[Stage, int]
    shares: tuple[Share, ...]
    missing: dict[str, str] = field(default_factory=dict)  # a dataset that is not here → how to get it

    @property
    def runs(self) -> int:
        return sum(self.stages.values())

    @property
    def core_hours(self) -> float:
        """The core-hours of training left on this machine, without what could not be measured."""
        return sum(share.core_hours for share in self.shares)

    @property
    def unknown_runs(self) -> int:
        """The number of runs whose steps could not be timed."""
        return sum(share.runs for share in self.shares if share.seconds_per_step is None)

    def sentences(self) -> list[str]:
        from joblib import cpu_count

        stages, cores, hours = self.stages, cpu_count(), self.core_hours
        sentences = [
            f"{self.study}: {self.runs:,} runs; {stages.get('finished', 0):,} finished, "
            f"{stages.get('trained', 0):,} trained and to be scored, {stages.get('begun', 0):,} half-finished, "
            f"{stages.get('new', 0):,} not started"
        ]
        if self.shares:
            cost = f"{hours:,.1f} core-hours, {hours / cores:,.1f} hours on {cores} cores"
            sentences.append(f"training left: {cost}; scoring comes on top")
        if unknown := self.unknown_runs:
            sentences.append(f"not counted: {unknown:,} runs on images that are not here")
        return sentences + list(self.missing.values())


def estimate(study: Study, out: Path, calibration_steps: int = 5, quiet: bool = False) -> Estimate:
    """Look at the run folders below `out` and time a few steps, on one thread, of each kind of run that is left."""
    stages: Counter[Stage] = Counter()
    wanted = study.wanted
    left: dict[Config, list[tuple[str, int]]] = {}  # dataset and steps of every run that is not trained yet
    for config in study.configs:
        stage, steps = stage_of(config, out, wanted)
        stages[stage] += 1
        if steps:
            left.setdefault(shape_of(config), []).append((config.dataset, steps))
    shares = []
    for shape in watched(left, "timing training steps", quiet):
        names, total = dict.fromkeys(name for name, _ in left[shape]), sum(steps for _, steps in left[shape])
        seconds = seconds_per_step(shape, calibration_steps)
        shares.append(Share(shape, tuple(names), len(left[shape]), total, seconds))
    datasets_left = sorted({name for share in shares for name in share.datasets})
    missing = {name: why for name in datasets_left if (why := why_missing(name))}
    return Estimate(study.name, dict(stages), tuple(shares), missing)


def shape_of(config: Config) -> Config:
    """Return the same without what does not change the cost of a step: seed, steps, penalty weights, labels, files."""
    weights = {name: rule.default for name, rule in rules_of(config.objective).items() if rule.kind is float}
    objective = config.objective.changed(**weights)  # sizes, which are whole numbers, may have a cost
    training = Training(batch_size=config.training.batch_size, precision=config.training.precision)
    supervision = config.supervision
    if supervision is not None:  # own images may have fewer labels than the default
        labels = min(supervision.labels, Supervision.labels)
        supervision = Supervision(supervision.loss, labels)
    dataset = stand_in(config.dataset)
    return replace(config, dataset=dataset, objective=objective, training=training, supervision=supervision)


def stand_in(name: str) -> str:
    """Return a dataset with images of the same shape that needs no files: loading images is a hundredth of a step."""
    if name not in datasets or not datasets[name].needs_files:
        return name
    return next((other for other in STAND_INS if datasets[other].image_shape == datasets[name].image_shape), name)


def seconds_per_step(config: Config, steps: int) -> float | None:
    """Return the median processor time of a training step on one thread; None if the images are not here."""
    if why_missing(config.dataset):
        return None
    import torch

    from lddr.bench import next_step

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        step, taken = next_step(config), list[float]()
        while len(taken) < WARM_UP_STEPS + max(steps, 1) or sum(taken[WARM_UP_STEPS:]) < TIMED_SECONDS:
            start = process_time()  # not wall-clock time: others may be using this machine
            step()
            taken.append(process_time() - start)
        return median(taken[WARM_UP_STEPS:])
    finally:
        torch.set_num_threads(threads)
