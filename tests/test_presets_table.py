from pathlib import Path
from runpy import run_path

from lddr.config import configure
from lddr.data.dataset import datasets

TOOL = run_path(str(Path(__file__).parent.parent / "tools" / "presets.py"))


def test_every_row_is_a_run_of_a_known_dataset_with_a_score_and_a_cost():
    rows = TOOL["read"]()
    assert len(rows) >= 20
    for row in rows:
        assert row["dataset"] in datasets
        assert configure(row["model"], row["dataset"], "quick")
        assert 0 <= float(row["mig"]) <= 1
        assert float(row["minutes"]) > 0 < int(row["steps"])


def test_changed_settings_are_those_that_differ_from_the_preset():
    usual, other = (TOOL["flat"](configure("dvae", "dsprites", "quick", **more)) for more in ({}, {"batch_size": 32}))
    assert {name for name in usual if usual[name] != other[name]} == {"batch_size"}
