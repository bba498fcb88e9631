"""Minimality and sufficiency, for factors that depend on each other."""

import numpy as np
import pytest

from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.metrics import mig, min_suf


@pytest.fixture(scope="module")
def shadows():
    """Factors of pendulum, whose last two follow from the first two, and hand-made codes."""
    space = load_dataset("pendulum", 16).space
    factors = space.factors_of(space.sample(np.random.default_rng(0), 10_000))
    values = factors / factors.max(axis=0) - 0.5
    turn = np.sqrt(0.5) * np.array([[1, -1], [1, 1]])
    codes = {"all": values, "causes": values[:, :2], "effects": values[:, 2:], "rotated": values[:, :2] @ turn}
    return factors, codes | {"rotated effects": values[:, 2:] @ turn}


def plain(codes, factors, bins, derived=()):
    """The definition in loops: M, S."""

    def entropy(*columns):
        _, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
        return -sum(count / len(columns[0]) * np.log(count / len(columns[0])) for count in counts)

    cut = []
    for column in codes.T:
        edges = np.histogram_bin_edges(column, bins)
        cut.append([sum(value >= edge for edge in edges[1:-1]) for value in column])
    shared = [[entropy(z) + entropy(y) - entropy(z, y) for y in factors.T] for z in np.array(cut)]
    minimality = [max(row) / entropy(np.array(z)) for row, z in zip(shared, cut, strict=True)]
    sufficiency = [max(row[place] for row in shared) / entropy(y) for place, y in enumerate(factors.T)]
    return np.mean(minimality), np.mean([each for place, each in enumerate(sufficiency) if place not in derived])


@pytest.mark.parametrize("derived", [(), (1,)])
def test_it_is_the_definition(derived):
    generator = np.random.default_rng(1)
    factors = generator.integers(4, size=(300, 3))
    codes = factors @ generator.normal(size=(3, 2)) + generator.normal(size=(300, 2))
    with pytest.warns(UserWarning, match="300 samples"):
        found = min_suf(codes, factors, num_bins=7, derived=derived)
    assert np.allclose((found.minimality, found.sufficiency), plain(codes, factors, 7, derived))
    assert np.isclose(found.score, np.sqrt(found.minimality * found.sufficiency))


def test_by_hand():
    factors = np.stack([np.arange(2_000) % 4, np.arange(2_000) % 2], axis=1)  # the second follows from the first
    found = min_suf(factors[:, [1]], factors)
    assert np.allclose([found.minimality, *found.per_factor], [1, 0.5, 1])
    assert np.isclose(min_suf(factors[:, [1]], factors, derived=(1,)).sufficiency, 0.5)
    assert np.isclose(min_suf(factors, factors).score, 1)


def test_codes_of_pendulum_are_ordered_as_they_should_be_and_mig_does_not(shadows):
    factors, codes = shadows
    ours = {name: min_suf(code, factors, derived=(2, 3)).score for name, code in codes.items()}
    assert ours["causes"] == ours["all"] > 2 * ours["effects"] > 2 * ours["rotated"] > 2 * ours["rotated effects"]
    gaps = {name: mig(code, factors).score for name, code in codes.items()}
    assert gaps["effects"] > gaps["causes"]


def test_a_perfect_code_of_dependent_factors_scores_1_where_mig_does_not(shadows):
    factors, codes = shadows
    assert np.isclose(min_suf(codes["all"], factors, num_bins=64).score, 1)
    assert mig(codes["all"], factors, num_bins=64).score < 0.9


def test_constant_latents_and_factors_do_not_count():
    factors = np.random.default_rng(0).integers(4, size=(2_000, 2)) * [1, 0]
    found = min_suf(np.concatenate([factors, factors * 0], axis=1) * 0.5, factors)
    assert np.isclose(found.score, 1)
    assert found.per_latent[1:] == (0, 0, 0)
    assert min_suf(factors * 0, factors).score == 0


def test_a_derived_factor_must_exist():
    with pytest.raises(UserError, match="factor 5 cannot be derived: there are 2"):
        min_suf(np.zeros((10, 2)), np.zeros((10, 2), int), derived=(5,))
