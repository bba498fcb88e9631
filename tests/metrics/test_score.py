import json

import numpy as np
import pytest

from lddr.cli import main
from lddr.errors import UserError
from lddr.metrics.metric import metrics
from lddr.metrics.mig import mig
from lddr.metrics.score import divided, score_codes

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers([3, 4], size=(600, 2))
CODES = FACTORS[:, ::-1] + GENERATOR.normal(0, 0.05, (600, 2))


def test_arrays_are_scored_as_by_the_function():
    entries = score_codes(CODES, FACTORS, ["mig", "modularity"], jobs=1, quiet=True)
    assert np.isclose(entries["mig"]["score"], mig(CODES, FACTORS).score, atol=1e-12)
    assert entries["mig"]["settings"]["samples"] == 600  # what there was, not the published 10 000


def test_every_metric_has_a_score_or_a_reason():
    quick = {"dci": {"estimator": "fast"}, "downstream_boosting": {"sizes": (10, 100), "test": 50}}
    entries = score_codes(CODES[:150], FACTORS[:150], settings=quick, jobs=1, quiet=True)
    assert list(entries) == list(metrics)
    for name, entry in entries.items():
        if metrics[name].needs == "codes":
            assert np.isfinite(entry["score"]), name
        else:
            assert entry["score"] is None
            assert "needs the" in entry["reason"]
    json.dumps(entries)


@pytest.mark.parametrize("count", [1, 2, 3, 100, 14_999, 15_000, 40_000])
def test_parts_do_not_overlap_and_use_what_there_is(count):
    parts = divided(metrics["sap"], count, 0)
    both = np.concatenate([parts["train"], parts["test"]])
    assert len(np.unique(both)) == len(both) == min(count, 15_000)
    if count >= 100:
        assert abs(len(parts["train"]) / len(both) - 2 / 3) < 0.01
    assert len(divided(metrics["mig"], count, 0)["samples"]) == min(count, 10_000)


def saved(folder, **arrays):
    path = folder / "codes.npz"
    np.savez(path, **arrays)
    return path


def test_the_command_scores_a_file(tmp_path, capsys):
    path = saved(tmp_path, codes=CODES, factors=FACTORS, factor_names=["shape", "colour"])
    main(["score", str(path), "--metrics", "mig,beta_vae", "--out", str(tmp_path / "out.json"), "--jobs", "1"])
    shown = capsys.readouterr().out
    entries = json.loads((tmp_path / "out.json").read_text())
    assert f"{entries['mig']['score']:.4f}" in shown
    assert "it needs the dataset" in " ".join(shown.split())


def test_continuous_factors_of_a_file_are_named_or_binned(tmp_path, capsys):
    angles = GENERATOR.uniform(size=(600, 1))
    path = saved(tmp_path, codes=angles, factors=angles, factor_names=["angle"])
    main(["score", str(path), "--metrics", "mig", "--jobs", "1"])
    shown = " ".join(capsys.readouterr().out.split())
    assert "angle is continuous" in shown
    assert "no ground-truth factors" in shown
    main(["score", str(path), "--metrics", "mig", "--bins", "20", "--jobs", "1"])
    assert "1.0000" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"latents": CODES}, "no array 'codes'; it has: latents"),
        ({"codes": CODES[:, 0]}, "save it as"),
        ({"codes": CODES, "factors": FACTORS[:10]}, "'factors' in"),
        ({"codes": np.where(CODES > 2, np.nan, CODES), "factors": FACTORS}, "not finite"),
        ({"codes": np.array([[object()]]), "factors": FACTORS}, "cannot be read"),
    ],
)
def test_files_that_cannot_be_scored_are_refused_in_a_sentence(tmp_path, capsys, arrays, message):
    path = saved(tmp_path, **arrays)
    with pytest.raises(SystemExit) as stop:
        main(["score", str(path), "--metrics", "mig", "--out", str(tmp_path / "out.json")])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


def test_a_missing_file_and_wrong_factors_are_refused(tmp_path):
    with pytest.raises(SystemExit):
        main(["score", str(tmp_path / "none.npz")])
    with pytest.raises(UserError, match="expected factors of shape"):
        score_codes(CODES, FACTORS[:, 0])
