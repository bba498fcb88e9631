"""What every registered metric promises; new ones are found in the registry."""

import inspect
import json
from functools import cache

import numpy as np
import pytest

import lddr.metrics
from lddr.cli import main
from lddr.data.dataset import Dataset
from lddr.data.factors import Factor, FactorGrid
from lddr.data.in_memory import ArrayDataset
from lddr.errors import UserError
from lddr.metrics.evaluate import evaluate
from lddr.metrics.metric import choose_metrics, disentanglement_metrics, metrics, parse_metric_settings
from lddr.trained import Trained

OURS = [name for name in metrics if metrics[name].function.__module__.startswith("lddr.")]
NAMES = pytest.mark.parametrize("name", list(metrics))
QUICK = {
    "beta_vae": {"train_points": 400, "test_points": 300, "pairs": 8},
    "factor_vae": {"samples": 500, "train_votes": 400, "test_votes": 300, "images": 16},
    "irs": {"samples": 400},
    "dci": {"train": 300, "test": 300, "estimator": "fast"},
    "sap": {"train": 400, "test": 400},
    "explicitness": {"train": 400, "test": 400},
    "dci_es": {"train": 300, "test": 300, "widths": (0, 4), "epochs": 5},
    "snc": {"train": 400, "test": 400},
    "nk": {"train": 400, "test": 400, "width": 16, "epochs": 40},
    "infomec": {"samples": 500},
    "downstream_logistic": {"sizes": (100,), "test": 400},
    "downstream_boosting": {"sizes": (100,), "test": 400, "estimator": "fast"},
    "gap": {"batches": 3, "batch_size": 8},
    "pipe": {"train": 64, "test": 64},
}
PERFECT = dict.fromkeys(OURS, 1.0) | {"sap": None, "nk": None, "snc": None, "unsupervised": 0.0, "gap": None}
# SAP and NK reach 1 - chance; the equally filled bins of SNC cut values of unequal frequency
NOISE = {  # chance is 1 / factors for votes, the share of the favourite for accuracies; some have no limit
    "beta_vae": 1 / 3, "factor_vae": 1 / 3, "mig": 0, "mig_sup": 0, "dci": 0, "sap": 0, "explicitness": 0,
    "downstream_logistic": np.mean([1 / 4, 1 / 3, 1 / 2]), "downstream_boosting": np.mean([1 / 4, 1 / 3, 1 / 2]),
    "snc": np.mean([1 / 4, 1 / 3, 1 / 2]), "nk": 0, "dci_es": 0, "min_suf": 0, "unsupervised": 0,
}  # fmt: skip


class Pixels(Dataset):
    """Images whose first pixels are their factors, and whose others are noise: a hidden factor decides it."""

    name, origin, image_shape = "pixels", "drawn", (2, 3, 1)
    space = FactorGrid((Factor("a", 4), Factor("b", 3), Factor("c", 2)), hidden=(Factor("noise", 50),))
    noise = np.random.default_rng(0).integers(256, size=(space.size, 3))

    def images(self, indices, generator=None):
        levels = self.space.factors_of(indices) * 255 // [3, 2, 1]
        return np.concatenate([levels, self.noise[indices]], axis=1).reshape(-1, 2, 3, 1).astype(np.uint8)


def truth(images):
    return 4 * images.reshape(len(images), -1)[:, :3]


def noise(images):
    return 4 * images.reshape(len(images), -1)[:, 3:]


@cache
def entry_of(name, represent=truth, **options):
    return evaluate(Pixels(), represent, [name], settings=quick(name), jobs=1, quiet=True, **options)[name]


def quick(*names):
    return {name: QUICK[name] for name in names if name in QUICK}


@pytest.mark.parametrize("name", [name for name in metrics if metrics[name].needs != "model"])
def test_a_perfect_code_scores_1_and_noise_what_chance_gives(name):
    perfect, chance = entry_of(name), entry_of(name, noise)
    assert perfect["score"] is not None, perfect
    if PERFECT.get(name) is not None:
        assert np.isclose(perfect["score"], PERFECT[name], atol=0.02)
    if name in NOISE:
        assert np.isclose(chance["score"], NOISE[name], atol=0.08)
    if metrics[name].labels:
        assert chance["score"] < perfect["score"]


@NAMES
def test_every_setting_is_in_the_result_and_can_be_changed(name, folder_of):
    metric = choose_metrics([name], quick(name))[name]
    found = entry_of(name)
    assert json.loads(json.dumps(metric.settings)).items() <= found["settings"].items()
    assert found["settings"]["draw_seed"] == 0
    for setting, value in metrics[name].settings.items():
        if len(metrics[name].rules[setting].choices) == 1:  # says what was done, to tell scores of other versions apart
            continue
        other = {int: 1 + (value if isinstance(value, int) else 0), float: 0.5, tuple: "7,9", bool: "true"}.get(
            type(value)
        )
        changed = other or metrics[name].rules[setting].choices[-1]
        text = parse_metric_settings([f"{name}.{setting}={changed}"])
        assert choose_metrics([name], text)[name].settings[setting] not in (value, None)


@NAMES
def test_settings_out_of_their_range_are_refused_in_a_sentence(name):
    for setting, rule in metrics[name].rules.items():
        for bad in ["no number", -1, float("nan")] if not rule.choices else ["no choice"]:
            value = (bad,) if isinstance(rule.default, tuple) else bad
            with pytest.raises(UserError, match=rf"{name}\.{setting} must be"):
                metrics[name].with_settings(**{setting: value})
    with pytest.raises(UserError, match=f"{name} has no setting 'nonsense'"):
        metrics[name].with_settings(nonsense=1)


@NAMES
def test_the_function_refuses_them_too(name):
    function = metrics[name].function
    inputs = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
    ]
    for setting in set(metrics[name].rules) & set(inspect.signature(function).parameters):
        with pytest.raises(UserError, match=f"{function.__name__}: {setting} must be"):
            function(*[None] * len(inputs), **{setting: ("nonsense",)})


def test_scores_are_the_same_alone_and_in_company():
    names = [name for name in metrics if metrics[name].needs != "model" and metrics[name].seconds < 20]
    together = evaluate(Pixels(), noise, names[::-1], settings=quick(*names), jobs=1, quiet=True)
    for name in names:
        assert entry_of(name, noise) == together[name], name


@NAMES
def test_what_is_not_defined_says_why(name):
    plain = ArrayDataset(Pixels().images(np.arange(99)))
    found = evaluate(plain, truth, [name], settings=quick(name), jobs=1, quiet=True)[name]
    if metrics[name].labels:
        assert "no ground-truth factors" in found["reason"]
    elif metrics[name].needs == "model":
        assert "needs the model" in found["reason"]
    if metrics[name].labels or metrics[name].needs == "model":
        assert found["score"] is None
        assert found["settings"]["draw_seed"] == 0


@NAMES
def test_reported_progress_adds_up_to_1(name, folder_of):
    metric, shares = choose_metrics([name], quick(name))[name], []
    if "progress" not in inspect.signature(metric.function).parameters:
        return
    if metric.needs == "model":
        from lddr.data.load import load_dataset

        metric.compute((Trained.load(folder_of("dvae")), load_dataset("circles", 16), 0), shares.append)
    else:
        from tests.metrics.toys import Toy

        draws = metric.draw(Pixels.space, np.random.default_rng(0))
        metric.score(Toy(Pixels.space, lambda factors: factors).samples(draws), shares.append)
    assert len(shares) > 1
    assert np.isclose(sum(shares), 1)


@pytest.mark.parametrize("name", OURS)
def test_its_function_is_public(name):
    function = metrics[name].function
    assert getattr(lddr.metrics, function.__name__) is function


def test_the_paper_comes_first_among_the_measures():
    assert disentanglement_metrics()[:6] == ["beta_vae", "factor_vae", "mig", "dci", "modularity", "sap"]
    assert {"irs", "infomec"} <= set(disentanglement_metrics())
    assert not {"unsupervised", "gap", "downstream_boosting"} & set(disentanglement_metrics())


def test_the_list_and_the_table_of_the_docs_are_those_of_the_registry(capsys):
    from pathlib import Path

    main(["metrics"])
    shown = capsys.readouterr().out
    for name in metrics:
        assert name in shown
        assert all(setting in shown for setting in metrics[name].settings)
    main(["metrics", "--markdown"])
    page = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
    assert capsys.readouterr().out.strip() in page, "paste the output of: lddr metrics --markdown"
