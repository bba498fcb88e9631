"""The paper's numbers, which of ours they are compared with, and how our runs differ from the paper's."""

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Any

from lddr.errors import UserError
from lddr.report.exhibits import Number
from lddr.report.groups import fixed_settings, setting_text, unpublished
from lddr.report.style import dataset_title
from lddr.runs.index import Run, Value, flat_settings

DATASETS = {  # ours → the paper's, in its order
    "dsprites": "dsprites",
    "color_dsprites": "color_dsprites",
    "smallnorb": "smallnorb",
    "cars3d": "cars3d",
    "shapes3d": "shapes3d",
    "mpi3d_toy": "mpi3d",
}
LOOK_ALIKES = {"rooms": "shapes3d"}  # rendered here: similar, not the same
PAPER_PIXELS = 64  # the default resolution of all of the paper's datasets
MPI3D_IMAGES = 460_800  # the paper's MPI3D has four colours and four shapes; a later file has six of each
METRICS = {"beta_vae": "beta_vae_score", "factor_vae": "factor_vae_score"}  # names that differ in its file
SELECTED_FROM = ("dvae", "factor-dvae")  # the models of its Selection row
QUOTED = ("beta-vae", "beta-tcvae", "dip-vae-i", "dip-vae-ii", "annealed-vae")  # from Locatello et al. (2019)
GAINS = {"dvae": "unregularized_mig_median_gain_percent", "factor-dvae": "tc_regularized_mig_median_gain_percent"}


@cache
def paper_results() -> dict[str, Any]:
    """Return all numbers of the paper, in percent."""
    return json.loads((files("lddr_paper") / "paper_results.json").read_text(encoding="utf-8"))


def paper_source() -> str:
    """Return the sentence that names the source of the paper's numbers."""
    return f"The paper's numbers are from {paper_results()['paper']}."


def counterpart(dataset: str) -> str | None:
    """Return the paper's dataset that ours is, or is similar to."""
    return DATASETS.get(LOOK_ALIKES.get(dataset, dataset))


def counterpart_title(dataset: str) -> str:
    """Return the title of the dataset that ours is, or is similar to."""
    return dataset_title(LOOK_ALIKES.get(dataset, dataset))


def paper_mig(model: str, dataset: str | None) -> Number | None:
    """Return median and quartiles of the unsupervised MIG (Table 1 and appendix); `model` may be "selection"."""
    key = model.replace("-", "_")
    middle = paper_results()["mig_median_unsupervised"].get(key, {}).get(dataset)
    low, high = paper_results()["mig_quartiles_unsupervised"].get(key, {}).get(dataset) or (None, None)
    return None if middle is None else Number(middle, low, high, marks="*" if model in QUOTED else "")


def paper_metric(metric: str, dataset: str | None) -> Number | None:
    """Return median and quartiles of one of the six metrics of the D-VAE (appendix)."""
    metrics = paper_results()["dvae_unregularized_all_metrics"]
    return _quartiles(metrics.get(METRICS.get(metric, metric), {}).get(dataset))


def paper_supervised(model: str, supervision: str, labels: int, dataset: str | None) -> Number | None:
    """Return median and quartiles of the MIG with 1000 labels (appendix)."""
    if labels != 1000 or supervision not in ("cross-entropy", "masked"):
        return None
    key = model.replace("-", "_") + ("_masked" if supervision == "masked" else "")
    return _quartiles(paper_results()["mig_semi_supervised_1000_labels"].get(key, {}).get(dataset))


def paper_gain(discrete: str, metric: str, dataset: str | None) -> Number | None:
    """Return by how many percent the discrete model's median is better than the Gaussian one's (text)."""
    claims = paper_results()["claims"]
    gain = claims.get(GAINS.get(discrete), {}).get(dataset) if metric == "mig" else None
    if discrete == "dvae" and dataset == "mpi3d":
        gain = claims["mpi3d_median_gain_percent"].get(metric)
    return None if gain is None else Number(gain)


def _quartiles(entry: dict[str, float] | None) -> Number | None:
    return None if entry is None else Number(entry["median"], entry["q25"], entry["q75"])


Departures = dict[str, dict[str, None]]  # mark → the difference, in the order of discovery


def departures(runs: Iterable[Run], metric: str | None = None, used: dict[str, Any] | None = None) -> Departures:
    """Return how these runs, and the settings that a metric was used with, differ from the paper's."""
    found: Departures = {}
    for mark, what in (item for run in runs for item in _departures(run)):
        found.setdefault(mark, {})[what] = None
    if metric and used and (odd := unpublished(metric, used)):
        found["¶"] = dict.fromkeys(odd)
    return found


def _departures(run: Run) -> Iterable[tuple[str, str]]:
    dataset, loss = str(run.value("dataset")), run.value("supervision")
    usual = paper_settings(str(run.value("model")), dataset, None if loss is None else str(loss))
    if dataset in LOOK_ALIKES:
        yield "‡", f"{dataset} is not {counterpart_title(dataset)}"
    if dataset == "mpi3d_toy" and run.files.images.get("images") not in (None, MPI3D_IMAGES):
        yield "‡", "this MPI3D has six colours and shapes, the paper's four"
    if run.files.images.get("origin") == "redrawn":
        yield "°", "about 100 of 3,000,000,000 pixels may differ"
    for name, value in fixed_settings(run).items():
        if name not in usual or value == usual[name] or (name == "resolution" and value in (None, PAPER_PIXELS)):
            continue
        fewer = name == "steps" and (run.number(name) or 0) < float(usual[name] or 0)
        yield "†" if fewer else "§", f"{name} {setting_text(value)} instead of {setting_text(usual[name])}"
    yield from (("§", f"{name} {value:g} is not in its grid") for name, value in _off_grid(run))


def _off_grid(run: Run) -> Iterable[tuple[str, float]]:
    from lddr.models import models

    model = str(run.value("model"))
    grid = models[model].grid if model in models else {}
    return [(name, value) for name in grid if (value := run.number(name)) is not None and value not in grid[name]]


@cache
def paper_settings(model: str, dataset: str, supervision: str | None) -> dict[str, Value]:
    """Return the settings of the paper's runs of a model; empty for a model of another version."""
    from lddr.config import configure

    with suppress(UserError):
        return flat_settings(configure(model, dataset, "paper", supervision=supervision).as_dict())
    return {}


@cache
def published_elsewhere() -> dict[str, Any]:
    """Return their numbers in percent, each set with its source and protocol."""
    return json.loads((files("lddr_paper") / "others_results.json").read_text(encoding="utf-8"))


def infomec_elsewhere(model: str, part: str, dataset: str | None) -> Number | None:
    """Return InfoM, InfoC or InfoE ("infom", …) of a model on one of the paper's datasets."""
    value = published_elsewhere()["infomec"].get(model.replace("-", "_"), {}).get(dataset, {}).get(part)
    return None if value is None else Number(value)
