import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lddr.data.factors import Factor, FactorGrid, FactorTable
from lddr.errors import UserError
from lddr.metrics.interventions import irs
from lddr.metrics.metric import UndefinedError, metrics
from tests.metrics import published
from tests.metrics.toys import mixed, scored

GRID = FactorGrid(
    (Factor("fixed", 1), Factor("shape", 4), Factor("x", 5), Factor("y", 120)), hidden=(Factor("noise", 3),)
)
SQUARE = FactorGrid((Factor("x", 9), Factor("y", 9)))
SMALL = metrics["irs"].with_settings(samples=2000)
NOISE = np.random.default_rng(1).uniform(-1, 1, size=(GRID.size, 3))


def test_a_case_worked_out_by_hand():
    codes = np.array([[0, 7, 0], [2, 7, 0], [10, 7, 4], [10, 7, 4]])  # means 5.5, 7, 2; largest deviations 5.5, 0, 2
    result = irs([codes, codes], [[0, 0, 1, 1], [0, 1, 0, 1]], quantile=1)
    # held at its values, factor 0 leaves deviations 1, 0 of latent 0 and none of latent 2; factor 1: 5, 4 and 2, 2
    assert np.allclose(result.robustness, [[1 - 0.5 / 5.5, 1 - 4.5 / 5.5], [0, 0], [1, 0]])
    assert np.allclose(result.per_latent, [1 - 0.5 / 5.5, 0, 1])
    assert np.allclose(result.weights, [5.5, 0, 2])
    assert np.isclose(result.score, (5.5 - 0.5 + 2) / 7.5)


def test_groups_weigh_as_much_as_they_have_images():
    result = irs([[[0.0], [4.0], [2.0], [2.0], [2.0], [2.0]]], [[0, 0, 1, 1, 1, 1]], quantile=1)
    assert np.isclose(result.score, 1 - (2 / 6 * 2) / 2)


@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.5, 0.9, 0.99, 1.0]))
def test_the_score_of_a_plain_sample_is_that_of_the_paper(seed, num_latents, num_factors, quantile):
    generator = np.random.default_rng(seed)
    factors = np.concatenate(
        [np.arange(2)[:, None] * np.ones(num_factors, int), generator.integers(4, size=(30, num_factors))]
    )
    codes = generator.normal(size=(32, num_latents)) + factors[:, :1]
    result = irs([codes] * num_factors, list(factors.T), quantile=quantile)
    assert np.isclose(result.score, published.irs(codes, factors, quantile, weighted=True))


def test_draws_hold_each_factor_at_evenly_spread_values_equally_often():
    draws = SMALL.draw(GRID, np.random.default_rng(0))
    assert set(draws) == {"factor 1", "factor 2", "factor 3"}
    for part, indices in draws.items():
        held, factors = int(part.split()[1]), GRID.factors_of(indices)
        values, counts = np.unique(factors[:, held], return_counts=True)
        assert set(counts) == {2000 // len(values)}
        assert len(values) == min(50, GRID.sizes[held])
        assert (values[0], values[-1]) == (0, GRID.sizes[held] - 1)
        assert np.ptp(np.diff(values)) <= 1
        free = [factor for factor in (1, 2, 3) if factor != held]
        assert np.all(np.abs(np.corrcoef(factors[:, [held, *free]].T)[0, 1:]) < 0.1)
        assert len(np.unique(GRID.values_of(indices)[..., -1])) == 3


@pytest.mark.parametrize(
    "code",
    [
        lambda f: f,
        lambda f: -f[..., ::-1],
        lambda f: np.concatenate([f, f, 0 * f + 0.1], axis=-1),
        lambda f: f[..., 2:3] ** 2,
    ],
    ids=["perfect", "flipped and permuted", "twice, and constants", "one latent"],
)
def test_latents_of_one_factor_each_score_1(code):
    assert np.isclose(scored(SMALL, GRID, code).score, 1)


def test_values_that_no_image_has_are_not_drawn():
    rows = np.stack(np.meshgrid([0, 2, 7], np.arange(6), [1]), axis=-1).reshape(-1, 3)
    space = FactorTable((Factor("a", 9), Factor("b", 6), Factor("c", 2)), rows)  # c has two values, but shows one
    draws = SMALL.draw(space, np.random.default_rng(0))
    assert set(draws) == {"factor 0", "factor 1"}
    assert set(space.factors_of(draws["factor 0"])[:, 0]) == {0, 2, 7}
    assert np.isclose(scored(SMALL, space, lambda f: f).score, 1)


def test_the_matrix_has_a_column_for_every_factor():
    result = scored(SMALL, GRID, lambda f: f[..., [3, 1]])
    assert result.robustness.shape == (2, 4)
    assert np.allclose(result.robustness[[0, 1], [3, 1]], 1)
    assert np.all(result.robustness[:, 0] == 0)  # never set
    assert np.all(result.robustness[[0, 0, 1, 1], [1, 2, 2, 3]] < 0.05)


def test_order_sign_and_scale_of_latents_change_nothing():
    plain = scored(SMALL, GRID, mixed)
    assert np.isclose(scored(SMALL, GRID, lambda f: -3 * mixed(f)[..., [2, 0, 1]]).score, plain.score)
    assert 0.1 < plain.score < 0.95


def test_noise_scores_about_0_and_a_turned_code_one_half():
    assert scored(metrics["irs"], GRID, NOISE).score < 0.06
    rotated = scored(metrics["irs"], SQUARE, lambda f: np.stack([f.sum(-1), f[..., 0] - f[..., 1]], axis=-1))
    assert np.isclose(rotated.score, 0.5, atol=0.02)  # x held, y moves the sum by ±4 of the ±8 it ever moves
    assert np.allclose(rotated.robustness, 0.5, atol=0.02)


@pytest.mark.parametrize("level", [0, 0.1, 1e9 + 0.1])
def test_constant_codes_score_0(level):
    result = scored(SMALL, GRID, np.full((GRID.size, 2), level))
    assert result.score == 0
    assert result.weights == (0, 0)
    assert np.all(result.robustness == 0)


def test_a_factor_set_to_one_value_only_has_no_part_in_it():
    codes = np.random.default_rng(0).normal(size=(40, 2))
    values = np.arange(40) % 2
    assert irs([codes, codes], [values, np.zeros(40, int)]).score == irs([codes], [values]).score
    assert irs([codes], [np.zeros(40, int)]).score == 0


def test_the_same_draws_give_the_same_score_with_every_setting():
    first, second = (scored(SMALL, GRID, mixed, seed=5).as_dict() for _ in range(2))
    assert first == second
    assert first != scored(SMALL, GRID, mixed, seed=6).as_dict()
    settings = {"quantile": 0.99, "samples": 2000, "max_values": 50, "images": [2000, 2000, 2000]}
    assert json.loads(json.dumps(first))["settings"] == settings


@pytest.mark.parametrize(
    "space",
    [
        FactorTable((), np.zeros((9, 0), int)),
        FactorGrid((Factor("a", 1),), hidden=(Factor("b", 9),)),
        FactorGrid((Factor("a", 9),)),
        FactorTable((Factor("a", 6), Factor("b", 6)), np.stack([np.arange(6), np.arange(6)], axis=1)),
    ],
    ids=["no factors", "constant", "nothing else varies", "continuous"],
)
def test_no_factor_to_hold_leaves_the_score_undefined(space):
    with pytest.raises(UndefinedError, match="at least 1 factor "):
        SMALL.draw(space, np.random.default_rng(0))


def test_mistakes_are_sentences():
    with pytest.raises(UserError, match="for every factor"):
        irs([NOISE], [])
    with pytest.raises(UserError, match="for every factor"):
        irs([], [])
    with pytest.raises(UserError, match="NaN or infinite"):
        scored(SMALL, GRID, np.where(np.arange(GRID.size)[:, None] % 7 == 0, np.nan, NOISE))
