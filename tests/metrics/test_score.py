import json
import warnings

import numpy as np
import pytest

from lddr.cli import main
from lddr.errors import UserError
from lddr.metrics.evaluate import divide_rows, score_codes
from lddr.metrics.metric import FewSamplesWarning, choose_metrics, metrics
from lddr.metrics.mig import mig

GENERATOR = np.random.default_rng(0)
FACTORS = GENERATOR.integers([3, 4], size=(600, 2))
CODES = FACTORS[:, ::-1] + GENERATOR.normal(0, 0.05, (600, 2))


def test_arrays_are_scored_as_by_the_function():
    entries = score_codes(CODES, FACTORS, ["mig", "modularity"], jobs=1, quiet=True)
    assert np.isclose(entries["mig"]["score"], mig(CODES, FACTORS).score, atol=1e-12)
    assert entries["mig"]["settings"]["samples"] == 600  # what there was, not the published 10 000


def test_every_metric_has_a_score_or_a_reason():
    quick = {"dci": {"estimator": "fast"}, "dci_es": {"widths": (0, 4), "epochs": 2}, "nk": {"width": 4, "epochs": 2}}
    quick |= {name: {"sizes": (10, 20), "test": 50} for name in ("downstream_boosting", "downstream_logistic")}
    entries = score_codes(CODES[:150], FACTORS[:150], "all", settings=quick, jobs=1, quiet=True)
    assert list(entries) == list(metrics)
    for name, entry in entries.items():
        if metrics[name].needs == "codes":
            assert np.isfinite(entry["score"]), name
        else:
            assert entry["score"] is None
            assert "needs the" in entry["reason"]
    json.dumps(entries)


@pytest.mark.parametrize("unknown", [np.nan, -1])
def test_samples_with_an_unknown_factor_are_left_out(unknown):
    factors = FACTORS.astype(float)
    factors[:200, 0] = factors[150:250, 1] = unknown
    entries = score_codes(CODES, factors, ["mig", "unsupervised", "modularity"], jobs=1, quiet=True)
    for name in ("mig", "modularity"):
        known = score_codes(CODES[250:], FACTORS[250:], [name], jobs=1, quiet=True)[name]
        assert entries[name]["score"] == pytest.approx(known["score"], abs=1e-12)
        assert entries[name]["labelled_images"] == 350
        assert entries[name]["scored_on"] == "scored on the 350 of 600 samples with all factors labelled"
        assert "from 350 samples" in entries[name]["warning"]
    assert entries["unsupervised"]["settings"]["samples"] == 600
    assert "scored_on" not in entries["unsupervised"]


def test_a_file_with_unknown_factors_says_how_many_samples_are_scored(tmp_path, capsys):
    factors = FACTORS.astype(float)
    factors[:200, 0] = np.nan
    path = saved(tmp_path, codes=CODES, factors=factors)
    main(["score", str(path), "--metrics", "mig", "--jobs", "1"])
    assert "mig: scored on the 400 of 600 samples with all factors labelled" in capsys.readouterr().out


@pytest.mark.parametrize("count", [1, 2, 3, 100, 14_999, 15_000, 40_000])
def test_parts_do_not_overlap_and_use_what_there_is(count):
    parts = divide_rows(metrics["sap"], count, 0)
    both = np.concatenate([parts["train"], parts["test"]])
    assert len(np.unique(both)) == len(both) == min(count, 15_000)
    if count >= 100:
        assert abs(len(parts["train"]) / len(both) - 2 / 3) < 0.01
    assert len(divide_rows(metrics["mig"], count, 0)["samples"]) == min(count, 10_000)


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


def test_files_that_cannot_be_scored_write_nothing(tmp_path, capsys):
    path = saved(tmp_path, codes=np.where(CODES > 2, np.nan, CODES), factors=FACTORS)
    with pytest.raises(SystemExit) as stop:
        main(["score", str(path), "--metrics", "mig", "--out", str(tmp_path / "out.json")])
    assert stop.value.code == 2
    assert "NaN or infinite" in capsys.readouterr().err
    assert not (tmp_path / "out.json").exists()


QUICK = ["explicitness", "infomec", "mig", "mig_sup", "min_suf", "modularity", "sap", "snc", "unsupervised"]


def test_what_takes_seconds_is_the_default_and_what_is_changed_joins_it():
    assert [name for name in metrics if metrics[name].is_quick] == QUICK
    assert list(choose_metrics()) == list(choose_metrics("quick")) == QUICK
    assert list(choose_metrics("all")) == list(metrics)
    assert list(choose_metrics(None, {"dci": {"estimator": "fast"}})) == ["dci", *QUICK]
    assert list(choose_metrics(" mig, sap,mig ")) == ["mig", "sap"]
    with pytest.raises(UserError, match="say quick, all or some of"):
        choose_metrics(",")


def test_the_command_scores_the_quick_ones_and_names_the_others(tmp_path, capsys):
    main(["score", str(saved(tmp_path, codes=CODES, factors=FACTORS)), "--jobs", "1"])
    shown = capsys.readouterr().out
    assert all(f"\n{name}" in shown for name in QUICK)
    assert "\ndci" not in shown
    others = [name for name in metrics if name not in QUICK]
    assert f"with --metrics all: {', '.join(others)}" in " ".join(shown.split())


def test_scores_are_printed_as_they_arrive_quick_metrics_first_without_promising_a_time(capsys):
    entries = score_codes(CODES, FACTORS, ["explicitness", "sap", "mig"], jobs=1)
    assert list(entries) == ["explicitness", "sap", "mig"]
    assert [line.split() for line in capsys.readouterr().err.splitlines()] == [
        [name, f"{entries[name]['score']:.4f}", str(number), "of", "3"]
        for number, name in enumerate(("mig", "explicitness", "sap"), 1)
    ]


def test_few_samples_are_warned_of(tmp_path, capsys):
    with pytest.warns(FewSamplesWarning, match="^mig: from 600 samples"):
        mig(CODES, FACTORS)
    with pytest.warns(FewSamplesWarning, match="^mig, sap: from 600 samples") as warned:
        entries = score_codes(CODES, FACTORS, ["mig", "sap"], jobs=1, quiet=True)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert "from 600 samples" in entries["mig"]["warning"]
    main(["score", str(saved(tmp_path, codes=CODES, factors=FACTORS)), "--metrics", "mig,sap", "--jobs", "1"])
    assert "mig, sap: from 600 samples" in capsys.readouterr().out


def test_enough_samples_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (
            "warning" not in score_codes(np.tile(CODES, (2, 1)), np.tile(FACTORS, (2, 1)), ["mig"], quiet=True)["mig"]
        )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"seed": -1}, "seed must be at least 0, not -1"),
        ({"bins": 1}, "bins must be at least 2"),
        ({"bins": 10**9}, "bins must be at most"),
        ({"jobs": 0}, "jobs must be at least 1, or -1"),
    ],
)
def test_options_out_of_their_range_are_refused(options, sentence, tmp_path, capsys):
    with pytest.raises(UserError, match=sentence):
        score_codes(CODES, FACTORS, ["mig"], quiet=True, **options)
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    with pytest.raises(SystemExit) as stop:
        main(["score", str(saved(tmp_path, codes=CODES, factors=FACTORS)), "--metrics", "mig", *words])
    assert stop.value.code == 2
    assert sentence in capsys.readouterr().err


def test_a_missing_file_and_wrong_factors_are_refused(tmp_path):
    with pytest.raises(SystemExit):
        main(["score", str(tmp_path / "none.npz")])
    with pytest.raises(UserError, match="expected factors of shape"):
        score_codes(CODES, FACTORS[None])
