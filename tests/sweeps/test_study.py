import re
from dataclasses import replace
from functools import cache
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lddr.data.dataset import datasets
from lddr.errors import UserError
from lddr.models import models
from lddr.sweeps import study as study_module
from lddr.sweeps.study import METRICS, find_study, read_study, shipped_studies

SHIPPED = (
    "baselines",
    "beyond",
    "circles",
    "discrete",
    "downstream",
    "semi-supervised",
    "total-correlation",
    "unregularized",
)
PAPERS_DATASETS = {"dsprites", "color_dsprites", "smallnorb", "cars3d", "shapes3d", "mpi3d_toy"}
BOTH = pytest.mark.parametrize("scale", ["full", "quick"])
ALL = pytest.mark.parametrize("name", SHIPPED)


@cache
def _read(name, scale):
    return read_study(name, scale)


def shipped(name, scale="full"):
    return _read(name, scale)


def written(folder, text):
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def study_of(folder, text, *arguments, **named):
    return read_study(written(folder, 'name = "mine"\n' + text), *arguments, **named)


def values(study, *names):
    return [tuple(config.flat().get(name) for name in names) for config in study.configs]


# --- the shipped studies


def test_every_experiment_of_the_paper_is_shipped():
    assert tuple(shipped_studies()) == SHIPPED


@ALL
@BOTH
def test_the_header_says_how_many_runs_there_are(name, scale):
    header = re.search(r"^# Runs: +([\d,]+) +\(quick: ([\d,]+)\)$", find_study(name).read_text(), re.MULTILINE)
    said = dict(zip(("full", "quick"), header.groups(), strict=True))
    assert len(shipped(name, scale).configs) == int(said[scale].replace(",", ""))


@ALL
@BOTH
def test_every_run_is_another_one(name, scale):
    configs = shipped(name, scale).configs
    assert len(set(configs)) == len(configs)
    if scale == "quick":
        assert len({config.run_name for config in configs}) == len(configs)


@ALL
def test_the_header_names_the_command(name):
    study = shipped(name)
    assert f"# Command: lddr sweep {name} " in find_study(name).read_text()
    assert study.name == name
    assert study.about.endswith("?")


@ALL
def test_the_full_scale_is_the_papers(name):
    study = shipped(name)
    assert {config.dataset for config in study.configs} == ({"circles"} if name == "circles" else PAPERS_DATASETS)
    training = {(c.training.steps, c.training.batch_size, c.training.learning_rate) for c in study.configs}
    assert training == {(300_000, 64, 1e-4)}
    assert {config.networks.width for config in study.configs} == {32}
    assert set(study.metrics) >= set(METRICS)
    assert study.scoring == {}


@pytest.mark.parametrize("name", ["total-correlation", "baselines", "beyond"])
def test_the_grids_are_the_papers(name):
    study = shipped(name)
    for model in {config.model for config in study.configs}:
        runs = [config for config in study.configs if config.model == model and config.dataset == "dsprites"]
        assert {config.training.seed for config in runs} == set(range(50))
        assert len(runs) == 50 * prod(map(len, models[model].grid.values()))
        for knob, grid in models[model].grid.items():
            assert {config.flat().get(knob) for config in runs} == set(grid)


@BOTH
def test_the_discrete_study_has_one_protocol_and_every_kind(scale):
    study = shipped("discrete", scale)
    kinds = {"gaussian", "categorical", "fsq", "quantised", "codebook"}
    assert {config.latent.name for config in study.configs} == kinds
    assert {config.model for config in study.configs} >= {
        "dvae",
        "factor-dvae",
        "tc-dvae",
        "qlae",
        "tripod",
        "factor-qvae",
    }
    protocols = [
        (replace(c.networks, initialiser="uniform"), c.latent.num_latents, c.resolution, c.training)
        for c in study.configs
    ]
    assert len({(n, k, r, t.steps, t.batch_size, t.learning_rate, t.schedule) for n, k, r, t in protocols}) == 1
    assert "infomec" in study.metrics


def test_the_semi_supervised_study_has_every_loss_with_and_without_total_correlation():
    combinations = set(values(shipped("semi-supervised"), "model", "supervision"))
    gaussian, categorical = ("bce", "l2"), ("cross-entropy", "masked")
    assert combinations == {(model, loss) for model in ("vae", "factor-vae") for loss in gaussian} | {
        (model, loss) for model in ("dvae", "factor-dvae") for loss in categorical
    }
    assert set(values(shipped("semi-supervised"), "labels")) == {(100,), (1000,)}
    assert set(values(shipped("semi-supervised"), "omega")) == {(1,), (2,), (4,), (6,), (8,), (16,)}


@pytest.mark.parametrize(
    ("name", "model", "other"),
    [
        ("downstream", "dvae", "unregularized"),
        ("beyond", "dvae", "unregularized"),
        ("beyond", "factor-dvae", "total-correlation"),
    ],
)
def test_studies_share_runs(name, model, other):
    runs = {config for config in shipped(name).configs if config.model == model}
    assert runs <= set(shipped(other).configs)


def test_the_quick_downstream_study_shares_its_first_seeds():
    runs = {config for config in shipped("downstream", "quick").configs if config.training.seed < 8}
    assert runs <= set(shipped("unregularized", "quick").configs)


@ALL
def test_the_quick_scale_needs_no_download(name):
    assert not any(datasets[config.dataset].needs_files for config in shipped(name, "quick").configs)


@ALL
def test_the_quick_scale_has_all_scores_and_a_fast_dci_and_gap(name):
    assert set(shipped(name, "quick").metrics) >= set(METRICS)
    assert shipped(name, "quick").scoring.items() >= {"dci": {"estimator": "fast"}, "gap": {"batches": 200}}.items()


# seconds on one core of an AMD EPYC at the quick presets: a step, what is added to it, and the scoring of a run
STEP = {"circles": 0.020, "dsprites": 0.022, "rooms": 0.031}
DISCRIMINATOR, LABELS = 0.009, 0.010  # of 256 units; a batch of labelled images with every other
CURVATURE = 0.080  # decoder evaluations besides the reconstruction
SCORING = {"circles": 20, "dsprites": 60, "rooms": 60}
BOOSTING = {"circles": 76, "dsprites": 410, "rooms": 205}  # DCI, and a little more again for the downstream task
EVENING = 2 * 5 * 3600


@ALL
def test_the_quick_scale_fits_two_cores_in_an_evening(name):
    study = shipped(name, "quick")
    seconds = 0.0
    for config in study.configs:
        step = STEP[config.dataset] + LABELS * (config.supervision is not None)
        if config.model.startswith("factor"):
            assert config.objective.discriminator_width == 256
            step += DISCRIMINATOR
        step += CURVATURE * (config.model == "tripod")
        dci = ("dci" in study.metrics) * (0.1 if study.scoring else 1)
        boosted = dci + 1.2 * ("downstream_boosting" in study.metrics)
        seconds += config.training.steps * step + SCORING[config.dataset] + boosted * BOOSTING[config.dataset]
    assert seconds < EVENING
    said = float(re.search(r"quick: (\d+) core-hours", find_study(name).read_text())[1])
    assert said == pytest.approx(seconds / 3600, rel=0.15)


# --- what a file means


def test_lists_span_a_grid_and_seeds_come_first(tmp_path):
    study = study_of(
        tmp_path,
        """
        [base]
        datasets = ["circles", "dsprites"]
        seeds = 2
        steps = 7
        [[blocks]]
        model = "factor-dvae"
        gamma = [10, 20]
        """,
    )
    assert values(study, "seed", "dataset", "gamma") == [
        (seed, dataset, gamma) for seed in (0, 1) for dataset in ("circles", "dsprites") for gamma in (10, 20)
    ]
    assert set(values(study, "steps")) == {(7,)}
    assert study.metrics == METRICS


@settings(max_examples=25, deadline=None)
@given(
    gammas=st.sets(st.integers(1, 100), min_size=1, max_size=4),
    seeds=st.sets(st.integers(0, 9), min_size=1, max_size=4),
    categories=st.sets(st.sampled_from([8, 16, 32]), min_size=1),
)
def test_a_block_has_the_product_of_its_lists(tmp_path_factory, gammas, seeds, categories):
    study = study_of(
        tmp_path_factory.mktemp("study"),
        f"""
        [[blocks]]
        dataset = "dsprites"
        model = "factor-dvae"
        gamma = {sorted(gammas)}
        seeds = {sorted(seeds)}
        num_categories = {sorted(categories)}
        """,
    )
    wanted = {(float(g), s, c) for g in gammas for s in seeds for c in categories}
    found = values(study, "gamma", "seed", "num_categories")
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_a_run_of_two_blocks_is_one_run(tmp_path):
    study = study_of(
        tmp_path,
        """
        base = { dataset = "circles" }
        [[blocks]]
        model = "vae"
        seeds = 3
        [[blocks]]
        model = ["vae", "dvae"]
        seeds = [2, 3]
        """,
    )
    found = values(study, "model", "seed")
    assert found == [("vae", 0), ("vae", 1), ("vae", 2), ("dvae", 2), ("vae", 3), ("dvae", 3)]


QUICK = """
metrics = ["mig", "gap"]
[base]
dataset = "dsprites"
seeds = 9
[[blocks]]
model = "dvae"
steps = 900
[[blocks]]
model = "factor-vae"
gamma = [10, 20, 30]
quick = { gamma = 20, steps = 50 }
[quick]
dataset = "circles"
preset = "quick"
seeds = [4]
steps = 60
metrics = ["mig"]
"""


def test_the_quick_scale_has_the_last_word_and_a_block_the_very_last(tmp_path):
    full, quick = (study_of(tmp_path, QUICK, scale) for scale in ("full", "quick"))
    assert len(full.configs) == 9 + 3 * 9
    assert full.metrics == ("mig", "gap")
    assert values(quick, "model", "dataset", "seed", "steps", "gamma", "width") == [
        ("dvae", "circles", 4, 60, None, 4),
        ("factor-vae", "circles", 4, 50, 20, 4),
    ]
    assert quick.metrics == ("mig",)


SET = """
metrics = ["mig", "dci"]
set = ["dci.train=2000", "mig.num_bins=30"]
[[blocks]]
model = "dvae"
dataset = "dsprites"
[quick]
metrics = ["dci"]
set = ["dci.estimator=fast"]
"""


def test_metrics_have_the_settings_of_the_study_and_then_of_its_quick_scale(tmp_path):
    full, quick = (study_of(tmp_path, SET, scale) for scale in ("full", "quick"))
    assert full.scoring == {"dci": {"train": 2000}, "mig": {"num_bins": 30}}
    assert quick.scoring == {"dci": {"train": 2000, "estimator": "fast"}}
    assert (full.wanted["mig"].settings["num_bins"], full.wanted["dci"].settings["estimator"]) == (30, "published")
    assert quick.wanted["dci"].settings["estimator"] == "fast"


def test_kernels_are_one_value_and_a_list_of_them_a_grid(tmp_path):
    block = '[[blocks]]\nmodel = "vae"\ndataset = "dsprites"\nkernels = '
    assert values(study_of(tmp_path, block + "[4, 4, 2, 2]"), "kernels") == [((4, 4, 2, 2),)]
    two = study_of(tmp_path, block + "[[4, 4, 2, 2], [4, 4, 4, 4]]")
    assert values(two, "kernels") == [((4, 4, 2, 2),), ((4, 4, 4, 4),)]


def test_every_setting_that_is_a_list_is_one_value(tmp_path, monkeypatch):
    """As that of a plug-in."""
    known = study_module.all_settings()
    monkeypatch.setattr(study_module, "all_settings", lambda: known | {"steps": known["kernels"]})
    block = '[[blocks]]\nmodel = "vae"\ndataset = "dsprites"\nsteps = '
    with pytest.raises(UserError, match=r"block 1: steps must be a whole number, not \[4, 2\]"):  # one run's value
        study_of(tmp_path, block + "[4, 2]")


def test_another_dataset_takes_the_place_of_all(tmp_path):
    full = read_study("unregularized", dataset="dsprites")
    assert {config.dataset for config in full.configs} == {"dsprites"}
    assert len(full.configs) == 600
    own = tmp_path / "images.npz"
    assert {config.dataset for config in read_study("circles", dataset=str(own)).configs} == {str(own)}
    with pytest.raises(UserError, match=r"^unknown dataset 'sprits'; did you mean 'dsprites'"):
        read_study("circles", dataset="sprits")


@pytest.mark.parametrize(
    ("only", "runs"),
    [
        ("model=dvae", 50),
        ("model=vae,dvae", 100),
        ("model!=dvae", 50),
        ("seed<5", 10),
        ("seed <= 5", 12),
        ("seed>47", 4),
        ("seed>=47", 6),
        (["seed<5", "model=dvae"], 5),
        (["seed=1, 3", "model=vae"], 2),
        ("noise_end=2", 50),  # a setting of dvae alone
        ("learning_rate=0.0001", 100),
        ([], 100),
        (None, 100),
    ],
)
def test_only_picks_runs(only, runs):
    assert len(read_study("circles", only=only).configs) == runs


@pytest.mark.parametrize(
    ("only", "sentence"),
    [
        ("sede<5", "unknown column 'sede'; did you mean 'seed'?"),
        ("seed", "cannot read the condition 'seed'; write it like model=dvae, gamma=10,20 or seed<5"),
        ("seed=", "cannot read the condition 'seed='"),
        ("model=dvea", "no run is left by model=dvea; there are the values vae, dvae"),
        ("seed>99", "no run is left by seed>99; there are the values 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"),
        ("model<dvae", "model holds words, which are not ordered; compare it with = or !="),
        ("seed<x", "seed holds numbers; compare it with a number, not 'x'"),
        ("gamma=10", "unknown column 'gamma'"),
        ("latents=1", "unknown column 'latents'"),
        ("supervision=bce", "no run is left by supervision=bce; there are the values None"),
    ],
)
def test_conditions_that_cannot_be_met(only, sentence):
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}"):
        read_study("circles", only=only)


def test_the_example_of_the_documentation_is_a_study(tmp_path):
    document = find_study("circles").parents[1] / "docs" / "studies.md"
    path = written(tmp_path, re.search(r"```toml\n(.*?)```", document.read_text(), re.DOTALL)[1])
    assert [len(read_study(path, scale).configs) for scale in ("full", "quick")] == [160, 12]


def test_the_page_about_gpus_counts_the_steps_of_the_studies():
    document = (find_study("circles").parents[1] / "docs" / "gpu.md").read_text()
    names = ("circles", "unregularized", "total-correlation", "baselines", "semi-supervised")
    millions = {"all": [0, 0, 0.0]}
    for name in names:
        configs = shipped(name).configs
        with_discriminator = [config for config in configs if config.objective.name == "factor"]
        steps = [sum(config.training.steps for config in some) / 1e6 for some in (configs, with_discriminator)]
        millions[name] = [len(configs), *steps]
        millions["all"] = [one + other for one, other in zip(millions["all"], millions[name], strict=True)]
    for name, numbers in millions.items():
        cells = " | ".join(f"{number:,.0f}" for number in numbers)
        assert re.search(rf"\| `?{name}`? \| {re.escape(cells)} \|", document), (name, cells)
    known = {config.run_name for config in shipped("unregularized").configs}
    assert {config.run_name for config in shipped("downstream").configs} <= known
    _, steps, hard = millions["all"]
    assert f"{(steps - hard) / 86.4:.1f} *d* + {hard / 86.4:.1f} *f*" in document


# --- mistakes

BLOCK = '[[blocks]]\nmodel = "dvae"\ndataset = "dsprites"\n'
FACTOR = '[[blocks]]\nmodel = "factor-vae"\ndataset = "dsprites"\n'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name = mine", "expected a study in TOML, found a broken one (Invalid value (at line 1, column 8))"),
        (BLOCK, "name is missing"),
        ("name = 3\n" + BLOCK, "name must be a text, not 3"),
        ('name = "x"', "blocks is missing; add at least one [[blocks]]"),
        ('name = "x"\nblocks = []', "blocks is missing"),
        ('name = "x"\nblocks = [1]', "blocks is missing"),
        ('name = "x"\n[block]\n', "unknown key 'block'; did you mean 'blocks'?"),
        ('name = "x"\nbase = 3\n' + BLOCK, "base must be a section, not 3"),
        ('name = "x"\nmetrics = "mig"\n' + BLOCK, "metrics must be a list, not 'mig'"),
        ('name = "x"\nmetrics = []\n' + BLOCK, "metrics must be a list of names"),
        ('name = "x"\nmetrics = ["migg"]\n' + BLOCK, "metrics: unknown metric 'migg'; did you mean 'mig'?"),
        ('name = "x"\n[quick]\nmetrics = ["dcii"]\n' + BLOCK, "metrics: unknown metric 'dcii'; did you mean 'dci'?"),
        ('name = "x"\n' + FACTOR + "gama = 3", "block 1: unknown setting 'gama'; did you mean 'gamma'?"),
        ('name = "x"\n[base]\nseeed = 3\n' + BLOCK, "[base]: unknown setting 'seeed'; did you mean 'seed'?"),
        ('name = "x"\n[quick]\nstep = 3\n' + BLOCK, "[quick]: unknown setting 'step'; did you mean 'steps'?"),
        (
            'name = "x"\n' + BLOCK + "quick = { step = 3 }",
            "block 1 quick: unknown setting 'step'; did you mean 'steps'?",
        ),
        ('name = "x"\n' + BLOCK + "quick = false", "block 1 quick must be a section such as { seeds = 2 }, not False"),
        (
            'name = "x"\n' + BLOCK + "gamma = 3",
            "block 1 gamma: dvae has no such setting; keep it to blocks of factor-dvae",
        ),
        (
            f'name = "x"\n[base]\nnoise_end = 1.0\n{BLOCK}{FACTOR}',
            "[base] noise_end: factor-vae has no such setting; keep it to blocks of ada-dvae, ada-ml-dvae",
        ),
        ('name = "x"\n[[blocks]]\nmodel = "dvea"\n', "block 1 model: unknown model 'dvea'; did you mean 'dvae'?"),
        ('name = "x"\n[[blocks]]\nmodel = 3\n', "block 1 model must be a text, not 3"),
        ('name = "x"\n[[blocks]]\ndataset = "dsprites"\n', "block 1 has no model; add a line such as model ="),
        ('name = "x"\n[[blocks]]\nmodel = "dvae"\n', "block 1 has no dataset; add a line such as dataset ="),
        (
            'name = "x"\n[base]\ndatasets = ["sprits"]\n' + BLOCK,
            "[base] datasets: unknown dataset 'sprits'; did you mean 'dsprites'?",
        ),
        ('name = "x"\n' + BLOCK + 'datasets = ["rooms"]', "block 1 has both dataset and datasets; keep one"),
        ('name = "x"\n' + BLOCK + "seed = 1\nseeds = 3", "block 1 has both seed and seeds; keep one"),
        ('name = "x"\n' + FACTOR + "gamma = []", "block 1 gamma has no values; give at least one or leave it out"),
        ('name = "x"\n' + BLOCK + "seeds = 0", "block 1 seeds has no values"),
        ('name = "x"\n' + BLOCK + "seeds = [1, 2, 1]", "block 1 seeds has 1 twice, which would be the same run"),
        ('name = "x"\n' + FACTOR + "gamma = [10, 10.0]", "block 1 gamma has 10.0 twice, which would be the same run"),
        ('name = "x"\n' + BLOCK + "seeds = [-1]", "block 1 seeds must be at least 0, not -1"),
        ('name = "x"\n' + BLOCK + "seeds = 2.5", "block 1 seeds must be a whole number, not 2.5"),
        (
            'name = "x"\n' + BLOCK + "resolution = 32.5",
            "block 1 resolution must be a number of pixels, or HEIGHTxWIDTH such as 48x96, not 32.5",
        ),
        ('name = "x"\n' + BLOCK + "steps = true", "block 1 steps must be a whole number, not True"),
        ('name = "x"\n' + BLOCK + "steps = 1.5", "block 1 steps must be a whole number, not 1.5"),
        ('name = "x"\n' + BLOCK + 'steps = "many"', "block 1 steps must be a whole number, not 'many'"),
        ('name = "x"\n' + BLOCK + "steps = [[1]]", "block 1 steps must be a whole number, not [1]"),
        ('name = "x"\n' + BLOCK + "kernels = 4", "block 1 kernels must be a list of whole numbers, not 4"),
        ('name = "x"\n' + BLOCK + 'preset = "quik"', "block 1: unknown preset 'quik'; did you mean 'quick'?"),
        (
            'name = "x"\n' + BLOCK + 'decoder = "broad"',
            "block 1: unknown decoder 'broad'; did you mean 'broadcast'?",
        ),
        (
            'name = "x"\n' + BLOCK + 'initialiser = "norm"',
            "block 1 initialiser must be one of truncated, uniform, kaiming, not 'norm'; did you mean 'uniform'?",
        ),
        ('name = "x"\nset = ["mig"]\n' + BLOCK, "set: expected METRIC.SETTING=VALUE, such as dci.estimator=fast, not"),
        ('name = "x"\nset = [3]\n' + BLOCK, 'set must be a list such as ["dci.estimator=fast"]'),
        ('name = "x"\nset = ["mig.bins=3"]\n' + BLOCK, "set: mig has no setting 'bins'; it has: samples, num_bins"),
        (
            'name = "x"\nset = ["dci.estimator=fats"]\n' + BLOCK,
            "set: dci.estimator must be one of published, fast, not",
        ),
        (
            'name = "x"\nmetrics = ["mig"]\nset = ["dci.train=9"]\n' + BLOCK,
            "set: settings for dci, which is not among the metrics: mig",
        ),
        (
            'name = "x"\n' + BLOCK + "omega = 2",
            "block 1 omega needs a supervision with it, one of cross-entropy, masked, l2, bce",
        ),
        (
            'name = "x"\n' + BLOCK + 'supervision = "bce"',
            "block 1: supervision 'bce' is not for categorical latents; choose one of: cross-entropy, masked",
        ),
        (
            'name = "x"\n' + BLOCK + 'supervision = "mask"',
            "block 1: unknown supervision 'mask'; did you mean 'masked'?",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_the_file_and_the_key(tmp_path, text, sentence):
    path = written(tmp_path, text)
    with pytest.raises(UserError) as error:
        read_study(path)
    said = str(error.value)
    assert said.startswith(f"{path}")
    assert sentence in said
    assert "\n" not in said


def test_a_scale_that_is_not_there(tmp_path):
    with pytest.raises(UserError, match=r"quick is missing; add a section \[quick\]"):
        study_of(tmp_path, BLOCK, "quick")
    with pytest.raises(UserError, match="the scale must be one of full, quick, not 'tiny'"):
        study_of(tmp_path, BLOCK, "tiny")


def test_studies_that_are_not_there(tmp_path):
    with pytest.raises(UserError, match=r"^unknown study 'circels'; did you mean 'circles'\?"):
        read_study("circels")
    with pytest.raises(UserError, match=r"^there is no file .*none\.toml; put it there or correct the path"):
        read_study(tmp_path / "none.toml")


def test_an_installed_package_has_its_studies_inside(tmp_path, monkeypatch):
    package = tmp_path / "site-packages" / "lddr"
    (package / "studies").mkdir(parents=True)
    (package / "studies" / "small.toml").write_text('name = "small"\n' + BLOCK)
    monkeypatch.setattr(study_module, "__file__", str(package / "sweeps" / "study.py"))
    assert find_study("small") == package / "studies" / "small.toml"
    assert len(read_study("small").configs) == 1


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ("seeds = 10000000", "block 1 seeds must be at most 100000, not 10000000"),
        ("seeds = 5000\nsteps = [1, 2, 3, 4, 5]\nbatch_size = [1, 2, 3, 4, 5]", "block 1 has 125,000 runs; at most"),
    ],
)
def test_more_runs_than_anybody_can_make_are_refused_at_once(tmp_path, lines, sentence):
    with pytest.raises(UserError, match=sentence):
        read_study(written(tmp_path, f'name = "x"\n{BLOCK}{lines}\n'))


def test_many_seeds_take_no_time_that_grows_with_their_square(tmp_path):
    study = read_study(written(tmp_path, f'name = "x"\n{BLOCK}seeds = 1000\n'))
    assert [config.training.seed for config in study.configs] == list(range(1000))


def test_values_that_are_there_twice_are_seen_in_long_lists(tmp_path):
    seeds = [*range(2000), 7]
    with pytest.raises(UserError, match="block 1 seeds has 7 twice"):
        study_of(tmp_path, f"{BLOCK}seeds = {seeds}\n")
    with pytest.raises(UserError, match=r"block 1 kernels has \[4, 4, 2, 2\] twice"):
        study_of(tmp_path, f"{BLOCK}kernels = [[4, 4, 2, 2], [4, 4, 2, 2]]\n")


@pytest.mark.parametrize(
    "content",
    [b"a = " + b"[" * 5000, b"\xff\xfe", b'name = "x"\nmetrics = [["mig"]]\n' + BLOCK.encode(), b"#" * (2 << 20)],
)
def test_damaged_studies_are_refused_in_a_sentence(tmp_path, content):
    (tmp_path / "study.toml").write_bytes(content)
    with pytest.raises(UserError, match=r"study\.toml: (expected a study in TOML|metrics: unknown metric)"):
        read_study(tmp_path / "study.toml")
