"""The tables below results/: scores of every run, codes of discrete models, costs of a step, scores of long runs."""

import csv
import json
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from functools import cache
from pathlib import Path

import numpy as np
import torch
from scipy.stats import entropy

from lddr.bench import next_step
from lddr.config import Config
from lddr.console import say, watched
from lddr.data.dataset import Dataset, stream
from lddr.files import written_whole
from lddr.hardware import keep_freed_memory
from lddr.metrics.evaluate import evaluate
from lddr.report.card_figures import log_columns
from lddr.runs.index import Run, Value, completed
from lddr.selection.ranking import Encoded, encode
from lddr.sweeps.study import read_study
from lddr.timing import interleaved
from lddr.trained import Trained
from lddr.training.checkpoint import Checkpoint, load_newest
from lddr.training.trainer import Trainer
from lddr_paper.claims import ENTROPY, with_angles

RESULTS = Path(__file__).parents[3] / "results"
FIRST, LAST = ("dataset", "model", "seed", "steps"), ("name", "lddr", "torch", "python")  # columns
SETTING, SCORE = "set ", "score "  # prefixes of the other columns
CONFIDENCE, LEFT_OUT = "gap.confidence.first", ("threads", "mean_picture")
TIED, FREE = "tied.", "free."  # prefixes of scores of latents that are tied to a labelled factor, or to none
OWN_LATENTS, OWN_GAP = "own_latents", 0.1  # factors with a latent of their own, and the gap of MIG that makes it one
LONG_SCORES, LOGGED, INFORMATION = ("mig", "modularity"), ("reconstruction", "kl"), "information"
LONG_COLUMNS = ("model", "initialiser", "seed", "step", *LONG_SCORES, *LOGGED, INFORMATION, "name")


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table without their empty cells; none if there is no such table."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: value for name, value in row.items() if value} for row in csv.DictReader(file)]


def write_csv(path: Path, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    with written_whole(path) as draft, draft.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


# ---- A row for each run


def read_runs(*studies: str) -> list[Run]:
    """Return the runs of some studies, each once.

    "penalties/replaced.csv" are the runs of `penalties` that were trained again, as they were before.
    """
    paths = [RESULTS / (study if study.endswith(".csv") else f"{study}/scores.csv") for study in studies]
    found = [run for path in paths if path.exists() for run in _runs_of(path, path.stat().st_mtime_ns)]
    return list({run.name: run for run in found}.values())


@cache
def _runs_of(path: Path, written: int) -> list[Run]:
    return [_run(row) for row in read_csv(path)]


def add_runs(study: str, runs: Iterable[Run]) -> int:
    """Add runs to the table of a study or update their rows; rows of runs that are not here stay.

    The row of a run that was trained again, with another MIG, moves to a table of its own.
    """
    path, replaced, mig = RESULTS / study / "scores.csv", RESULTS / study / "replaced.csv", SCORE + "mig"
    rows = {row["name"]: row for row in read_csv(path)}
    found = {run.name: run_row(run, rows.get(run.name, {})) for run in runs}
    if again := [rows[name] for name, row in found.items() if name in rows and rows[name].get(mig) != row.get(mig)]:
        _write_rows(replaced, [*read_csv(replaced), *again])
    _write_rows(path, (rows | found).values())
    return len(found)


def borrow_rows(study: str, others: Iterable[str], names: Set[str], scores: Set[str]) -> None:
    """Add the rows of runs with these names from the tables of other studies, if they have these scores."""
    rows = {row["name"]: row for row in read_csv(RESULTS / study / "scores.csv")}
    wanted = {SCORE + name for name in scores}
    found = [row for other in others for row in read_csv(RESULTS / other / "scores.csv")]
    if added := {row["name"]: row for row in found if row["name"] in names - rows.keys() and wanted <= row.keys()}:
        _write_rows(RESULTS / study / "scores.csv", (rows | added).values())


def _write_rows(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    order = sorted(rows, key=lambda row: ([row[name] for name in FIRST[:2]], int(row["seed"]), row["name"]))
    named = sorted({name for row in order for name in row if name.startswith((SETTING, SCORE))})
    columns = [*FIRST, *sorted(named, key=lambda name: name.startswith(SCORE)), *LAST]
    write_csv(path, columns, [[row.get(name, "") for name in columns] for row in order])


def run_row(run: Run, old: Mapping[str, str]) -> dict[str, str]:
    """Return the row of a run; the confidence before the first step, which takes a model, is that of its old row."""
    versions = json.loads((run.folder / "config.json").read_text())["versions"]
    settings = {name: str(value) for name, value in run.settings.items() if value is not None}
    row = {name: settings.pop(name) for name in FIRST} | {SETTING + name: value for name, value in settings.items()}
    log = log_columns(run)
    scores = run.scores | {f"{name}.first": float(log[name][0]) for name in LOGGED if name in log}
    scores |= with_angles(run).scores | _tied_information(run) | _own_latents(run)
    if run.value("latent") == "categorical":
        before = old.get(SCORE + CONFIDENCE)
        scores[CONFIDENCE] = float(before) if before else _first_confidence(run)
    row |= {SCORE + name: f"{value:.6g}" for name, value in scores.items() if name not in LEFT_OUT}
    return row | {"name": run.name} | {name: versions[name] for name in LAST[1:]}


def _first_confidence(run: Run) -> float:
    """Return the largest probability of a posterior before the first step, mean over latents and images."""
    config, dataset = run.files.config, run.files.dataset
    model = Trained(config, Trainer(config, dataset, torch.device("cpu")).vae, dataset.image_shape)
    return float(model.posterior(dataset.draw(stream(0, "results"), 256)).max(axis=2).mean())


def _tied_information(run: Run) -> dict[str, float]:
    """Return the nats about each labelled factor in the latent tied to it, and the most in a latent tied to none."""
    if run.value("supervision") is None:
        return {}
    information = np.array(run.files.metrics["mig"]["mutual_information"])  # (latents, factors)
    names = run.files.dataset.space.names
    found = {TIED: np.diag(information), FREE: information[len(names) :].max(axis=0, initial=0.0)}
    return {kind + name: float(value) for kind, row in found.items() for name, value in zip(names, row, strict=True)}


def _own_latents(run: Run) -> dict[str, float]:
    """Return how many factors have a latent of their own: it encodes most about them, with a gap to the second."""
    if "mig" not in run.files.metrics:
        return {}
    details = run.files.metrics["mig"]
    largest = np.array(details["mutual_information"]).argmax(axis=0)  # (factors,)
    return {OWN_LATENTS: len(set(largest[np.array(details["per_factor"]) >= OWN_GAP]))}


def _run(row: Mapping[str, str]) -> Run:
    settings = {name.removeprefix(SETTING): _value(value) for name, value in row.items() if not name.startswith(SCORE)}
    scores = {name.removeprefix(SCORE): float(value) for name, value in row.items() if name.startswith(SCORE)}
    if codes_file(row["name"]).exists():
        scores[ENTROPY] = category_entropy(codes_file(row["name"]))
    return Run(Path(row["name"]), "finished", completed({k: v for k, v in settings.items() if k not in LAST}), scores)


def _value(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


# ---- Codes of discrete models, all for the same images: models of later runs are compared with them


def codes_file(name: str) -> Path:
    return RESULTS / "selection" / "codes" / f"{name}.npz"


def keep_codes(runs: Sequence[Run]) -> None:
    """Encode with every discrete model whose codes are not kept yet."""
    for run in watched([run for run in runs if not codes_file(run.name).exists()], "codes"):
        shown = encode(run)
        assert shown.categories is not None
        assert shown.confidence is not None
        with written_whole(codes_file(run.name)) as draft, draft.open("wb") as file:
            np.savez_compressed(
                file,
                codes=shown.codes.astype(np.float16),  # three digits of numbers from -1 to 1
                categories=shown.categories.astype(np.uint8),
                confidence=shown.confidence.astype(np.float32),
            )


def read_codes(runs: Iterable[Run]) -> dict[str, Encoded]:
    """Return the codes that have been kept, by the names of the runs."""
    kinds = {"codes": np.float64, "categories": np.int64, "confidence": np.float64}
    found = {}
    for run in runs:
        if codes_file(run.name).exists():
            with np.load(codes_file(run.name), allow_pickle=False) as stored:
                found[run.name] = Encoded(**{name: stored[name].astype(kind) for name, kind in kinds.items()})
    return found


@cache
def category_entropy(path: Path) -> float:
    """Return how evenly a model uses its categories: their entropy over images in nats, summed over latents."""
    with np.load(path, allow_pickle=False) as stored:
        return float(sum(entropy(np.unique(column, return_counts=True)[1]) for column in stored["categories"].T))


# ---- Costs of a training step


def read_costs(preset: str = "quick") -> dict[str, float]:
    """Return model → milliseconds of a step on dSprites with a preset, on one core."""
    return {row["model"]: float(row["ms"]) for row in read_csv(RESULTS / "costs.csv") if row["preset"] == preset}


def measure_costs(preset: str, configs: Iterable[Config]) -> None:
    """Time a step of every model that is compared on dSprites, in turns, unless all are in the table."""
    found = {config.model: config for config in configs if config.dataset == "dsprites" and config.supervision is None}
    if found.keys() <= read_costs(preset).keys():
        return
    torch.set_num_threads(1)
    keep_freed_memory()
    seconds = interleaved({name: next_step(config) for name, config in found.items()}, 60, time.process_time)
    rows = {(row["preset"], row["model"]): row["ms"] for row in read_csv(RESULTS / "costs.csv")}
    rows |= {(preset, name): f"{1000 * value:.1f}" for name, value in seconds.items()}
    write_csv(RESULTS / "costs.csv", ("preset", "model", "ms"), [(*key, ms) for key, ms in sorted(rows.items())])


# ---- Runs with the paper's own settings, which take days: their scores at the steps they have reached


def read_long() -> dict[tuple[str, str], list[dict[str, str]]]:
    """Return model and initialiser → its rows, by step."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    rows = read_csv(RESULTS / "long" / "steps.csv")
    for row in sorted(rows, key=lambda row: (row["model"], row["initialiser"], int(row["step"]))):
        found.setdefault((row["model"], row["initialiser"]), []).append(row)
    return found


def add_long(runs: Sequence[Run]) -> None:
    """Score the newest checkpoint of every long run that has got further; earlier scores stay."""
    ours = {config.run_name for config in read_study(RESULTS / "long" / "study.toml").configs}
    rows = {(row["name"], int(row["step"])): row for some in read_long().values() for row in some}
    for run in watched([run for run in runs if run.name in ours], "long runs"):
        found = load_newest(run.files.checkpoints, warn=say)
        log = [record for record in run.files.log if found is not None and record["step"] <= found.step]
        if found is not None and log and (run.name, found.step) not in rows:
            rows[run.name, found.step] = _long_row(run, found) | {name: f"{log[-1][name]:.6g}" for name in LOGGED}
    if rows:
        cells = [[rows[key].get(name, "") for name in LONG_COLUMNS] for key in sorted(rows)]
        write_csv(RESULTS / "long" / "steps.csv", LONG_COLUMNS, cells)


def _long_row(run: Run, found: Checkpoint) -> dict[str, str]:
    config, dataset = run.files.config, run.files.dataset
    trainer = Trainer(config, dataset, torch.device("cpu"))
    trainer.restore(found.tensors)
    model = Trained(config, trainer.vae, dataset.image_shape)
    entries = evaluate(dataset, model, LONG_SCORES, jobs=1, quiet=True)
    row = {name: str(run.value(name)) for name in ("model", "initialiser", "seed", "name")} | {"step": str(found.step)}
    row |= {name: f"{entries[name]['score']:.6g}" for name in LONG_SCORES}
    return row | ({INFORMATION: f"{_information(model, dataset):.6g}"} if model.is_discrete else {})


def _information(model: Trained, dataset: Dataset) -> float:
    """Return the information of the categories about 1,000 images in nats, summed over latents."""
    posterior = model.posterior(dataset.draw(stream(0, "information"), 1000))  # (images, latents, categories)
    return float((entropy(posterior.mean(0), axis=-1) - entropy(posterior, axis=-1).mean(0)).sum())
