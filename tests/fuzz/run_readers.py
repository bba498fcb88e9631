"""Readers of models, checkpoints, run folders and studies, with small valid files for them."""

import json
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import safetensors.torch
import torch

from lddr.config import configure
from lddr.errors import UserError
from lddr.metrics.evaluate import is_scored
from lddr.metrics.metric import metrics
from lddr.networks.coders import initialise
from lddr.report.exhibits import make_all, tables
from lddr.report.groups import collect
from lddr.report.pages import environment, score_table, setting_table
from lddr.report.reproduce import run_commands
from lddr.runs import index
from lddr.runs.folder import RunFolder
from lddr.runs.index import list_runs, read_run
from lddr.runs.information import information_of
from lddr.runs.loop import check_origin
from lddr.runs.tables import default_columns
from lddr.sweeps.study import read_study
from lddr.trained import Trained
from lddr.training import checkpoint
from lddr.training.trainer import vae_of
from tests.fuzz.mutations import mutated
from tests.fuzz.runner import Files, Reader

ASKED = ("config", "images", "scores", "metrics", "undefined", "log", "state", "last_step", "saved_step")


def tiny_model() -> Trained:
    config = configure("dvae", "dsprites", num_latents=2, num_categories=3, width=1, resolution=16, steps=20)
    vae = vae_of(config, (16, 16, 1))
    initialise(vae, torch.Generator().manual_seed(0))
    return Trained(config, vae, (16, 16, 1))


def model() -> Files:
    with TemporaryDirectory() as place:
        tiny_model().save(place)
        return {"model.safetensors": (Path(place) / "model.safetensors").read_bytes()}


def signed_again(name: str, content: bytes, random: Random) -> bytes:
    """Other facts or tensors, with the digest that fits them."""
    with TemporaryDirectory() as place:
        path = Path(place) / "x.safetensors"
        path.write_bytes(content)
        tensors, facts = checkpoint.read_checkpoint(path)
    text = json.dumps(facts)
    if random.random() < 0.8:
        text = mutated(text.encode(), random, is_text=True).decode("utf-8", "replace")
    else:
        victim = random.choice(sorted(tensors))
        tensors[victim] = torch.zeros(
            random.choice([(), (0,), (1,), (3, 2, 1)]),
            dtype=random.choice([torch.bool, torch.float64, torch.float8_e5m2, torch.complex64]),
        )
    entry = json.dumps({"facts": text, "digest": checkpoint.digest_of(tensors, text)})
    return safetensors.torch.save(tensors, {"lddr": entry})


def read_model(folder: Path) -> None:
    repr(Trained.load(folder))


def checkpoints() -> Files:
    with TemporaryDirectory() as place:
        tensors = {"sums": torch.ones(3), "weights": torch.ones(2, 2)}
        checkpoint.save(Path(place), 20, tensors, {"fingerprint": "abc"})
        checkpoint.save(Path(place), 30, tensors, {"fingerprint": "abc"})
        return {f"checkpoint/{path.name}": path.read_bytes() for path in Path(place).iterdir()}


def read_checkpoints(folder: Path) -> None:
    found = checkpoint.load_newest(folder / "checkpoint", lambda said: None)
    if found is not None:
        check_origin(found, "abc", 100, RunFolder(folder))


@cache
def run_folder() -> Files:
    """A run that may be damaged, and another one."""
    images = {"name": "dsprites", "shape": [16, 16, 1], "factors": {"shape": 3, "x": 32}, "checksum": "ab", "images": 9}
    versions = {"lddr": "1", "torch": "2", "python": "3"}
    config = {"format": 2, "settings": tiny_model().config.as_dict(), "versions": versions, "dataset": images}
    mig = {"score": 0.3, "entropies": [1.0, 2.0], "mutual_information": [[0.1, 0.2], [0.3, 0.4]]}
    sap = {"score": None, "reason": "there are too few", "settings": {}}
    entries = {"mig": mig | {"settings": metrics["mig"].settings}, "sap": sap}
    scores = {"training": {"elbo": -3.0, "kl": 1.0}, "metrics": entries}
    log = [{"step": step, "loss": 3.0, "kl": 1.0} for step in (10, 20)]
    files = {name: json.dumps(content).encode() for name, content in (("config.json", config), ("scores.json", scores))}
    files |= {"log.jsonl": "".join(f"{json.dumps(record)}\n" for record in log).encode()} | model()
    return {f"runs/{run}/{name}": content for run in ("ill", "healthy") for name, content in files.items()}


def damaged_run(name: str, content: bytes, random: Random) -> bytes:
    if name == "model.safetensors":
        return signed_again(name, content, random)
    return mutated(content, random, is_text=True)


def read_runs(folder: Path) -> None:
    """All that is asked of run folders without drawing; every question may have its own sentence."""
    runs = list_runs(folder / "runs")
    questions = [partial(ask, some) for some in (*([run] for run in runs), runs) for ask in (default_columns, _tables)]
    for run in runs:
        questions += [partial(getattr, run.files, name) for name in ASKED]
        questions += [partial(ask, run.folder) for ask in (information_of, Trained.load)]
        questions += [partial(_is_scored, run.files)]
    said = [error for question in questions if (error := _said(question)) is not None]
    if said:
        raise said[0]


def index_file() -> Files:
    """The index of these runs, with stamps that are none."""
    with TemporaryDirectory() as place:
        root = _written(Path(place)) / "runs"
        list_runs(root)
        content = json.loads((root / index.INDEX).read_bytes())
        for entry in content["runs"].values():
            entry["stamp"] = []
        return {f"runs/{index.INDEX}": json.dumps(content).encode()}


def read_index(folder: Path) -> None:
    """The runs are listed as their files are, whatever the index holds."""
    root = _written(folder) / "runs"
    truth = [read_run(root / name) for name in ("healthy", "ill")]
    if list_runs(root) != truth:
        raise AssertionError("the index was believed")


def _written(folder: Path) -> Path:
    for name, content in run_folder().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def _said(question: Callable[[], object]) -> UserError | None:
    try:
        question()
    except UserError as error:
        return error
    return None


def _is_scored(files: RunFolder) -> None:
    for name, entry in files.metrics.items():
        if name in metrics:
            is_scored(entry, metrics[name])


def _tables(runs: list) -> None:
    labels = [run.name for run in runs]
    score_table(runs, labels)
    setting_table(runs, labels)
    environment(runs)
    groups = collect(runs).groups
    run_commands(groups)
    list(make_all(tables.in_order(), groups, {}))


STUDY = b"""name = "mine"
about = "a study"
metrics = ["mig", "sap"]
set = ["mig.num_bins=30"]

[base]
dataset = "dsprites"
steps = 3000
kernels = [4, 4, 2, 2]

[[blocks]]
model = ["dvae", "vae"]
seeds = 2
learning_rate = [1e-4, 5e-4]

[[blocks]]
latent = "categorical"
objective = "factor"
gamma = [10, 20.0]
seeds = [3, 4]
quick = { seeds = 1 }

[quick]
preset = "quick"
metrics = ["mig"]
"""


def read_studies(folder: Path) -> None:
    for scale in ("full", "quick"):
        len(read_study(folder / "study.toml", scale).configs)


READERS = (
    Reader("checkpoints", checkpoints, read_checkpoints, signed_again),
    Reader("index", index_file, read_index),
    Reader("models", model, read_model, signed_again),
    Reader("runs", run_folder, read_runs, damaged_run),
    Reader("studies", lambda: {"study.toml": STUDY}, read_studies),
)
