"""Selectors, ranking and report, on runs with known answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import normalized_mutual_info_score

from lddr.cli import main
from lddr.errors import UserError
from lddr.runs.index import Run
from lddr.selection.ranking import Encoded, comparable_groups, correlation, report_selectors, score_of_choice, select
from lddr.selection.selector import find_selector, selector, selectors
from lddr.selection.selectors import agreement, grouped

SETTINGS: dict[str, Any] = {
    "model": "dvae",
    "dataset": "circles",
    "resolution": 16,
    "steps": 100,
    "checksum": "c",
    "supervision": None,
    "latent": "categorical",
    "num_latents": 2,
    "num_categories": 64,
}


def made(number: int, scores: dict[str, float], state: Any = "finished", **changes: Any) -> Run:
    return Run(Path(f"runs/{number:02d}"), state, SETTINGS | {"seed": number} | changes, scores)


def never(run: Run) -> Encoded | str:
    raise AssertionError("this selector needs no images")


def no_images(run: Run) -> Encoded | str:
    return "cannot be encoded: there are no images"


def shown(of_runs: dict[int, Encoded]) -> Callable[[Run], Encoded | str]:
    return lambda run: of_runs[int(run.folder.name)]


@pytest.mark.parametrize(
    ("by", "column", "first"),
    [
        ("gap", "gap", 1),
        ("relative", "gap.relative", 1),
        ("discreteness", "gap.confidence", 2),
        ("elbo", "elbo", 2),
        ("elbo_noiseless", "elbo_noiseless", 2),
        ("reconstruction", "reconstruction", 1),
        ("independence", "unsupervised", 1),
        ("validation", "validation_risk", 1),
    ],
)
def test_scores_rank_in_their_direction(by, column, first):
    runs = [made(number, {column: value}) for number, value in enumerate([0.5, -0.25, 2.0])]
    selection = select(runs, by, never)
    assert selection.chosen == f"runs/0{first}"
    assert selection.value == [0.5, -0.25, 2.0][first]
    assert [place.rank for place in selection.ranking] == [1, 2, 3]
    assert selection.ranking[1].run == "runs/00"
    assert selection.varied == {"seed": [0, 1, 2]}
    assert selection.compared["dataset"] == "circles"


def test_who_is_left_out_and_why():
    runs = [made(0, {"gap": 2.0}), made(1, {}), made(2, {"gap": 1.0}, "training"), made(3, {}, "broken"), made(4, {})]
    selection = select(runs, "gap", never)
    assert selection.chosen == "runs/00"
    assert selection.left_out.pop("is not finished") == ["runs/02"]
    assert selection.left_out.pop("is broken") == ["runs/03"]
    ((reason, folders),) = selection.left_out.items()
    assert "lddr evaluate RUN --metrics gap" in reason
    assert folders == ["runs/01", "runs/04"]


def test_a_collapsed_model_is_never_chosen():
    """Rounding costs it nothing, so its gap is the smallest of all."""
    dead = made(0, {"gap": 0.0, "elbo": 9.0, "explained": -0.01, "reconstruction": 910.3, "mean_picture": 909.6})
    old = made(1, {"gap": 0.0, "elbo": 9.0, "reconstruction": 910.3, "mean_picture": 909.6})  # of an older version
    weak = made(2, {"gap": 3.0, "elbo": 1.0, "explained": 0.02, "reconstruction": 907.5, "mean_picture": 909.6})
    for by in ("gap", "elbo", "gap+elbo"):
        selection = select([dead, old, weak], by, never)
        assert selection.chosen == "runs/02"
        ((reason, folders),) = selection.left_out.items()
        assert "no better than the mean image" in reason
        assert folders == ["runs/00", "runs/01"]


def test_ties_share_a_rank_and_go_by_name():
    runs = [made(number, {"gap": value}) for number, value in enumerate([2.0, 1.0, 1.0, 3.0])]
    for order in (runs, runs[::-1]):
        ranking = select(order, "gap", never).ranking
        assert [(place.rank, place.run) for place in ranking] == [
            (1, "runs/01"),
            (1, "runs/02"),
            (3, "runs/00"),
            (4, "runs/03"),
        ]


@pytest.mark.parametrize(
    ("name", "value"), [("dataset", "dsprites"), ("steps", 7), ("resolution", 32), ("checksum", "d"), ("latent", "g")]
)
def test_what_cannot_be_compared_is_refused_with_a_way_out(name, value):
    runs = [made(0, {"elbo": 1.0}), made(1, {"elbo": 2.0}), made(2, {"elbo": 3.0}, **{name: value})]
    sentence = rf'{name} is {SETTINGS[name]} \(2 runs\) or {value} \(1 runs\).*--where "{name}={SETTINGS[name]}"'
    with pytest.raises(UserError, match=sentence):
        select(runs, "elbo", never)
    with pytest.raises(UserError, match=sentence):
        select(runs, "udr", never)  # before anything is encoded


def test_only_the_ranked_have_to_be_comparable():
    runs = [made(0, {"gap": 1.0}), made(1, {}, latent="gaussian")]
    assert select(runs, "gap", never).chosen == "runs/00"


@pytest.mark.parametrize(
    ("by", "column", "name"),
    [("validation", "validation_risk", "labels"), ("discreteness", "gap.confidence", "num_categories")],
)
def test_some_selectors_need_more_in_common(by, column, name):
    runs = [made(number, {column: 1.0, "elbo": 1.0}, **{name: 50 * number}) for number in range(2)]
    select(runs, "elbo", never)
    with pytest.raises(UserError, match=f"cannot be ranked together: {name}"):
        select(runs, by, never)


def test_nothing_to_choose_from_is_a_sentence():
    with pytest.raises(UserError, match="there are no runs to choose from"):
        select([], "gap", never)
    with pytest.raises(UserError, match="nothing can be chosen by gap: runs/00 has no gap"):
        select([made(0, {})], "gap", never)
    with pytest.raises(UserError, match=r"runs/00 is not finished \(and so on for 2 runs"):
        select([made(0, {}, "training"), made(1, {}, "training")], "gap", never)
    with pytest.raises(UserError, match="did you mean 'gap'"):
        select([made(0, {})], "gape", never)
    with pytest.raises(UserError, match="unknown selector 'gape'"):
        select([made(0, {})], "elbo+gape", never)


def test_a_combination_is_the_mean_rank():
    scores = [(1.0, 10.0), (2.0, 30.0), (3.0, 20.0), (0.5, None)]
    runs = [made(n, {"gap": g} | ({} if e is None else {"elbo": e})) for n, (g, e) in enumerate(scores)]
    selection = select(runs, "gap+elbo", never)
    assert {place.run: place.value for place in selection.ranking} == {"runs/00": 2.0, "runs/01": 1.5, "runs/02": 2.5}
    assert selection.left_out == {"has no elbo; get it with: lddr evaluate RUN --metrics elbo": ["runs/03"]}
    assert find_selector("gap+udr").needs == "images"
    assert find_selector("discreteness+validation").same == (
        "num_latents",
        "num_categories",
        "supervision",
        "labels",
        "label_seed",
    )


def categorical(categories: np.ndarray, confidence: float = 0.5) -> Encoded:
    """A model whose codes are its categories on [-1, 1]."""
    return Encoded(categories / 31.5 - 1, categories, np.full(categories.shape[1], confidence))


def draws(seed: int, latents: int = 3, samples: int = 1000) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 64, (samples, latents))


def test_agreement_is_one_up_to_order_direction_and_names():
    truth = draws(0) // 8 * 8  # eight values per latent
    renamed = (63 - truth)[:, [2, 0, 1]]
    shuffled = np.random.default_rng(1).permutation(64)[truth]
    pairs = agreement([np.stack([grouped(c) for c in model.T], axis=1) for model in (truth, renamed, shuffled)])
    assert pairs == pytest.approx(np.ones((3, 3)))


def test_agreement_of_strangers_is_about_zero():
    models = [np.stack([grouped(column) for column in draws(seed).T], axis=1) for seed in range(3)]
    pairs = agreement(models)
    assert np.all(pairs[~np.eye(3, dtype=bool)] < 0.06)
    assert np.allclose(pairs, pairs.T)


def test_agreement_counts_latents_that_have_no_partner():
    truth = draws(0) // 16
    pairs = agreement([truth, truth[:, :1], truth[:, :0]])
    assert pairs[0, 1] == pytest.approx(1 / 3)
    assert pairs[0, 2] == pairs[1, 2] == 0


def test_latents_are_matched_one_to_one():
    truth = draws(0, latents=1) // 16
    twice = np.concatenate([truth, truth], axis=1)  # both look like the other's only latent
    assert agreement([twice, truth])[0, 1] == pytest.approx(1 / 2)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12))
def test_agreement_is_near_the_textbook_with_many_samples(seed, left, right):
    random = np.random.default_rng(seed)
    one = random.integers(0, left, 5000)
    other = np.where(random.random(5000) < 0.5, one * right // left, random.integers(0, right, 5000))
    ours = agreement([one[:, None], other[:, None]])[0, 1]
    expected = normalized_mutual_info_score(one, other, average_method="max") if left > 1 and right > 1 else 0.0
    assert ours == pytest.approx(expected, abs=0.03)
    assert 0 <= ours <= 1


@settings(deadline=None)
@given(st.lists(st.integers(0, 63), min_size=1, max_size=200))
def test_groups_keep_order_and_what_is_equal(values):
    categories = np.array(values)
    groups = grouped(categories)
    order = np.argsort(categories, kind="stable")
    assert np.all(np.diff(groups[order]) >= 0)
    assert 0 <= groups.min() <= groups.max() < 16
    for value in set(values):
        assert len(set(groups[categories == value])) == 1


def test_the_model_that_agrees_with_the_others_is_chosen():
    truth = draws(0) // 8 * 8
    models = {0: truth, 1: 63 - truth[:, ::-1], 2: draws(2) // 8 * 8, 3: truth[:, [1, 0, 2]]}
    runs = [made(number, {}) for number in models]
    for by in ("agreement", "udr"):
        selection = select(runs, by, shown({number: categorical(codes) for number, codes in models.items()}))
        assert {place.run for place in selection.ranking[:3]} == {"runs/00", "runs/01", "runs/03"}
        assert selection.ranking[3].value < 0.2
        assert selection.ranking[0].value > 0.8


def test_udr_is_the_metric_of_that_name():
    from lddr.metrics.unsupervised import udr

    models = {number: categorical(draws(number % 2) // 9) for number in range(4)}
    expected = udr([model.codes for model in models.values()]).scores
    ranking = select([made(number, {}) for number in models], "udr", shown(models)).ranking
    assert [place.value for place in sorted(ranking, key=lambda place: place.run)] == pytest.approx(list(expected))


def test_seeds_are_compared_within_their_settings():
    truth, other = draws(0) // 8 * 8, draws(1) // 8 * 8
    models = {0: truth, 1: truth, 2: other, 3: other, 4: other}
    gammas = {0: 10, 1: 10, 2: 20, 3: 20, 4: 30}
    runs = [made(number, {}, gamma=gamma) for number, gamma in gammas.items()]
    selection = select(runs, "agreement", shown({n: categorical(c) for n, c in models.items()}))
    assert [place.value for place in selection.ranking] == pytest.approx([1, 1, 1, 1])
    assert selection.left_out == {"has no other seed of the same settings to be compared with": ["runs/04"]}


def test_idle_latents_do_not_count():
    categories = draws(0)
    idle = np.concatenate([categories[:, :2], np.full((1000, 1), 32)], axis=1)
    idle_code = Encoded(idle / 31.5 - 1, idle, np.array([0.9, 0.7, 0.02]))
    models = {0: idle_code, 1: categorical(categories, 0.6)}
    selection = select([made(0, {}), made(1, {})], "crispness", shown(models))
    assert {place.run: place.value for place in selection.ranking} == pytest.approx({"runs/00": 0.8, "runs/01": 0.6})
    agreed = select([made(0, {}), made(1, {})], "agreement", shown(models))
    assert agreed.value == pytest.approx(2 / 3)  # two shared latents of at most three


def test_models_without_categories_or_images_are_left_out():
    runs = [made(number, {}) for number in range(4)]
    gaussian = Encoded(np.random.default_rng(0).normal(size=(100, 2)))
    flat = Encoded(np.zeros((100, 2)), np.zeros((100, 2), np.int64), np.full(2, 1 / 64))
    models: dict[int, Any] = {0: gaussian, 1: "cannot be encoded: x", 2: flat, 3: categorical(draws(0, samples=100))}
    left_out = select(runs, "crispness", shown(models)).left_out
    assert left_out == {
        "has no categories": ["runs/00"],
        "cannot be encoded: x": ["runs/01"],
        "has no latent in use": ["runs/02"],
    }
    selection = select(runs, "agreement", shown(models))
    assert [place.value for place in selection.ranking] == [0, 0]


def test_every_selector_says_what_it_is():
    assert len(selectors) >= 11
    for name in selectors:
        assert selectors[name].summary
        verdicts = report_selectors([made(n, {}) for n in range(3)], [name], ["mig"], no_images)[0].left_out[name]
        assert sum(verdicts.values()) == 3  # a reason for each, and no exception


# the report


def scored(gaps: list[float | None], migs: list[float | None], **changes: Any) -> list[Run]:
    columns = [{"gap": gap, "mig": mig} for gap, mig in zip(gaps, migs, strict=True)]
    return [
        made(number, {name: value for name, value in scores.items() if value is not None}, **changes)
        for number, scores in enumerate(columns)
    ]


@pytest.mark.parametrize(("migs", "expected"), [([0.1, 0.2, 0.3, 0.9], -1.0), ([0.9, 0.3, 0.2, 0.1], 1.0)])
def test_perfect_correlations_are_exact_and_so_are_their_intervals(migs, expected):
    (group,) = report_selectors(scored([1.0, 2.0, 3.0, 10.0], migs), ["gap"], ["mig"], never)
    (entry,) = group.correlations
    assert (entry.spearman, entry.low, entry.high) == pytest.approx((expected,) * 3)
    (chosen,) = group.choices
    assert chosen.selected == migs[0]
    assert (chosen.median, chosen.best, chosen.random) == pytest.approx((0.25, 0.9, 0.375))
    assert (group.runs, chosen.runs, entry.runs) == (4, 4, 4)


def test_runs_without_a_score_are_left_out_pair_by_pair():
    runs = scored([1.0, None, 2.0, 3.0, 4.0], [0.5, 0.9, None, 0.4, 0.3])
    (group,) = report_selectors(runs, ["gap"], ["mig", "dci"], never)
    mig, dci = group.correlations
    assert (mig.runs, mig.spearman) == (3, pytest.approx(1.0))
    assert (dci.runs, dci.spearman, dci.low) == (0, None, None)
    (chosen,) = group.choices  # none for dci
    assert (chosen.selected, chosen.best) == (0.5, 0.5)
    assert list(group.left_out["gap"].values()) == [1]


@pytest.mark.parametrize(
    ("gaps", "migs"), [([1.0, 1.0, 1.0], [0.1, 0.2, 0.3]), ([1.0, 2.0, 3.0], [0.2] * 3), ([1.0, 2.0], [0.1, 0.2])]
)
def test_what_has_no_correlation_is_none_and_never_nan(gaps, migs):
    (group,) = report_selectors(scored(gaps, migs), ["gap"], ["mig"], never)
    assert group.correlations[0].spearman is None
    assert "NaN" not in str(group.as_dict())
    assert "nan" not in str(group.as_dict())


def test_a_tie_for_the_first_place_is_worth_its_mean():
    preference, truth = np.array([1.0, 1.0, 0.0]), np.array([0.2, 0.4, 0.9])
    entry = score_of_choice("gap", "mig", preference, truth)
    assert entry.selected == pytest.approx(0.3)
    assert entry.random == pytest.approx(0.5)


def test_the_interval_holds_what_it_should():
    """95 % intervals of a known correlation hold it about that often."""
    random, held = np.random.default_rng(0), 0
    for _ in range(40):
        left = random.normal(size=80)
        right = left + random.normal(size=80)  # Pearson 1/√2; for Gaussians Spearman = 6/π asin(r/2)
        entry = correlation("gap", "mig", left, right)
        assert entry.low is not None
        assert entry.high is not None
        held += entry.low <= 6 / np.pi * np.arcsin(np.sqrt(0.5) / 2) <= entry.high
    assert held >= 33


def test_groups_are_kinds_of_runs_models_alone_and_families_together():
    runs = [
        *(made(number, {}) for number in range(2)),
        *(made(number, {}, model="factor-dvae") for number in range(2, 5)),
        made(5, {}, dataset="dsprites"),
        made(6, {}, supervision="masked", labels=100),
        made(7, {}, model="vae", latent="gaussian"),
        made(8, {}, "training"),
    ]
    found = [[int(run.folder.name) for run in members] for members in comparable_groups(runs[:-1])]
    assert found == [[0, 1], [2, 3, 4], [0, 1, 2, 3, 4], [5], [6], [7]]
    groups = report_selectors(runs, ["elbo"], ["mig"], never)
    assert [group.runs for group in groups] == [2, 3, 5, 1, 1, 1]
    assert groups[2].models == ("dvae", "factor-dvae")
    assert groups[2].title == "circles, dvae + factor-dvae, 100 steps"
    assert groups[4].title == "circles, dvae, 100 steps, masked with 100 labels"


def test_a_selector_that_cannot_compare_the_runs_of_a_group_says_so():
    runs = [made(number, {"gap.confidence": 0.5, "mig": 0.1}, num_categories=number) for number in range(3)]
    (group,) = report_selectors(runs, ["discreteness"], ["mig"], never)
    assert group.left_out == {"discreteness": {"differs from other runs in num_categories": 3}}


def test_a_selector_is_one_function_and_in_the_help_once_it_is_known(monkeypatch, capsys):
    monkeypatch.setattr(selectors, "_things", dict(selectors._fill()))

    @selector("by-name", "first in the alphabet", "lower", needs="scores")
    def by_name(candidates):
        return [float(run.name) for run in candidates.runs]

    chosen = select([made(number, {}) for number in (3, 1, 2)], "by-name", never)
    assert (chosen.chosen, chosen.summary) == ("runs/01", "first in the alphabet")
    with pytest.raises(SystemExit):
        main(["select", "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    assert all(f"{name} {selectors[name].summary}" in shown for name in selectors)
