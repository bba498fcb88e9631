"""A study's scores as a table in the repository: a row for each run, from which runs can be read again."""

import csv
import json
from collections.abc import Iterable, Sequence, Set
from pathlib import Path

import numpy as np
import torch

from lddr.data.dataset import stream
from lddr.files import written_whole
from lddr.report.card_figures import logged
from lddr.report.traversals import space_of
from lddr.runs.index import Run, Value, completed
from lddr.trained import Trained
from lddr.training.trainer import Trainer
from lddr_paper.latent_figures import axis_angle, grid_turn

RESULTS = Path(__file__).parents[2] / "results"
FIRST = ("dataset", "model", "seed", "steps")  # columns
OWN = ("name", "lddr", "torch", "python")
CONFIDENCE, SAMPLES = "gap.confidence.first", 256
LEFT_OUT = ("threads", "mean_picture")
SETTING, SCORE = "set ", "score "  # what column names begin with
MIG = SCORE + "mig"
TIED, FREE = "tied.", "free."  # what scores begin with of latents that have labels of a factor, or none


def scores_file(study: str) -> Path:
    return RESULTS / study / "scores.csv"


def replaced_file(study: str) -> Path:
    """The rows of runs that were trained again, as they were before."""
    return RESULTS / study / "replaced.csv"


def keep(study: str, runs: Iterable[Run]) -> int:
    """Add runs to a study's table, or bring their rows up to date; rows of runs that are not here stay.

    The row of a run that was trained again, with another MIG, goes to a table of its own: nothing is lost in silence.
    """
    rows = {row["name"]: row for row in _rows(scores_file(study))}
    found = {run.name: _row(run, rows.get(run.name, {})) for run in runs}
    again = [rows[name] for name, row in found.items() if name in rows and rows[name].get(MIG) != row.get(MIG)]
    if again:
        _write_rows(replaced_file(study), [*_rows(replaced_file(study)), *again])
    _write_rows(scores_file(study), (rows | found).values())
    return len(found)


def borrow(study: str, others: Iterable[str], names: Set[str], scores: Set[str]) -> None:
    """Add the rows of runs with these names that other studies have, with these scores."""
    rows = {row["name"]: row for row in _rows(scores_file(study))}
    wanted = {SCORE + name for name in scores}
    found = [row for other in others for row in _rows(scores_file(other)) if row["name"] in names - rows.keys()]
    if added := {row["name"]: row for row in found if wanted <= row.keys()}:
        _write_rows(scores_file(study), (rows | added).values())


def _write_rows(path: Path, rows: Iterable[dict[str, str]]) -> None:
    order = sorted(rows, key=lambda row: ([row[name] for name in FIRST[:2]], int(row["seed"]), row["name"]))
    named = sorted({name for row in order for name in row if name.startswith((SETTING, SCORE))})
    columns = [*FIRST, *sorted(named, key=lambda name: name.startswith(SCORE)), *OWN]
    write(path, columns, [[row.get(name, "") for name in columns] for row in order])


def write(path: Path, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table, whole or not at all."""
    with written_whole(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def read(*studies: str) -> list[Run]:
    """The runs of studies as they were when their rows were written, each once."""
    rows = {row["name"]: row for study in studies for row in _rows(scores_file(study))}
    return [_run(row) for row in rows.values()]


def replaced(study: str) -> list[Run]:
    """The runs of a study that were trained again, as they were before."""
    return [_run(row) for row in _rows(replaced_file(study))]


def _rows(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: value for name, value in row.items() if value} for row in csv.DictReader(file)]


def _row(run: Run, old: dict[str, str]) -> dict[str, str]:
    """What is known of a run; what had to be worked out for its old row is taken from there."""
    versions = json.loads((run.folder / "config.json").read_text())["versions"]
    settings = {name: str(value) for name, value in run.settings.items() if value is not None}
    row = {name: settings.pop(name) for name in FIRST}
    row |= {SETTING + name: value for name, value in settings.items()}
    scores = run.scores | _beginning(run) | _angle(run) | _ties(run)
    if run.value("latent") == "categorical":
        before = old.get(SCORE + CONFIDENCE)
        scores[CONFIDENCE] = float(before) if before else _first_confidence(run)
    row |= {SCORE + name: f"{value:.6g}" for name, value in scores.items() if name not in LEFT_OUT}
    return row | {"name": run.name} | {name: versions[name] for name in OWN[1:]}


def _beginning(run: Run) -> dict[str, float]:
    """What the training began with: the mean over its first steps that were logged."""
    log = logged(run)
    return {f"{name}.first": float(log[name][0]) for name in ("reconstruction", "kl") if name in log}


def _first_confidence(run: Run) -> float:
    """The largest probability of a posterior before the first step, mean over latents and images."""
    config, dataset = run.files.config, run.files.dataset
    model = Trained(config, Trainer(config, dataset, torch.device("cpu")).vae, dataset.image_shape)
    return float(model.posterior(dataset.draw(stream(0, "results"), SAMPLES)).max(axis=2).mean())


def _angle(run: Run) -> dict[str, float]:
    if run.value("dataset") != "circles":
        return {}
    return {"angle": axis_angle(space_of(run)), "turn": grid_turn(space_of(run))}


def _ties(run: Run) -> dict[str, float]:
    """With labels: the nats about each factor in the latent tied to it, and the most that a latent tied to none has."""
    if run.value("supervision") is None:
        return {}
    information = np.array(run.files.metrics["mig"]["mutual_information"])  # (latents, factors)
    names = run.files.dataset.space.names
    found = {TIED: np.diag(information), FREE: information[len(names) :].max(axis=0, initial=0.0)}
    return {kind + name: float(value) for kind, row in found.items() for name, value in zip(names, row, strict=True)}


def _run(row: dict[str, str]) -> Run:
    settings = {name.removeprefix(SETTING): _value(value) for name, value in row.items() if not name.startswith(SCORE)}
    scores = {name.removeprefix(SCORE): float(value) for name, value in row.items() if name.startswith(SCORE)}
    name = str(settings.pop("name"))
    return Run(Path(name), "finished", completed({k: v for k, v in settings.items() if k not in OWN}), scores)


def _value(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def of(runs: Sequence[Run], dataset: str, *models: str, **settings: Value) -> list[Run]:
    """The runs on a dataset, of models, with settings; without labels where none are asked for."""
    wanted = {"dataset": dataset, "supervision": None} | settings
    return [
        run
        for run in runs
        if (not models or run.value("model") in models)
        and all(run.value(name) == value for name, value in wanted.items())
    ]
