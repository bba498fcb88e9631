"""Run folders without training: real settings, invented scores."""

import atexit
import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from lddr.config import configure
from lddr.metrics.metric import metrics
from lddr.report.groups import collect
from lddr.report.traversals import LoadedRun
from lddr.runs.evaluate import evaluate_run
from lddr.runs.index import list_runs, read_run
from lddr.runs.run import Machine, run
from lddr.trained import train
from tests.report.grouped import labelled, runs_of
from tests.run_folders import completed


@pytest.fixture
def make_run(tmp_path):
    """A function that writes the folder of a finished run with these scores and gives the run."""

    def make(model, dataset, seed=0, scores=None, root="runs", preset="paper", metric_settings=None, **settings):
        config = configure(model, dataset, preset, seed=seed, **settings)
        folder = tmp_path / root / config.run_name
        folder.mkdir(parents=True)
        versions = {"lddr": "0.1", "torch": "2.13.0", "python": "3.11.7"}
        identity = {"name": dataset, "images": 1600, "factors": {"x": 40, "y": 40}, "checksum": f"sum of {dataset}"}
        content = {"settings": config.as_dict(), "versions": versions, "dataset": identity}
        (folder / "config.json").write_text(json.dumps(content))
        given = {name: value if isinstance(value, dict) else {"score": value} for name, value in (scores or {}).items()}
        training = {"elbo": -20.0 - seed, "elbo_noiseless": -17.0 - seed, "reconstruction": 12.0, "kl": 5.0 + seed}
        training |= {"validation_risk": given.pop("validation_risk")["score"]} if "validation_risk" in given else {}
        for name, entry in given.items():
            changed = (metric_settings or {}).get(name, {})
            entry["settings"] = metrics[name].settings | {"draw_seed": 0, "bins": None} | changed
        (folder / "scores.json").write_text(json.dumps({"training": training, "metrics": given}))
        completed(folder)
        return read_run(folder)

    return make


@pytest.fixture
def compared_runs():
    """The discrete median is 0.4 over 0.2 on circles, of five runs each, and 0.3 over 0.4 on rooms, of fewer."""
    return [
        *runs_of("vae", "circles", "mig", (0.1, 0.15, 0.2, 0.8, 0.9)),
        *runs_of("dvae", "circles", "mig", (0.3, 0.4, 0.5, 0.4, 0.4)),
        *runs_of("vae", "rooms", "mig", (0.3, 0.5)),
        *runs_of("dvae", "rooms", "mig", (0.1, 0.3, 0.7)),
        *runs_of("dvae", "rooms", "mig", (0.99,), supervision="masked"),
        *runs_of("dvae", "dsprites", "mig", (0.99, 0.98)),
    ]


@pytest.fixture
def logged_run(make_run):
    records = [
        {"step": 100, "loss": 9.0, "elbo": -9.0, "reconstruction": 8.0, "kl": 1.0},
        {"step": 200, "loss": 7.0, "elbo": -7.0, "reconstruction": 5.0, "kl": 2.0, "total_correlation": 0.5},
        {"step": 300, "loss": 6.0, "elbo": -6.0, "reconstruction": 3.0, "kl": 3.0, "total_correlation": 0.25},
    ]
    run = make_run("dvae", "circles", steps=300)
    run.files.log_file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return run


@cache  # the fixtures of two folders of tests share them
def trained_folders():
    out, machine = Path(mkdtemp()), Machine("cpu", 1, quiet=True)
    atexit.register(shutil.rmtree, out)
    configs = [configure(model, "circles", "quick", width=1, steps=5, seed=0) for model in ("vae", "dvae")]
    folders = [run(config, out, machine) for config in configs]
    for folder in folders:
        evaluate_run(folder, ["mig", "gap"], settings={"mig": {"samples": 200}, "gap": {"batches": 2}}, quiet=True)
    return folders


@pytest.fixture(scope="session")
def trained():
    """Folders of a VAE and a D-VAE after a few steps, scored on a few images: enough for every type of page."""
    return trained_folders()


@cache
def hardly_trained_runs():
    out = Path(mkdtemp())
    atexit.register(shutil.rmtree, out)
    train("circles", "vae", "quick", out=out, steps=1, width=1, num_latents=3)
    train("circles", "dvae", "quick", out=out, steps=1, width=1, num_latents=3, supervision="masked")
    runs = [replace(one, scores=one.scores | {"explained": 0.5}) for one in list_runs(out)]  # as if it were more
    return {str(one.value("model")): LoadedRun(one) for one in runs}


@pytest.fixture(scope="session")
def hardly_trained():
    """A VAE, and a D-VAE with masked categories, after one step, which is enough to be drawn."""
    return hardly_trained_runs()


@pytest.fixture
def labelled_runs():
    """By the median the masked D-VAE wins MIG and DCI; by the lowest R_s the VAE wins MIG and ties in DCI."""
    risks = ((3.0, 1.0, 2.0), (1.0, 2.0, 3.0), (3.0, 1.0, 2.0))  # of VAE, D-VAE, masked D-VAE
    migs = ((0.1, 0.9, 0.2), (0.3, 0.4, 0.5), (0.6, 0.7, 0.8))
    dcis = ((0.1, 0.8, 0.2), (0.3, 0.4, 0.5), (0.7, 0.8, 0.9))
    gaps = (None, (9.0, 8.0, 7.0), (5.0, 6.0, 4.0))
    methods = (("vae", "bce"), ("dvae", "cross-entropy"), ("dvae", "masked"))
    made = []
    for (model, loss), risk, mig, dci, gap in zip(methods, risks, migs, dcis, gaps, strict=True):
        for seed in range(3):
            scores = {"mig": mig[seed], "dci": dci[seed], "validation_risk": risk[seed]}
            made.append(labelled(model, loss, scores | ({"gap": gap[seed]} if gap else {}), seed=seed))
    return made


@pytest.fixture
def groups(make_run):
    """D-VAE on dSprites: MIG 10, 20, 40 % with gaps 3, 1, 2; FactorDVAE: 30 and 50 % with gaps 9 and 8; VAE: 25 %."""
    dvae = [(0.1, 3.0), (0.2, 1.0), (0.4, 2.0)]
    runs = [make_run("dvae", "dsprites", seed, {"mig": m, "gap": g, "sap": m / 10}) for seed, (m, g) in enumerate(dvae)]
    factor = [(0.3, 9.0), (0.5, 8.0)]
    runs += [make_run("factor-dvae", "dsprites", seed, {"mig": m, "gap": g}) for seed, (m, g) in enumerate(factor)]
    return collect([*runs, make_run("vae", "dsprites", 0, {"mig": 0.25})]).groups
