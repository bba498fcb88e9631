import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.report.groups import collect, fixed_settings, main_groups, scores_of, unique
from lddr.runs.index import Run, read_run

COMMON = {
    "dataset": "dsprites",
    "steps": 10,
    "precision": "fp32",
    "resolution": 32,
    "checksum": "a",
    "supervision": None,
}


def invented(name, model="dvae", scores=None, state="finished", **settings):
    family = {"noise_end": 2.0} if model.endswith("dvae") else {}
    latent = "categorical" if family else "gaussian"
    return Run(Path(name), state, COMMON | {"model": model, "latent": latent} | family | settings, scores or {})


def test_models_knobs_seeds_and_supervision_are_what_is_compared():
    runs = [
        invented("a", seed=1),
        invented("b", seed=2),
        invented("c", "factor-dvae", seed=1, gamma=10.0, discriminator_width=1000),
        invented("d", "factor-vae", seed=1, gamma=50.0, discriminator_width=1000),
        invented("e", "vae", seed=1, supervision="bce", labels=100, omega=2.0, label_seed=0),
    ]
    (group,) = collect(runs).groups
    assert group.runs == tuple(runs)
    assert group.label == "dSprites"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", 20),
        ("precision", "bf16"),
        ("resolution", 64),
        ("dataset", "rooms"),
        ("checksum", "b"),
        ("batch_size", 8),
    ],
)
def test_runs_that_differ_in_anything_else_are_not_mixed(name, value):
    usual = invented("a", batch_size=64)
    other = invented("b", **{"batch_size": 64} | {name: value})
    assert sorted(len(group.runs) for group in collect([usual, other]).groups) == [1, 1]


def test_groups_on_one_dataset_are_named_by_what_differs():
    labels = [group.label for group in collect([invented("a", steps=300_000), invented("b")]).groups]
    assert labels == ["dSprites, steps 300,000", "dSprites, steps 10"]
    labels = [group.label for group in collect([invented("a"), invented("b", checksum="b")]).groups]
    assert sorted(labels) == ["dSprites, checksum a", "dSprites, checksum b"]


def test_a_gaussian_model_is_compared_with_every_kind_of_discrete_ones():
    vae, weak, strong = invented("v", "vae"), invented("w", noise_end=1.0), invented("s", noise_end=2.0)
    found = collect([vae, weak, strong])
    groups = {group.label: {run.name for run in group.runs} for group in found.groups}
    assert groups == {"dSprites, noise_end 1": {"v", "w"}, "dSprites, noise_end 2": {"v", "s"}}
    assert {run.name for run in found.runs} == {"v", "w", "s"}


def test_what_a_model_is_published_with_does_not_part_it_from_others(make_run):
    names = ("vae", "dvae", "factor-dvae", "fsq-ae", "qlae", "tripod", "factor-qvae", "dip-vae-i", "dip-vae-ii")
    runs = [make_run(model, "dsprites", preset="quick") for model in names]
    (group,) = collect(runs).groups
    assert len(group.runs) == len(names)
    kinds = {name: value for name, value in group.setup.items() if name.startswith("num_categories")}
    assert kinds == {"num_categories": 64, "num_categories of fsq": 12, "num_categories of quantised": 10}
    assert group.setup["reconstruction_weight"] == 4  # of those whose balance is the paper's


def test_another_balance_and_other_values_of_a_family_part_runs(make_run):
    usual = [make_run(model, "dsprites", preset="quick") for model in ("vae", "tripod")]
    for other in ({"clip": 0.5}, {"num_categories": 5}, {"hessian_weight": 3.0}):
        odd = make_run("tripod", "dsprites", preset="quick", **other)
        sizes = sorted(len(group.runs) for group in collect([*usual, odd]).groups)
        assert sizes == [2, 2], other  # the VAE is in both


def test_what_is_not_finished_is_left_out_and_named():
    broken = Run(Path("x"), "broken", {}, {}, "no JSON")
    found = collect([invented("a"), invented("b", state="training"), broken])
    assert [run.name for run in found.runs] == ["a"]
    assert found.left_out == {
        "not trained to the end; start the same command again to resume it": ["b"],
        "broken: no JSON": ["x"],
    }


def test_a_copy_counts_once_and_the_one_with_more_scores_is_kept():
    found = collect([invented("a", seed=1), invented("copy", seed=1, scores={"mig": 0.5})])
    assert [run.name for run in found.runs] == ["copy"]
    assert found.left_out == {"the same run as copy": ["a"]}


def test_scores_of_a_metric_with_other_settings_are_left_out(make_run):
    usual = [make_run("dvae", "dsprites", seed, {"mig": 0.1 * seed, "sap": 0.5}) for seed in (1, 2)]
    odd = make_run("dvae", "dsprites", 3, {"mig": 0.9, "sap": 0.5}, metric_settings={"mig": {"num_bins": 5}})
    (group,) = collect([*usual, odd]).groups
    assert [run.number("mig") for run in group.runs] == [0.1, 0.2, None]
    assert [run.number("sap") for run in group.runs] == [0.5] * 3
    assert group.metric_settings["mig"]["num_bins"] == 20
    assert collect([*usual, odd]).left_out == {"its mig was computed with other settings than most": [odd.name]}


def test_of_as_many_on_both_sides_the_published_settings_win(make_run):
    odd = make_run("dvae", "dsprites", 3, {"mig": 0.9}, metric_settings={"mig": {"num_bins": 50}})
    (group,) = collect([odd, make_run("dvae", "dsprites", 1, {"mig": 0.1})]).groups
    assert group.metric_settings["mig"]["num_bins"] == 20


def test_another_seed_of_the_draws_is_no_other_setting(make_run):
    runs = [
        make_run("dvae", "dsprites", seed, {"mig": 0.1}, metric_settings={"mig": {"draw_seed": seed}})
        for seed in (1, 2)
    ]
    assert collect(runs).left_out == {}


def test_a_score_without_a_value_has_no_say_in_the_settings(make_run):
    run = make_run("vae", "dsprites", 1, {"gap": 0.0, "mig": 0.1})
    content = json.loads((run.folder / "scores.json").read_text())
    content["metrics"]["gap"] |= {"score": None, "reason": "no categories"}
    (run.folder / "scores.json").write_text(json.dumps(content))
    (group,) = collect([read_run(run.folder)]).groups
    assert list(group.metric_settings) == ["mig"]


def test_the_papers_datasets_come_first_in_its_order():
    names = ["circles", "rooms", "cars3d", "dsprites"]
    found = collect([invented(name, dataset=name) for name in names]).groups
    assert [group.dataset for group in found] == ["dsprites", "cars3d", "rooms", "circles"]


def test_figures_are_drawn_from_the_largest_group_of_every_dataset():
    runs = [invented(f"few{seed}", seed=seed, steps=99) for seed in range(2)]
    runs += [invented(f"many{seed}", seed=seed) for seed in range(3)] + [invented("other", dataset="rooms")]
    found = collect(runs)
    assert {group.label for group in found.main} == {"dSprites, steps 10", "rooms"}
    longer = main_groups(collect([invented("a"), invented("b", steps=99)]).groups)
    assert [group.setup["steps"] for group in longer] == [99]  # as many runs: the one trained longer


def test_nothing_comes_of_nothing():
    assert collect([]).groups == ()


@given(
    st.lists(
        st.fixed_dictionaries(
            {"model": st.sampled_from(["vae", "dvae", "factor-vae", "factor-dvae"]), "seed": st.integers(0, 3)},
            optional={
                "steps": st.sampled_from([10, 20]),
                "dataset": st.sampled_from(["dsprites", "rooms"]),
                "noise_end": st.sampled_from([1.0, 2.0]),
                "discriminator_width": st.sampled_from([256, 1000]),
            },
        ),
        max_size=12,
    )
)
def test_no_group_has_two_values_of_a_setting_and_no_run_is_lost(rows):
    runs = [invented(f"run{place}", **row) for place, row in enumerate(rows)]
    found = collect(runs)
    for group in found.groups:
        for name in {name for run in group.runs for name in fixed_settings(run)}:
            assert len({run.settings[name] for run in group.runs if name in run.settings}) == 1
    left_out = {name for names in found.left_out.values() for name in names}
    assert {run.name for run in found.runs} | left_out == {run.name for run in runs}


def test_each_run_once():
    run = invented("a")
    assert unique([run, invented("b"), run]) == [run, invented("b")]


def test_runs_with_and_without_labels_are_told_apart():
    plain, labelled, other = invented("a"), invented("b", supervision="masked"), invented("c", "vae")
    (group,) = collect([plain, labelled, other]).groups
    assert group.unsupervised() == [plain, other]
    assert group.unsupervised("dvae") == [plain]
    assert group.supervised == [labelled]


def test_scores_are_those_that_are_there():
    runs = [invented("a", scores={"mig": 0.5}), invented("b"), invented("c", scores={"mig": 0.1})]
    assert scores_of(runs, "mig") == [0.5, 0.1]
