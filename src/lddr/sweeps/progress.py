"""How far a study is: a line for each run, and medians so far."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any, Self

from rich.progress import TaskID

from lddr.config import Config
from lddr.console import Display, Speed, text_column
from lddr.runs.folder import RunFolder
from lddr.runs.index import Run, common_elbo, read_run
from lddr.runs.tables import shown
from lddr.sweeps.study import Study

Row = dict[str, str]


def score_rows(study: Study, out: Path) -> list[Row]:
    """A row per point of the grid, with the median over its seeds of every score."""
    points: dict[Config, list[Config]] = {}
    for config in study.configs:
        points.setdefault(replace(config, training=replace(config.training, seed=0)), []).append(config)
    knobs = _varied([point.flat() for point in points])
    read = {config: read_run(out / config.run_name) for config in study.configs}
    finished = {config: run for config, run in read.items() if run.state == "finished"}
    scores = [common_elbo(finished.values()), *study.metrics]
    return [_row(point, configs, knobs, scores, finished) for point, configs in points.items()]


def _row(
    point: Config, configs: list[Config], knobs: list[str], scores: Sequence[str], finished: Mapping[Config, Run]
) -> Row:
    runs = [finished[config] for config in configs if config in finished]
    settings = point.flat()
    row = {name: _word(settings.get(name)) for name in knobs} | {"runs": f"{len(runs)}/{len(configs)}"}
    for name in scores:
        values = [run.scores[name] for run in runs if name in run.scores]
        row[name] = shown(float(median(values))) if values else "-"
    return row


def _word(value: Any) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _varied(points: list[dict[str, Any]]) -> list[str]:
    """The model, and every setting with several values; one that only some models have counts where it is."""
    values: dict[str, set[str]] = {}
    for settings in points:
        for name, value in settings.items():
            values.setdefault(name, set()).add(str(value))
    told = ("model", "latent", "objective")  # the model says the others
    return ["model"] + [name for name, found in values.items() if len(found) > 1 and name not in told]


TRAINING = 0.9  # of a run's work; the rest is its evaluation
WINDOW = 600.0  # seconds over which the speed is taken
LINE = 30.0  # seconds between two plain lines


@dataclass(frozen=True)
class Job:
    """A run to be made, and its folder."""

    config: Config
    folder: Path

    @property
    def steps(self) -> int:
        return self.config.training.steps


def steps_done(job: Job) -> int:
    """How far a run's folder says it is: its last line in the log, or all steps when there are weights."""
    folder = RunFolder(job.folder)
    return job.steps if folder.model_file.exists() else folder.last_step


class SweepProgress(Display):
    """The display of one sweep; `look` reads the runs' own logs, so that workers need not report."""

    def __init__(self, name: str, jobs: Sequence[Job], there: int, quiet: bool = False) -> None:
        super().__init__(text_column("{task.description}", ratio=1), text_column("{task.fields[note]}"), quiet=quiet)
        self._name, self._runs, self._ended = name, there + len(jobs), there
        self._lines: dict[Path, TaskID] = {}
        self._first: dict[Path, int] = {}  # steps a run had when it was first seen: not this sweep's work
        self._left = sum(job.steps for job in jobs)  # steps of the runs that have not ended
        self._failures, self._done = 0, 0.0  # work is measured in steps
        self._said: set[str] = set()
        self._speed, self._due = Speed(WINDOW), monotonic()

    def __enter__(self) -> Self:
        if self.bars:
            self._all = self.bars.add_task(self._name, total=self._runs, note="")
        return super().__enter__()

    def __exit__(self, *problem: object) -> None:
        self._keep_lines(set())
        self._show([])
        super().__exit__(*problem)

    def say(self, sentence: str) -> None:
        self.line(f"lddr: {sentence}")

    def say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self.say(sentence)

    def finished(self, job: Job) -> None:
        self._ended += 1
        self._left -= job.steps
        self._done += job.steps - TRAINING * self._first.get(job.folder, 0)

    def failed(self, job: Job, error: str) -> None:
        self._failures += 1
        self._ended += 1
        self._left -= job.steps
        self.say(f"{job.folder.name} failed: {error}")

    def look(self, jobs: Collection[Job]) -> None:
        """Read how far these runs are and show it, unless that was only just done."""
        now = monotonic()
        if self.quiet or now < self._due:
            return
        self._due = now + (1 + len(jobs) / 100 if self.bars else LINE)  # many logs on a network disk take their time
        steps = {job: steps_done(job) for job in jobs}
        # runs are asked for before there is room for them: those that move are at work
        moving = {job: step for job, step in steps.items() if step != self._first.setdefault(job.folder, step)}
        done = self._done + TRAINING * sum(step - self._first[job.folder] for job, step in moving.items())
        left = self._left - TRAINING * sum(steps.values())
        self._keep_lines({job.folder for job in moving})
        for job, step in moving.items():
            self._line(job, step)
        self._speed.note(now, done)
        self._show([f"{len(moving)} running", self._speed.left(done + left)])

    def _keep_lines(self, folders: set[Path]) -> None:
        for folder in self._lines.keys() - folders:
            if self.bars:
                self.bars.remove_task(self._lines.pop(folder))

    def _line(self, job: Job, step: int) -> None:
        if not self.bars:
            return
        if job.folder not in self._lines:
            if len(self._lines) >= self.console.height - 3:
                return
            self._lines[job.folder] = self.bars.add_task(job.folder.name, total=job.steps, note="")
        note = f"{step}/{job.steps}" if step < job.steps else "evaluating"
        self.bars.update(self._lines[job.folder], completed=step, note=note)

    def _show(self, notes: list[str]) -> None:
        failures = [f"{self._failures} failed"] if self._failures else []
        words = "  ".join([f"{self._ended}/{self._runs} runs", *notes, *failures])
        if self.bars:
            with suppress(OSError):
                self.bars.update(self._all, completed=self._ended, note=words, refresh=True)
        else:
            self.line(f"sweep {self._name}  {words}")
