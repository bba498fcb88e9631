"""What a study costs here: what is done already, and the rest by timing a few training steps of each kind of run."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from statistics import median

from lddr.config import Config, Training
from lddr.console import watched
from lddr.data import height_and_width
from lddr.data.dataset import Dataset, datasets
from lddr.data.load import load_dataset, warmed, why_missing
from lddr.settings import rules_of
from lddr.supervision import Supervision
from lddr.sweeps.stage import Stage, stage_of
from lddr.sweeps.study import Study

ENOUGH = 0.5  # seconds
WARM_UP = 2  # steps before the clock starts: memory is taken


@dataclass(frozen=True)
class Share:
    """Runs left that cost the same per step."""

    shape: Config  # what their cost depends on, everything else at its default, on the dataset they are timed on
    datasets: tuple[str, ...]
    runs: int
    steps: int
    seconds_per_step: float | None  # None where it could not be measured

    @property
    def core_hours(self) -> float:
        return self.steps * (self.seconds_per_step or 0.0) / 3600

    def in_words(self) -> tuple[str, ...]:
        """Model, datasets, runs left, milliseconds per step, core-hours."""
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
        """Of training, on this machine, without what could not be measured."""
        return sum(share.core_hours for share in self.shares)

    @property
    def unknown_runs(self) -> int:
        """Runs whose steps could not be timed."""
        return sum(share.runs for share in self.shares if share.seconds_per_step is None)

    def sentences(self) -> list[str]:
        """The estimate in words."""
        from joblib import cpu_count

        stages, cores, hours = self.stages, cpu_count(), self.core_hours
        told = [
            f"{self.study}: {self.runs:,} runs; {stages.get('finished', 0):,} finished, "
            f"{stages.get('trained', 0):,} trained and to be scored, {stages.get('begun', 0):,} half-finished, "
            f"{stages.get('new', 0):,} to begin"
        ]
        if self.shares:
            cost = f"{hours:,.1f} core-hours, {hours / cores:,.1f} hours on {cores} cores"
            told.append(f"training left: {cost}; scoring comes on top")
        if unknown := self.unknown_runs:
            told.append(f"not counted: {unknown:,} runs on images that are not here")
        return told + list(self.missing.values())


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
    seconds = _timed(list(left), calibration_steps, quiet)
    shares = tuple(_share(shape, runs, seconds[shape]) for shape, runs in left.items())
    names = sorted({name for share in shares for name in share.datasets})
    return Estimate(study.name, dict(stages), shares, {name: why for name in names if (why := why_missing(name))})


def _share(shape: Config, runs: list[tuple[str, int]], seconds: float | None) -> Share:
    names = tuple(dict.fromkeys(name for name, _ in runs))
    return Share(shape, names, len(runs), sum(steps for _, steps in runs), seconds)


def shape_of(config: Config) -> Config:
    """The same without what does not change the cost of a step: seed, steps, weights of penalties, labels, files."""
    weights = {name: rule.default for name, rule in rules_of(config.objective).items() if rule.kind is float}
    objective = config.objective.changed(**weights)  # sizes, which are whole numbers, may have a cost
    training = Training(batch_size=config.training.batch_size, precision=config.training.precision)
    supervision = config.supervision
    if supervision is not None:  # own images may have fewer labels than the default
        labels = min(supervision.labels, Supervision.default_of("labels"))
        supervision = Supervision(supervision.loss, labels)
    dataset = stand_in(config.dataset)
    return replace(config, dataset=dataset, objective=objective, training=training, supervision=supervision)


def _timed(shapes: Sequence[Config], steps: int, quiet: bool) -> dict[Config, float | None]:
    return {shape: seconds_per_step(shape, steps) for shape in watched(shapes, "timing training steps", quiet)}


def stand_in(name: str) -> str:
    """A dataset with images of the same shape that needs no files: looking images up is a hundredth of a step."""
    if name not in datasets or not datasets[name].needs_files:
        return name
    shape = datasets[name].image_shape
    here = (other for other in datasets if not datasets[other].needs_files and datasets[other].is_fixed)
    return next((other for other in here if datasets[other].image_shape == shape), name)


def seconds_per_step(config: Config, steps: int) -> float | None:
    """The processor time of a training step on one thread, the median of some; None when the images are not here."""
    import torch

    if why_missing(config.dataset):
        return None
    dataset = warmed(load_dataset(*config.images))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return median(_enough(_steps(config, dataset), max(steps, 1)))
    finally:
        torch.set_num_threads(threads)


def _enough(times: Iterator[float], steps: int) -> list[float]:
    """So many steps after the first ones, or more where they are short."""
    taken: list[float] = []
    for number, seconds in enumerate(times, 1 - WARM_UP):
        if number > 0:
            taken.append(seconds)
        if number >= steps and sum(taken) > ENOUGH:
            break
    return taken


def _steps(config: Config, dataset: Dataset) -> Iterator[float]:
    """Take one training step after the other, and give the seconds of each."""
    import torch

    from lddr.training.accelerator import batches_for, trainer_on

    device = torch.device("cpu")
    trainer = trainer_on(device, config, dataset)
    batches = batches_for(trainer, dataset)
    for step in count():
        start = time.process_time()  # not the clock on the wall: others may be using this machine
        trainer.step(batches.batch(step))
        yield time.process_time() - start
