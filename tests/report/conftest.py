"""Run folders without training: real settings, invented scores."""

import json
from dataclasses import asdict

import pytest

from lddr.config import configure
from lddr.metrics.metric import metrics
from lddr.runs.index import read_run
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
        training = {"elbo": -20.0 - seed, "reconstruction": 15.0, "kl": 5.0 + seed}
        training |= {"validation_risk": given.pop("validation_risk")["score"]} if "validation_risk" in given else {}
        for name, entry in given.items():
            changed = (metric_settings or {}).get(name, {})
            entry["settings"] = asdict(metrics[name]()) | {"draw_seed": 0, "bins": None} | changed
        (folder / "scores.json").write_text(json.dumps({"training": training, "metrics": given}))
        completed(folder)
        return read_run(folder)

    return make
