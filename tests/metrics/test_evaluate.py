import json
import shutil
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import lddr
from lddr.cli import main
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.metrics.elbo import gap
from lddr.metrics.evaluate import evaluate
from lddr.metrics.metric import metrics
from lddr.runs.evaluate import evaluate_run
from lddr.trained import Trained

CIRCLES = load_dataset("circles", 16)
FAST = {
    "beta_vae": {"train_points": 60, "test_points": 30, "pairs": 4},
    "factor_vae": {"train_votes": 60, "test_votes": 30},
    "mig": {"samples": 3000},
    "sap": {"train": 100, "test": 50},
}


def centres(images):
    """The centre of every circle, and a latent that says nothing."""
    rows, columns = np.mgrid[:16, :16]
    weights = images[..., 0] / images[..., 0].sum((1, 2), keepdims=True)
    x, y = ((weights * grid).sum((1, 2)) for grid in (columns, rows))
    return np.stack([x, -y, np.zeros_like(x)], axis=1)


def test_any_callable_is_scored():
    entries = lddr.evaluate(
        CIRCLES,
        centres,
        ["mig", "beta_vae", "factor_vae"],
        settings=subset("mig", "beta_vae", "factor_vae"),
        jobs=1,
        quiet=True,
    )
    assert entries["mig"]["score"] > 0.6  # at most log 20 / log 40: 20 bins for 40 values
    assert entries["beta_vae"]["score"] > 0.9
    assert entries["factor_vae"]["score"] > 0.9
    assert entries["mig"]["settings"]["num_bins"] == 20
    assert entries["mig"]["settings"]["draw_seed"] == 0
    json.dumps(entries)


def subset(*names):
    return {name: FAST[name] for name in names if name in FAST}


@pytest.mark.long
def test_scores_are_the_same_alone_together_and_in_any_order():
    names = ["sap", "mig", "factor_vae"]
    together = evaluate(CIRCLES, centres, names, settings=subset(*names), jobs=1, quiet=True)
    permuted = evaluate(CIRCLES, centres, names[::-1], settings=subset(*names), jobs=2, quiet=True)
    assert together == permuted
    for name in names:
        assert evaluate(CIRCLES, centres, [name], settings=subset(name), jobs=1, quiet=True)[name] == together[name]


def test_images_without_factors_have_the_scores_that_need_none():
    dataset = ArrayDataset(CIRCLES.images(np.arange(0, 1600, 20)))
    entries = evaluate(dataset, centres, ["mig", "unsupervised", "beta_vae"], jobs=1, quiet=True)
    assert entries["mig"]["score"] is None
    assert "no ground-truth factors" in entries["beta_vae"]["reason"]
    assert entries["unsupervised"]["score"] is not None


def test_a_model_metric_of_a_mere_callable_says_what_it_needs():
    assert "needs the model" in evaluate(CIRCLES, centres, ["gap"], jobs=1, quiet=True)["gap"]["reason"]


def test_a_trained_model_is_scored_with_what_needs_it(folder_of):
    model = Trained.load(folder_of("dvae"))
    names, settings = ["mig", "gap"], {"gap": {"batches": 2, "batch_size": 8}}
    entries = lddr.evaluate(CIRCLES, model, names, settings=settings, jobs=1, quiet=True)
    by_hand = evaluate(CIRCLES, model.represent, ["mig"], jobs=1, quiet=True)
    assert entries["mig"] == by_hand["mig"]
    assert entries["gap"]["score"] == gap(model, CIRCLES, 0, 2, 8).score


def test_a_model_is_given_images_that_are_looked_at_once(folder_of, monkeypatch):
    model, seen = Trained.load(folder_of("dvae")), []
    monkeypatch.setattr(model, "represent", lambda images: seen.append(images.dtype) or np.zeros((len(images), 2)))
    evaluate(CIRCLES, model, ["mig"], settings=subset("mig"), jobs=1, quiet=True)
    assert set(seen) == {np.dtype(np.uint8)}


def test_a_callable_may_give_tensors_that_require_grad():
    import torch

    weights = torch.ones(1, requires_grad=True)
    found = evaluate(CIRCLES, lambda images: torch.from_numpy(centres(images)) * weights, ["mig"], jobs=1, quiet=True)
    assert found["mig"]["score"] == evaluate(CIRCLES, centres, ["mig"], jobs=1, quiet=True)["mig"]["score"]


READ_ONLY = """
import subprocess, sys
from pathlib import Path
import lddr.trained
from lddr.errors import UserError
from lddr.runs.evaluate import evaluate_run

folder = Path(sys.argv[1])
subprocess.run(["mount", "-o", "remount,ro", str(folder.parent)], check=True)
lddr.trained.Trained.load = lambda folder: sys.exit("it was encoded before anybody looked")
try:
    evaluate_run(folder, ["mig"], quiet=True)
except UserError as error:
    print(error)
"""


@pytest.mark.long
def test_a_folder_that_cannot_be_written_is_noticed_before_the_work(folder_of, tmp_path):
    """On a disk of its own, in a namespace that vanishes with the process."""
    mount = 'mount -t tmpfs none "$0" && cp -r "$1" "$0/run" && shift && exec "$@"'
    apart = [
        "unshare",
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        mount,
        str(tmp_path),
        str(folder_of("dvae")),
    ]
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    command = [*apart, sys.executable, "-c", READ_ONLY, str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"cannot write to {tmp_path / 'run'}: Read-only file system")


@pytest.fixture
def folder(folder_of, tmp_path):
    return shutil.copytree(folder_of("dvae"), tmp_path / "run")


def kept(folder):
    return json.loads((folder / "scores.json").read_text())


def test_a_run_keeps_its_scores_and_does_nothing_twice(folder, monkeypatch):
    settings = {"gap": {"batches": 2}, "mig": {"samples": 200}}
    first = evaluate_run(folder, ["mig", "gap"], settings=settings, quiet=True)
    assert kept(folder) == first
    assert first["training"] == kept(folder)["training"]
    assert first["metrics"]["gap"]["settings"]["batches"] == 2

    monkeypatch.setattr("lddr.trained.Trained.load", lambda folder: pytest.fail("it was scored again"))
    assert evaluate_run(folder, ["mig", "gap"], settings=settings, quiet=True) == first
    monkeypatch.undo()

    again = evaluate_run(folder, ["mig"], settings={"mig": {"samples": 300}}, quiet=True)
    assert again["metrics"]["mig"]["settings"]["samples"] == 300
    assert again["metrics"]["gap"] == first["metrics"]["gap"]


def test_scores_are_the_same_on_one_and_two_threads(folder):
    import torch

    entries = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            scores = evaluate_run(
                folder,
                ["mig", "factor_vae"],
                settings=subset("mig", "factor_vae"),
                jobs=threads,
                force=True,
                quiet=True,
            )
            entries.append({name: scores["metrics"][name]["score"] for name in ("mig", "factor_vae")})
    finally:
        torch.set_num_threads(1)
    assert entries[0] == entries[1]


def test_force_computes_anew(folder):
    settings = {"mig": {"samples": 200}}
    first = evaluate_run(folder, ["mig"], settings=settings, quiet=True)
    spoilt = first | {"metrics": {"mig": first["metrics"]["mig"] | {"score": 7.0}}}
    (folder / "scores.json").write_text(json.dumps(spoilt))
    assert evaluate_run(folder, ["mig"], settings=settings, quiet=True) == spoilt
    assert evaluate_run(folder, ["mig"], settings=settings, force=True, quiet=True) == first


def test_a_reason_is_kept_like_a_score(folder_of):
    scores = evaluate_run(folder_of("vae"), ["gap"], quiet=True)
    assert scores["metrics"]["gap"]["score"] is None
    assert "no values to round to" in kept(folder_of("vae"))["metrics"]["gap"]["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "nowhere"], "there is no folder nowhere"),
        (["evaluate", "EMPTY"], "there are no runs in"),
        (["evaluate", "RUN", "--metrics", "migg"], "did you mean 'mig'"),
        (["evaluate", "RUN", "--metrics", "mig", "--set", "mig.bins=3"], "mig has no setting 'bins'"),
        (["evaluate", "RUN", "--metrics", "gap", "--set", "gap.variant=author"], "must be one of paper, authors, not"),
        (["evaluate", "RUN", "--metrics", "mig", "--set", "mig.samples=many"], "must be a whole number"),
        (["evaluate", "RUN", "--metrics", "mig", "--set", "samples"], "expected METRIC.SETTING=VALUE"),
        (["evaluate", "RUN", "--metrics", "mig", "--dci", "fast"], "not among the metrics"),
        (["evaluate", "RUN", "--metrics", "mig", "--seed", "-1"], "seed must be at least 0, not -1"),
        (["evaluate", "RUN", "--metrics", "mig", "--bins", "0"], "bins must be at least 2"),
        (["evaluate", "RUN", "--metrics", "mig", "--jobs", "0"], "jobs must be at least 1"),
        (["evaluate", "RUN", "--metrics", "mig", "--set", "mig.num_bins=0"], "mig.num_bins must be at least 1"),
    ],
)
def test_mistakes_are_one_sentence(folder, tmp_path, capsys, arguments, message):
    (tmp_path / "empty").mkdir()
    before = (folder / "scores.json").read_bytes()
    with pytest.raises(SystemExit) as stop:
        places = {"RUN": str(folder), "EMPTY": str(tmp_path / "empty")}
        main([places.get(word, word) for word in arguments])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err
    assert (folder / "scores.json").read_bytes() == before


def test_a_score_is_kept_before_the_next_metric_begins(folder, monkeypatch):
    def interrupted(*given, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(import_module("lddr.metrics.elbo"), "_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        evaluate_run(folder, ["mig", "gap"], settings={"mig": {"samples": 200}}, quiet=True)
    assert kept(folder)["metrics"].keys() == {"mig"}


def test_the_command_shows_a_table_and_says_where_it_is_kept(folder, capsys):
    main(
        [
            "evaluate",
            str(folder),
            "--metrics",
            "mig,gap",
            "--set",
            "mig.samples=200",
            "--set",
            "gap.batches=2",
            "--jobs",
            "1",
        ]
    )
    shown = capsys.readouterr().out
    assert f"{kept(folder)['metrics']['mig']['score']:.4f}" in shown
    assert "kept in scores.json" in shown


def test_all_finished_runs_below_a_folder_are_scored_and_listed(folder, tmp_path, capsys):
    for copy in range(3):
        shutil.copytree(folder, tmp_path / f"copy-{copy}")
    (tmp_path / "copy-0" / "scores.json").unlink()
    shutil.copytree(folder, tmp_path / "other" / "deeper")
    main(["evaluate", str(tmp_path), "--metrics", "mig", "--set", "mig.samples=200", "--jobs", "1"])
    shown = capsys.readouterr().out
    score = kept(tmp_path / "other" / "deeper")["metrics"]["mig"]["score"]
    assert shown.count(f"{score:.3f}") == 4
    assert not (tmp_path / "copy-0" / "scores.json").exists()


def test_an_unfinished_run_among_several_is_skipped_and_a_table_shows_what_differs(folder, tmp_path, capsys):
    runs = [shutil.copytree(folder, tmp_path / f"copy-{copy}") for copy in range(5)]
    (runs[0] / "scores.json").unlink()
    facts = json.loads((runs[1] / "config.json").read_text())
    facts["settings"]["training"]["batch_size"] += 1
    (runs[1] / "config.json").write_text(json.dumps(facts))
    main(["evaluate", *map(str, runs), "--metrics", "mig", "--set", "mig.samples=200", "--jobs", "1"])
    said = capsys.readouterr()
    assert f"{runs[0]} is not finished and is skipped" in said.err
    assert said.out.splitlines()[0].split()[-2:] == ["batch_size", "mig"]
    with pytest.raises(SystemExit):  # asked for by name
        main(["evaluate", str(runs[0])])


def test_a_dataset_of_another_shape_is_refused(folder):
    with pytest.raises(UserError, match="was trained on images"):
        evaluate_run(folder, ["mig"], dataset=load_dataset("circles", 32), quiet=True)


def test_every_metric_is_listed_with_its_settings(capsys):
    main(["metrics"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in metrics)


def test_a_run_is_scored_on_the_device_that_was_chosen(folder_of, tmp_path):
    folder = shutil.copytree(folder_of("dvae"), tmp_path / "run")
    with pytest.raises(UserError, match="the device 'nowhere' cannot be used here"):
        evaluate_run(folder, ["mig"], force=True, quiet=True, device="nowhere")
    with pytest.raises(NotImplementedError, match="meta"):  # where nothing can be read
        evaluate_run(folder, ["mig"], force=True, quiet=True, device="meta")


def test_correlated_training_images_are_scored_apart_from_the_uniform_ones(folder_of, capsys):
    folder = folder_of("vae", correlate="x:y=0.05", steps=2)
    first = evaluate_run(folder, ["mig"], quiet=True)["metrics"]["mig"]
    main(["evaluate", str(folder), "--metrics", "mig,elbo", "--distribution", "training", "--jobs", "1"])
    assert "mig@training" in capsys.readouterr().out
    found = evaluate_run(folder, ["mig"], distribution="training", quiet=True)["metrics"]  # nothing is computed again
    assert found["mig"] == first
    assert found["mig@training"]["settings"]["distribution"] == "training"
    assert found["mig@training"]["score"] != first["score"]
    assert found["elbo@training"]["score"] is not None


def test_without_correlations_there_is_no_other_distribution(folder_of):
    with pytest.raises(UserError, match="was trained without correlations"):
        evaluate_run(folder_of("dvae"), ["mig"], distribution="training", force=True, quiet=True)
