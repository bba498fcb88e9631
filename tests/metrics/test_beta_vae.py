import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from lddr.data.factors import Factor, FactorGrid, FactorTable
from lddr.errors import UserError
from lddr.metrics.interventions import SLICE, beta_vae_score, holdable
from lddr.metrics.metric import UndefinedError, metrics
from tests.metrics.toys import Toy, mixed, scored

GRID = FactorGrid(
    (Factor("shape", 4), Factor("fixed", 1), Factor("x", 5), Factor("y", 6)), hidden=(Factor("noise", 3),)
)
SQUARE = FactorGrid((Factor("x", 8), Factor("y", 8)))
BETA_VAE = metrics["beta_vae"]
SMALL = BETA_VAE.with_settings(train_points=600, test_points=300, pairs=16)
NOISE = np.random.default_rng(1).normal(size=(GRID.size, 4))


def test_pairs_share_the_factor_in_the_name_of_their_part_and_nothing_else():
    draws = SMALL.draw(GRID, np.random.default_rng(0))
    assert set(draws) == {f"{part} {factor}" for part in ("train", "test") for factor in (0, 2, 3)}
    assert sum(len(draws[f"train {factor}"]) for factor in (0, 2, 3)) == 600
    assert sum(len(draws[f"test {factor}"]) for factor in (0, 2, 3)) == 300
    for part, indices in draws.items():
        held = int(part.split()[1])
        values = GRID.factors_of(indices)  # (points, pairs, 2, factors)
        same = (values[:, :, 0] == values[:, :, 1]).mean(axis=(0, 1))
        assert indices.shape[1:] == (16, 2)
        assert same[held] == 1
        others = [factor for factor in (0, 2, 3) if factor != held]
        assert np.allclose(same[others], 1 / np.array(GRID.sizes)[others], atol=0.04)
        shown = np.bincount(values[:, :, 0, held].ravel(), minlength=GRID.sizes[held]) / values[:, :, 0, held].size
        assert np.allclose(shown, 1 / GRID.sizes[held], atol=0.04)  # a value is drawn anew for each pair
        assert len(np.unique(GRID.values_of(indices)[..., -1])) == 3


def test_every_point_picks_its_factor_at_random():
    metric = BETA_VAE.with_settings(train_points=900, test_points=9, pairs=1)
    draws = [metric.draw(GRID, np.random.default_rng(seed)) for seed in range(200)]
    counts = [[len(drawn[f"train {factor}"]) for factor in (0, 2, 3)] for drawn in draws]
    assert np.allclose(np.mean(counts, axis=0), 300, atol=4)
    assert np.allclose(np.var(counts, axis=0), 900 * (1 / 3) * (2 / 3), rtol=0.35)


def test_the_score_is_that_of_one_point_after_the_other():
    metric = BETA_VAE.with_settings(train_points=3 * SLICE + 90, test_points=400, pairs=4)
    draws, table = metric.draw(GRID, np.random.default_rng(3)), Toy(GRID, mixed)
    points, labels = {"train": [], "test": []}, {"train": [], "test": []}
    for part, indices in draws.items():
        for pairs in indices:
            differences = [np.abs(mixed(GRID.factors_of(a)) - mixed(GRID.factors_of(b))) for a, b in pairs]
            points[part.split()[0]].append(sum(differences) / len(differences))
            labels[part.split()[0]].append(int(part.split()[1]))
    naive = LogisticRegression(max_iter=5000).fit(points["train"], labels["train"])
    result = metric.score(table.samples(draws))
    assert result.score == naive.score(points["test"], labels["test"])
    assert result.train_accuracy == naive.score(points["train"], labels["train"])
    assert 0.4 < result.score < 0.99
    assert table.largest == SLICE * 4 * 2  # memory stays bounded


@pytest.mark.parametrize(
    "code", [lambda f: f, lambda f: -f[..., ::-1], lambda f: np.concatenate([f, f], axis=-1)],
    ids=["perfect", "flipped and permuted", "twice"],
)  # fmt: skip
def test_a_perfect_code_scores_1(code):
    result = scored(SMALL, GRID, code)
    assert result.score == result.train_accuracy == 1
    assert result.converged


def test_order_and_sign_of_latents_change_nothing():
    flipped = scored(SMALL, GRID, lambda f: -mixed(f)[..., [2, 0, 1]])
    assert np.isclose(flipped.score, scored(SMALL, GRID, mixed).score, atol=1e-9)


def test_codes_that_tell_nothing_score_as_guessing_does():
    assert np.isclose(
        scored(BETA_VAE.with_settings(train_points=3000, test_points=3000, pairs=4), GRID, NOISE).score,
        1 / 3,
        atol=0.04,
    )
    rotated = scored(
        BETA_VAE.with_settings(train_points=2000, test_points=2000, pairs=4),
        SQUARE,
        lambda f: np.stack([f.sum(-1), f[..., 0] - f[..., 1]], axis=-1),
    )
    assert np.isclose(rotated.score, 1 / 2, atol=0.04)  # |Δx + 0| and |0 + Δy| have the same distribution
    constant = scored(SMALL, GRID, np.zeros((GRID.size, 2)))
    counts = {part: len(indices) for part, indices in SMALL.draw(GRID, np.random.default_rng(0)).items()}
    favourite = max((0, 2, 3), key=lambda factor: counts[f"train {factor}"])
    assert constant.score == counts[f"test {favourite}"] / 300


def test_the_same_draws_give_the_same_score():
    assert scored(SMALL, GRID, mixed, seed=5) == scored(SMALL, GRID, mixed, seed=5)
    first, other = (SMALL.draw(GRID, np.random.default_rng(seed))["train 0"].ravel()[:99] for seed in (5, 6))
    assert np.any(first != other)


def test_every_setting_is_in_the_result():
    found = json.loads(json.dumps(scored(SMALL, GRID, mixed).as_dict()))
    assert found["settings"] == {
        "train_points": 600, "test_points": 300, "pairs": 16, "max_iterations": 10_000,
    }  # fmt: skip
    published = {"train_points": 10_000, "test_points": 5_000, "pairs": 64, "max_iterations": 10_000}
    assert BETA_VAE.settings == published


def test_an_incomplete_grid_is_scored_by_the_factors_that_can_be_held():
    generator = np.random.default_rng(4)
    rows = np.concatenate([generator.integers([3, 4], size=(200, 2)), np.arange(200)[:, None]], axis=1)
    rows = rows[rows[:, 0] != rows[:, 1]]  # not every combination
    rows[:, 2] = np.arange(len(rows))  # a continuous factor: no two images share a value
    space = FactorTable((Factor("a", 3), Factor("b", 5), Factor("time", len(rows))), rows)  # and b = 4 is never shown
    assert holdable(space, at_least=2) == [0, 1]
    assert (
        scored(BETA_VAE.with_settings(train_points=600, test_points=300, pairs=64), space, lambda f: f[..., :2]).score
        == 1
    )


@pytest.mark.parametrize(
    "space",
    [
        FactorTable((), np.zeros((9, 0), int)),
        FactorGrid((Factor("a", 1), Factor("b", 1))),
        FactorGrid((Factor("a", 1), Factor("b", 7)), hidden=(Factor("c", 5),)),
        FactorTable((Factor("a", 6), Factor("b", 6)), np.stack([np.arange(6), np.arange(6)], axis=1)),
    ],
    ids=["no factors", "constant", "one factor", "continuous"],
)
def test_too_few_factors_to_hold_leave_the_score_undefined(space):
    with pytest.raises(UndefinedError, match="at least 2 factors"):
        SMALL.draw(space, np.random.default_rng(0))


def test_labels_may_miss_in_training_but_not_all_but_one():
    points, labels = np.eye(3)[[0, 1, 2] * 9] * 9, np.array([0, 1, 2] * 9)
    known = labels < 2
    assert np.isclose(beta_vae_score(points[known], labels[known], points, labels).score, 2 / 3)
    with pytest.raises(UndefinedError, match="the same one"):
        beta_vae_score(points, np.zeros(27, int), points, labels)


def test_a_classifier_that_does_not_come_to_rest_is_told_not_warned_about():
    generator = np.random.default_rng(0)
    points, labels = generator.normal(size=(200, 3)), generator.integers(3, size=200)
    assert not beta_vae_score(points, labels, points, labels, max_iterations=1).converged
    assert beta_vae_score(points, labels, points, labels).converged


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308])
def test_codes_that_are_not_finite_are_refused(bad):
    codes = NOISE.copy()
    codes[::2] = bad
    codes[1::2] = -bad
    with pytest.raises(UserError, match="NaN or infinite"):
        scored(SMALL, GRID, codes)
