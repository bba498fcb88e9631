import json
import shlex

import pytest

from lddr import cli
from lddr.config import settings_of
from lddr.models import models
from lddr.report.groups import collect
from lddr.report.reproduce import compare_command, evaluation_commands, report_command, run_commands, training_commands


@pytest.fixture
def carried_out(monkeypatch):
    """Settings of the runs that commands would train: `lddr train` is parsed as always but trains nothing."""
    trained = []

    def train(config, out, machine, images=None):
        trained.append((config, out))
        return out

    monkeypatch.setattr("lddr.runs.run.run", train)

    def carry_out(lines):
        for line in lines:
            seeds = line.partition("; do ")[0].removeprefix("for seed in ").split() if line.startswith("for") else [""]
            command = line.partition("; do ")[2].removesuffix("; done") if line.startswith("for") else line
            for seed in seeds:
                cli.main(shlex.split(command.replace("$seed", seed))[1:])
        return trained

    return carry_out


@pytest.mark.parametrize(
    ("model", "dataset", "preset", "settings"),
    [
        ("dvae", "circles", "quick", {}),
        ("dvae", "dsprites", "paper", {"noise_end": 1.25, "num_categories": 16, "low": -2.0, "precision": "bf16"}),
        ("factor-dvae", "rooms", "quick", {"gamma": 35, "discriminator_width": 256, "steps": 123}),
        ("vae", "dsprites", "paper", {"kernels": (4, 4, 2, 2), "learning_rate": 0.00025, "batch_size": 16}),
        ("factor-dvae", "dsprites", "paper", {"supervision": "masked", "labels": 1000, "omega": 16, "label_seed": 3}),
        ("annealed-vae", "dsprites", "paper", {"capacity": 50, "capacity_steps": 1000}),
        ("dvae", "my images/of cars", "paper", {}),
    ],
)
def test_the_commands_train_the_same_runs(make_run, carried_out, model, dataset, preset, settings):
    runs = [make_run(model, dataset, seed, preset=preset, **settings) for seed in (0, 10, 2)]
    trained = carried_out(training_commands(runs))
    assert [config.training.seed for config, _ in trained] == [0, 2, 10]
    assert {str(out / config.run_name) for config, out in trained} == {str(run.folder) for run in runs}


ODD = {"learning_rate": 0.000123456789, "noise_end": 1.23456789, "low": -1.00000001, "beta": 1.2345678}
LABELLED = {"labels": 7, "omega": 0.1 + 0.2, "validation_share": 1 / 3}


FEW_MODELS = ("vae", "factor-dvae", "tripod", "categorical+elbo")  # one of each sort of settings
ALL_MODELS = [
    pytest.param(model, marks=() if model in FEW_MODELS else pytest.mark.long)
    for model in [*models, "categorical+elbo"]
]


@pytest.mark.parametrize("model", ALL_MODELS)
def test_every_run_has_a_command_that_gives_its_own_fingerprint(make_run, carried_out, model):
    """With every digit of its numbers, with labels, and where a preset has a resolution and the run has none."""
    known = settings_of(model)
    supervisions = models[model].family.supervisions
    losses = {"supervision": supervisions[0]} | LABELLED if supervisions else {}
    runs = [
        make_run(model, "dsprites", preset="quick"),
        make_run(model, "dsprites", width=16, initialiser="uniform", steps=30_000),  # as quick, but for the pixels
        make_run(model, "rooms", preset="quick", **{name: value for name, value in ODD.items() if name in known}),
        make_run(model, "my $(images); of 'cars'", resolution=48, **losses),
    ]
    trained = carried_out(training_commands(runs))
    assert [config.fingerprint for config, _ in trained] == [run.files.config.fingerprint for run in runs]
    assert [config for config, _ in trained] == [run.files.config for run in runs]


def test_a_run_of_another_version_is_named(make_run):
    run = make_run("dvae", "dsprites")
    content = json.loads(run.files.config_file.read_text())
    content["settings"]["networks"]["depth; rm -r"] = "$(ls)"
    run.files.config_file.write_text(json.dumps(content))
    (line,) = training_commands([run])
    assert line.startswith(f"# {run.name}: {run.files.config_file}: these settings are of another version of lddr")


def test_no_value_of_a_file_reaches_the_shell(make_run):
    run = make_run("dvae", "dsprites")
    content = json.loads(run.files.config_file.read_text())
    content["settings"]["training"]["seed"] = "0; rm -r"
    run.files.config_file.write_text(json.dumps(content))
    (line,) = training_commands([run])
    assert line.startswith("# ")
    assert "\n" not in line


def test_a_command_for_every_combination_and_a_loop_over_its_seeds(make_run):
    runs = [make_run("factor-dvae", "dsprites", seed, gamma=gamma) for gamma in (10, 20) for seed in (0, 1)]
    lines = training_commands(runs)
    assert [line.count("--gamma 20") for line in lines] == [0, 1]
    assert all(
        line.startswith("for seed in 0 1; do lddr train --model factor-dvae --dataset dsprites") for line in lines
    )


def test_scoring_is_one_command_when_all_want_the_same(make_run):
    runs = [make_run(model, "dsprites", seed, {"mig": 0.1, "sap": 0.2}) for model in ("vae", "dvae") for seed in (0, 1)]
    parent = runs[0].folder.parent
    assert evaluation_commands(collect(runs).groups) == [f"lddr evaluate {parent}/* --metrics mig,sap"]


def test_scoring_with_other_settings_names_its_runs(make_run):
    odd = {"mig": {"num_bins": 5}, "downstream_logistic": {"sizes": [10, 100]}}
    runs = [
        make_run("dvae", "dsprites", 0, {"mig": 0.1, "downstream_logistic": 0.5}, metric_settings=odd),
        make_run("dvae", "rooms", 0, {"mig": 0.1}),
    ]
    changes = "--set downstream_logistic.sizes=10,100 --set mig.num_bins=5"
    assert evaluation_commands(collect(runs).groups) == [
        f"lddr evaluate {runs[0].folder} --metrics downstream_logistic,mig {changes}",
        f"lddr evaluate {runs[1].folder} --metrics mig",
    ]


def test_runs_without_scores_are_trained_only(make_run):
    (line,) = run_commands(collect([make_run("dvae", "dsprites", 7)]).groups)
    assert line.startswith("lddr train")
    assert line.endswith("--seed 7")


def test_the_page_itself(tmp_path, make_run):
    assert report_command([tmp_path / "my runs"], tmp_path, ["mig>0.3"]) == shlex.join(
        ["lddr", "report", str(tmp_path / "my runs"), "--where", "mig>0.3", "--out", str(tmp_path)]
    )
    run = make_run("dvae", "dsprites")
    assert compare_command([run, run], tmp_path).split() == [
        "lddr",
        "compare",
        *[str(run.folder)] * 2,
        "--out",
        str(tmp_path),
    ]
