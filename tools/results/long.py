"""Runs with the paper's own settings that take days: their scores at the steps they have got to."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import median

import torch
from claims import Lines, numbers, table
from scipy.stats import entropy
from table import RESULTS, of, write
from table import read as read_runs

from lddr.console import say, watched
from lddr.data.dataset import Dataset, stream
from lddr.metrics.evaluate import evaluate
from lddr.report.style import metric_title, model_title
from lddr.runs.index import Run
from lddr.sweeps.study import read_study
from lddr.trained import Trained
from lddr.training.checkpoint import Checkpoint, load_newest
from lddr.training.trainer import Trainer

FILE, STUDY = RESULTS / "long" / "steps.csv", RESULTS / "long" / "study.toml"
SCORES = ("mig", "modularity")
LOGGED = ("reconstruction", "kl")
INFORMATION, SHOWN = "information", 1_000  # nats that categories tell of images, of so many
COLUMNS = ("model", "initialiser", "seed", "step", *SCORES, *LOGGED, INFORMATION, "name")
INTRODUCTION = """\
## With the paper's own settings
Networks of width 32 at 64x64 that are to be trained for 300 000 steps, as far as they have got, one seed each: a look
at whether it still matters later how the weights begin, no evidence of who is ahead. Information is what the categories
of a D-VAE tell of 1 000 images; the rest of its KL is the price of categories that are used unevenly, as
[dark images](../docs/training.md#dark-and-light-images) can leave them. It and the losses below were added when the KL
had been seen."""
APART = """\
How far apart the two beginnings are in MIG, at first and now, beside how far apart two seeds are that begin alike (the
median over pairs of the small models of `families`): what is no further apart than those may be chance. That yardstick
was chosen when the longest run had 8 442 steps. Losses are reconstruction error and KL."""


@dataclass(frozen=True)
class Reached:
    """The scores of a run at a step."""

    row: dict[str, str]

    @property
    def kind(self) -> tuple[str, str]:
        return self.row["model"], self.row["initialiser"]

    @property
    def step(self) -> int:
        return int(self.row["step"])

    def score(self, name: str) -> float:
        return float(self.row[name])


def gather(runs: Sequence[Run]) -> None:
    """Score the newest checkpoint of every run of the study, if it has got further; earlier scores stay."""
    ours = {config.run_name for config in read_study(STUDY).configs}
    rows = {(one.row["name"], one.step): one.row for one in read()}
    for run in watched([run for run in runs if run.name in ours], "long runs"):
        found = load_newest(run.files.checkpoints, warn=say)
        logged = [record for record in run.files.log if found is not None and record["step"] <= found.step]
        if found is not None and logged and (run.name, found.step) not in rows:
            rows[run.name, found.step] = _row(run, found, logged[-1])
    if rows:
        write(FILE, COLUMNS, [[rows[key][name] for name in COLUMNS] for key in sorted(rows)])


def _row(run: Run, found: Checkpoint, logged: Mapping[str, float]) -> dict[str, str]:
    config, dataset = run.files.config, run.files.dataset
    trainer = Trainer(config, dataset, torch.device("cpu"))
    trainer.restore(found.tensors)
    model = Trained(config, trainer.vae, dataset.image_shape)
    entries = evaluate(dataset, model, SCORES, jobs=1, quiet=True)
    row = {name: str(run.value(name)) for name in ("model", "initialiser", "seed", "name")} | {"step": str(found.step)}
    row |= {name: f"{entries[name]['score']:.6g}" for name in SCORES}
    told = f"{_information(model, dataset):.6g}" if model.is_discrete else ""
    return row | {name: f"{logged[name]:.6g}" for name in LOGGED} | {INFORMATION: told}


def _information(model: Trained, dataset: Dataset) -> float:
    """Of the categories about the images, summed over latents: what of the KL is not the price of uneven categories."""
    posterior = model.posterior(dataset.draw(stream(0, "information"), SHOWN))  # (images, latents, categories)
    return float((entropy(posterior.mean(0), axis=-1) - entropy(posterior, axis=-1).mean(0)).sum())


def read() -> list[Reached]:
    if not FILE.exists():
        return []
    with FILE.open(newline="", encoding="utf-8") as file:
        return [Reached(row) for row in csv.DictReader(file)]


def kinds() -> dict[tuple[str, str], list[Reached]]:
    """Model and beginning → its scores, step by step."""
    found: dict[tuple[str, str], list[Reached]] = {}
    for one in sorted(read(), key=lambda one: (one.kind, one.step)):
        found.setdefault(one.kind, []).append(one)
    return found


def told() -> list[str]:
    """The section of the page; nothing before there are such runs."""
    if not kinds():
        return []
    last = {kind: steps[-1] for kind, steps in kinds().items()}
    rows = [
        (model_title(model), weights, f"{one.step:,}", *(f"{one.score(name):.3f}" for name in SCORES), *_nats(one))
        for (model, weights), one in last.items()
    ]
    nats = ("reconstruction error", "KL", "information")
    lines: Lines = table(("model", "weights begin", "steps so far", *map(metric_title, SCORES), *nats), rows)
    picture = RESULTS / "long" / "steps.png"
    lines += ["", "![MIG against steps](long/steps.png)"] * picture.exists()
    return [INTRODUCTION, "\n".join(lines), *_beginnings()]


def _beginnings() -> list[str]:
    """What the beginning of the weights makes of a model, at the first and the last steps that both have."""
    found, rows = kinds(), []
    for model in sorted({model for model, _ in found}):
        both = list(zip(found.get((model, "truncated"), ()), found.get((model, "uniform"), ()), strict=False))
        for pair in (both[0], both[-1]) if len(both) > 1 else ():
            first, second = (one.score("mig") for one in pair)
            steps = " and ".join(f"{one.step:,}" for one in pair)
            told = (f"{value:.3f}" for value in (first, second, abs(second - first), _seeds_apart(model)))
            losses = " and ".join(f"{sum(map(one.score, LOGGED)):.1f}" for one in pair)
            rows.append((model_title(model), steps, *told, losses))
    header = ("model", "steps", "truncated", "uniform", "apart", "two seeds apart", "losses")
    return [APART, "\n".join(table(header, rows))] if rows else []


def _seeds_apart(model: str) -> float:
    scores = numbers(of(read_runs("families"), "dsprites", model), "mig")
    return median(abs(a - b) for a, b in combinations(scores, 2))


def _nats(one: Reached) -> tuple[str, ...]:
    return tuple(f"{one.score(name):.1f}" if one.row[name] else "–" for name in (*LOGGED, INFORMATION))
