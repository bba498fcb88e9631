"""What a study costs here: what is done already, and the rest by timing a few training steps of each kind of run."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from statistics import median
from typing import Literal

from lddr.config import Config, Training
from lddr.console import table, watched
from lddr.data.dataset import Dataset, datasets
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.metrics.evaluate import is_scored
from lddr.metrics.metric import Metric
from lddr.runs.folder import RunFolder
from lddr.settings import rules_of
from lddr.sweeps.study import Study
from lddr.training.supervision import Supervision

State = Literal["finished", "trained", "begun", "new"]
ENOUGH = 0.5  # seconds
WARM_UP = 2  # steps before the clock starts: tables are built, memory is taken
DRAWN = {1: "dsprites", 3: "rooms"}  # by channels: a drawn dataset with images of the same shape as the official ones


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


@dataclass(frozen=True)
class Estimate:
    """How many runs a study has, how many are in which state, and what is left to train."""

    study: str
    states: dict[State, int]
    shares: tuple[Share, ...]
    missing: dict[str, str] = field(default_factory=dict)  # a dataset that is not here → how to get it

    @property
    def runs(self) -> int:
        return sum(self.states.values())

    @property
    def core_hours(self) -> float:
        """Of training, on this machine, without what could not be measured."""
        return sum(share.core_hours for share in self.shares)

    @property
    def unknown_runs(self) -> int:
        """Runs whose steps could not be timed."""
        return sum(share.runs for share in self.shares if share.seconds_per_step is None)


def estimate(study: Study, out: Path, calibration_steps: int = 5, quiet: bool = False) -> Estimate:
    """Look at the run folders below `out` and time a few steps, on one thread, of each kind of run that is left."""
    states: Counter[State] = Counter()
    wanted = study.wanted
    left: dict[Config, list[tuple[str, int]]] = {}  # dataset and steps of every run that is not trained yet
    for config in study.configs:
        state, steps = progress(config, out, wanted)
        states[state] += 1
        if steps:
            left.setdefault(shape_of(config), []).append((config.dataset, steps))
    seconds = _timed(list(left), calibration_steps, quiet)
    shares = tuple(_share(shape, runs, seconds[shape]) for shape, runs in left.items())
    names = sorted({name for share in shares for name in share.datasets})
    return Estimate(study.name, dict(states), shares, {name: why for name in names if (why := why_missing(name))})


def _share(shape: Config, runs: list[tuple[str, int]], seconds: float | None) -> Share:
    names = tuple(dict.fromkeys(name for name, _ in runs))
    return Share(shape, names, len(runs), sum(steps for _, steps in runs), seconds)


def progress(config: Config, out: Path, wanted: Mapping[str, Metric]) -> tuple[State, int]:
    """How far a run is, from its folder alone, and how many training steps it has left."""
    folder, steps = RunFolder(out / config.run_name), config.training.steps
    if folder.is_finished:
        scores = folder.metrics
        scored = all(is_scored(scores.get(name), metric) for name, metric in wanted.items())
        return ("finished" if scored else "trained"), 0
    kept = folder.saved_step
    return ("new", steps) if kept is None else ("begun", steps - kept)


def shape_of(config: Config) -> Config:
    """The same without what does not change the cost of a step: seed, steps, weights of penalties, labels, files."""
    weights = {name: rule.default for name, rule in rules_of(config.objective).items() if rule.kind is float}
    objective = replace(config.objective, **weights)  # sizes, which are whole numbers, may have a cost
    training = Training(batch_size=config.training.batch_size, precision=config.training.precision)
    supervision = config.supervision and Supervision(config.supervision.loss)
    dataset = stand_in(config.dataset)
    return replace(config, dataset=dataset, objective=objective, training=training, supervision=supervision)


def _timed(shapes: Sequence[Config], steps: int, quiet: bool) -> dict[Config, float | None]:
    return {shape: seconds_per_step(shape, steps) for shape in watched(shapes, "timing training steps", quiet)}


def stand_in(name: str) -> str:
    """A drawn dataset with images of the same shape: looking images up is a hundredth of a step, and needs no files."""
    if name in datasets and datasets[name].needs_files:
        return DRAWN[datasets[name].image_shape[2]]
    return name


def why_missing(name: str) -> str | None:
    """How to get a dataset that is not here, None for one that is."""
    try:
        if name in datasets:
            return datasets[name].why_missing()
        load_dataset(name)
    except UserError as error:
        return str(error)
    return None


def seconds_per_step(config: Config, steps: int) -> float | None:
    """The processor time of a training step on one thread, the median of some; None when the images are not here."""
    import torch

    from lddr.hardware import keep_freed_memory

    try:
        dataset = load_dataset(config.dataset, config.resolution)
    except UserError:
        return None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    keep_freed_memory()  # as a run does
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

    from lddr.training.feed import Feed, LabelledFeed
    from lddr.training.learner import Learner

    device, training = torch.device("cpu"), config.training
    learner = Learner(config, dataset, device)
    feed, labels = Feed(dataset, training.seed, training.batch_size, device), None
    if config.supervision is not None:
        labelled, _ = config.supervision.split(dataset)
        labels = LabelledFeed(dataset, labelled, training.seed, training.batch_size, device)
    for step in count():
        start = time.process_time()  # not the clock on the wall: others may be using this machine
        loss, parts = learner.losses(feed.batch(step), labels.batch(step) if labels else None, step)
        parts["loss"].item()
        learner.update(loss)
        yield time.process_time() - start


def show_estimate(estimate: Estimate) -> None:
    """Print what is done, what is left and what it costs."""
    from rich.console import Console

    shown = table()
    shown.add_column("model", no_wrap=True)
    shown.add_column("on", overflow="fold")
    for heading in ("runs left", "ms per step", "core-hours"):
        shown.add_column(heading, justify="right", no_wrap=True)
    for share in estimate.shares:
        shown.add_row(*_row(share))
    console = Console(highlight=False, soft_wrap=True)
    if estimate.shares:
        console.print(shown)
    for sentence in sentences(estimate):
        console.print(sentence, markup=False)


def _row(share: Share) -> tuple[str, ...]:
    seconds, shape = share.seconds_per_step, share.shape
    model = f"{shape.model}, {shape.supervision.loss}" if shape.supervision else shape.model
    size = f" at {shape.resolution}x{shape.resolution}, width {shape.networks.width}" if shape.resolution else ""
    cost = ("?", "?") if seconds is None else (f"{1000 * seconds:,.1f}", f"{share.core_hours:,.1f}")
    return model, ", ".join(share.datasets) + size, f"{share.runs:,}", *cost


def sentences(estimate: Estimate) -> list[str]:
    """The estimate in words."""
    from joblib import cpu_count

    states, cores = estimate.states, cpu_count()
    told = [
        f"{estimate.study}: {estimate.runs:,} runs; {states.get('finished', 0):,} finished, "
        f"{states.get('trained', 0):,} trained and to be scored, {states.get('begun', 0):,} half-finished, "
        f"{states.get('new', 0):,} to begin"
    ]
    if estimate.shares:
        hours = estimate.core_hours
        told.append(
            f"training left: {hours:,.1f} core-hours, {hours / cores:,.1f} hours on {cores} cores; scoring comes on top"
        )
    if unknown := estimate.unknown_runs:
        told.append(f"not counted: {unknown:,} runs on images that are not here")
    return told + list(estimate.missing.values())
