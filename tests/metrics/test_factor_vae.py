import json

import numpy as np
import pytest

from lddr.data.factors import Factor, FactorGrid, FactorTable
from lddr.errors import UserError
from lddr.metrics.interventions import SLICE, factor_vae_score, variance
from lddr.metrics.metric import UndefinedError, metrics
from tests.metrics.toys import Toy, mixed, scored

GRID = FactorGrid(
    (Factor("shape", 4), Factor("x", 5), Factor("y", 6), Factor("fixed", 1)), hidden=(Factor("noise", 3),)
)
SQUARE = FactorGrid((Factor("x", 8), Factor("y", 8)))
FACTOR_VAE = metrics["factor_vae"]
SMALL = FACTOR_VAE.with_settings(samples=2000, train_votes=600, test_votes=300, images=16)
NOISE = np.random.default_rng(1).normal(size=(GRID.size, 4))


def test_a_case_worked_out_by_hand():
    variances = [4.0, 1.0, 0.01, 0.0001]  # the last has a standard deviation of 0.01: pruned
    train = [[1, 1, 0.01, 0], [2, 0.1, 0.01, 0], [1, 0.2, 0.01, 0], [2, 1, 0.001, 0], [0, 1, 0.01, 0]]  # ratios:
    held_train = [0, 1, 0, 2, 2]  # ¼ → latent 0; 0.1 → 1; 0.2 → 1 (a tie of factors 0 and 1); 0.1 → 2; 0 → 0 (a tie)
    test = [[0, 1, 1, 0], [1, 0, 1, 0], [4, 1, 0.001, 0], [0, 1, 1, 0]]
    result = factor_vae_score(variances, train, held_train, test, [0, 1, 2, 2])
    assert result.votes.tolist() == [[1, 0, 1], [1, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert result.train_accuracy == 3 / 5  # a tie goes to the first factor: latents stand for 0, 0, 2
    assert result.score == 2 / 4
    assert result.active_latents == 3


def test_groups_share_one_value_of_the_factor_in_the_name_of_their_part():
    draws = SMALL.draw(GRID, np.random.default_rng(0))
    assert draws.pop("samples").shape == (2000,)
    assert set(draws) == {f"{part} {factor}" for part in ("train", "test") for factor in (0, 1, 2)}
    assert sum(len(indices) for part, indices in draws.items() if part.startswith("train")) == 600
    assert sum(len(indices) for part, indices in draws.items() if part.startswith("test")) == 300
    for part, indices in draws.items():
        held, values = int(part.split()[1]), GRID.factors_of(indices)  # (votes, images, factors)
        assert indices.shape[1:] == (16,)
        assert np.all(np.ptp(values, axis=1)[:, held] == 0)
        assert set(values[:, 0, held]) == set(range(GRID.sizes[held]))
        assert np.all(np.ptp(values, axis=1).mean(axis=0)[[f for f in range(3) if f != held]] > 2)


def test_the_score_is_that_of_one_vote_after_the_other():
    metric = FACTOR_VAE.with_settings(samples=500, train_votes=2 * SLICE + 700, test_votes=400, images=6)
    table, draws = Toy(GRID, mixed), metric.draw(GRID, np.random.default_rng(3))
    scale = np.var(table.codes_of(draws["samples"]), axis=0, ddof=1)
    votes = {"train": np.zeros((3, 4)), "test": np.zeros((3, 4))}
    for part, indices in draws.items():
        for group in indices if part != "samples" else ():
            local = np.array([np.var(column, ddof=1) for column in table.codes_of(group).T])
            votes[part.split()[0]][np.argmin(local / scale), int(part.split()[1])] += 1
    right = sum(votes["test"][latent, np.argmax(row)] for latent, row in enumerate(votes["train"]))
    result = metric.score(table.samples(draws))
    assert np.array_equal(result.votes, votes["train"])
    assert result.score == right / 400
    assert result.train_accuracy == votes["train"].max(axis=1).sum() / (2 * SLICE + 700)
    assert 0.4 < result.score < 0.99


@pytest.mark.parametrize(
    "code", [lambda f: f, lambda f: -f[..., ::-1], lambda f: np.concatenate([f, f], axis=-1)],
    ids=["perfect", "flipped and permuted", "twice"],
)  # fmt: skip
def test_a_perfect_code_scores_1(code):
    result = scored(SMALL, GRID, code)
    assert result.score == result.train_accuracy == 1
    assert result.votes.sum() == 600
    assert result.votes.shape[1] == 4  # a column for the factor that is never held, too
    assert np.all(result.votes[:, 3] == 0)


def test_order_sign_and_scale_of_latents_change_nothing():
    plain = scored(SMALL, GRID, mixed)
    changed = scored(SMALL, GRID, lambda f: -mixed(f)[..., [2, 0, 1]] * [1.0, 4.0, 64.0])
    assert changed.score == plain.score
    assert np.array_equal(changed.votes, plain.votes[[2, 0, 1]])


def test_codes_that_tell_nothing_score_as_guessing_does():
    assert np.isclose(
        scored(FACTOR_VAE.with_settings(samples=2000, train_votes=3000, test_votes=3000, images=8), GRID, NOISE).score,
        1 / 3,
        atol=0.04,
    )
    rotated = scored(
        FACTOR_VAE.with_settings(samples=2000, train_votes=2000, test_votes=2000, images=8),
        SQUARE,
        lambda f: np.stack([f.sum(-1), f[..., 0] - f[..., 1]], axis=-1),
    )
    assert np.isclose(rotated.score, 1 / 2, atol=0.04)  # whichever is held, both latents vary with the other


@pytest.mark.parametrize(("size", "active"), [(0.1, 3), (0.03, 1), (1e-3, 0), (0, 0)])
def test_latents_that_hardly_vary_have_no_vote(size, active):
    # standard deviations of 0 … k-1: √((k² - 1) / 12), for 4, 5 and 6 values 1.12, 1.41 and 1.71
    result = scored(SMALL, GRID, lambda f: size * f[..., :3])
    assert result.active_latents == active
    assert (result.score > 0.2) == (active > 0)
    assert (result.score == 1) == (active == 3)
    assert np.count_nonzero(result.votes.sum(axis=1)) == active


def test_the_threshold_is_absolute_and_may_be_0():
    assert scored(SMALL, GRID, lambda f: 1e-3 * f).score == 0
    assert scored(SMALL.with_settings(min_std=0), GRID, lambda f: 1e-3 * f).score == 1
    assert factor_vae_score([0.0025, 0.0], [[1, 0]], [0], [[1, 0]], [0], min_std=0.0).active_latents == 1


def test_variances_are_unbiased_and_need_two_images():
    assert variance(np.array([[[0.0, 5.0], [2.0, 5.0]]])).tolist() == [[2, 0]]
    for name in ("images", "samples"):
        with pytest.raises(UserError, match=f"{name} must be at least 2"):
            FACTOR_VAE.with_settings(**{name: 1})


def test_the_same_draws_give_the_same_score():
    first, second = (scored(SMALL, GRID, mixed, seed=5).as_dict() for _ in range(2))
    assert first == second
    assert first != scored(SMALL, GRID, mixed, seed=6).as_dict()


def test_every_setting_is_in_the_result():
    found = json.loads(json.dumps(scored(SMALL, GRID, mixed).as_dict()))
    assert found["settings"] == {"samples": 2000, "train_votes": 600, "test_votes": 300, "images": 16, "min_std": 0.05}
    assert "32 bits" in found["ties"]
    published = {"samples": 10_000, "train_votes": 10_000, "test_votes": 5_000, "images": 64, "min_std": 0.05}
    assert FACTOR_VAE.settings == published


def test_a_factor_may_miss_in_training():
    local = np.array([[0, 1, 1], [1, 0, 1], [1, 1, 0]], float)
    assert np.isclose(factor_vae_score(np.ones(3), local[:2], [0, 1], local, [0, 1, 2]).score, 2 / 3)


@pytest.mark.parametrize(
    "space",
    [FactorTable((), np.zeros((9, 0), int)), FactorGrid((Factor("a", 1), Factor("b", 7)), hidden=(Factor("c", 5),))],
    ids=["no factors", "one factor"],
)
def test_too_few_factors_to_hold_leave_the_score_undefined(space):
    with pytest.raises(UndefinedError, match="at least 2 factors"):
        SMALL.draw(space, np.random.default_rng(0))


def test_mistakes_are_sentences():
    with pytest.raises(UserError, match="as many latents"):
        factor_vae_score([1.0, 1.0], np.ones((2, 3)), [0, 1], np.ones((2, 3)), [0, 1])
    for bad in (np.nan, np.inf):
        with pytest.raises(UserError, match="NaN or infinite"):
            scored(SMALL, GRID, np.where(np.arange(GRID.size)[:, None] % 7 == 0, bad, NOISE))
