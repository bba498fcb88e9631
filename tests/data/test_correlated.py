from math import exp

import numpy as np
import pytest

import lddr
from lddr.config import configure
from lddr.data.correlated import Correlated
from lddr.data.factors import Factor, FactorGrid, FactorTable
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.hardware import Machine

GRID = FactorGrid((Factor("a", 3), Factor("one", 1), Factor("b", 5), Factor("c", 2)), hidden=(Factor("d", 4),))


def drawn(space, rule, count=60_000):
    return space.factors_of(Correlated(space, rule).sample(np.random.default_rng(1), count))


def chi_squared(observed, probabilities):
    expected = observed.sum() * probabilities / probabilities.sum()
    return ((observed - expected) ** 2 / expected).sum()


def test_pairs_of_values_have_the_published_probabilities():
    rows = drawn(GRID, "a:b=0.3")
    observed = np.histogram2d(rows[:, 0], rows[:, 2], bins=(3, 5), range=((0, 3), (0, 5)))[0]
    alpha, sigma = 2 / 4, 0.3 * 2  # on the numbers of a, which are at most 2, with those of b at most 4
    published = np.array([[exp(-((i - alpha * j) ** 2) / (2 * sigma**2)) for j in range(5)] for i in range(3)])
    assert chi_squared(observed, published) < 45  # 14 degrees of freedom: more than that once in 10^4


def test_other_factors_and_hidden_ones_stay_uniform_and_independent():
    images = Correlated(GRID, "a:b=0.1").sample(np.random.default_rng(1), 60_000)
    values = GRID.values_of(images)
    others = np.bincount(values[:, 3] * 4 + values[:, 4], minlength=8)
    assert chi_squared(others, np.ones(8)) < 30  # 7 degrees of freedom
    assert abs(np.corrcoef(values[:, 0], values[:, 3])[0, 1]) < 0.02


@pytest.mark.parametrize(("rule", "pairs"), [("b:*=0.1", [(2, 0), (2, 3)]), ("a:b=0.1,c:b=0.1", [(0, 2), (3, 2)])])
def test_one_factor_is_correlated_with_several(rule, pairs):
    correlations = np.corrcoef(drawn(GRID, rule)[:, [0, 2, 3]].T)
    assert (correlations > 0.8).all()
    assert list(Correlated(GRID, rule).pairs) == [tuple(sorted(pair)) for pair in pairs]


def test_a_wide_correlation_is_uniform_and_a_narrow_one_is_a_line():
    assert abs(np.corrcoef(drawn(GRID, "a:b=100").T[[0, 2]])[0, 1]) < 0.02
    narrow = drawn(GRID, "a:b=0.001", 1000)
    assert (narrow[:, 2] == 2 * narrow[:, 0]).all()


def test_images_with_one_factor_held_follow_the_conditional_distribution():
    space = Correlated(GRID, "a:b=0.3")
    held = GRID.factors_of(space.sample_with(np.random.default_rng(0), 0, np.full(20_000, 2)))
    assert (held[:, 0] == 2).all()
    conditional = np.array([exp(-((1 - j / 4) ** 2) / (2 * 0.09)) for j in range(5)])
    assert chi_squared(np.bincount(held[:, 2], minlength=5), conditional) < 25  # 4 degrees of freedom
    other = GRID.factors_of(space.sample_with(np.random.default_rng(0), 3, np.ones((100, 2), int)))
    assert other.shape == (100, 2, 4)
    assert (other[..., 3] == 1).all()


def test_tables_of_factors_are_sampled_by_weight_without_unlabelled_images():
    table = FactorTable((Factor("a", 2), Factor("b", 2)), [[0, 0], [0, 1], [1, 1], [1, 1], [1, -1]])
    images = Correlated(table, "a:b=0.5").sample(np.random.default_rng(0), 40_000)
    assert chi_squared(np.bincount(images, minlength=5)[:4], np.array([1, exp(-2), 1, 1])) < 25
    assert images.max() == 3


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("a:x=0.2", "no factor 'x' here"),
        ("a:one=0.2", "'one' has one value"),
        ("a:a=0.2", "cannot be correlated with itself"),
        ("a:b=0", "must be a number above 0, not '0'"),
        ("a:b=wide", "not 'wide'"),
        ("a:b", "cannot read 'a:b'"),
        ("a:b=0.2,", "cannot read ''"),
        ("a:b=0.2,b:a=0.1", "has a and b twice"),
    ],
)
def test_impossible_correlations_are_refused_in_a_sentence(rule, message):
    with pytest.raises(UserError, match=message):
        Correlated(GRID, rule)


def test_tables_without_a_possible_image_are_refused():
    two = Factor("a", 2), Factor("b", 2)
    with pytest.raises(UserError, match="no image has values that"):
        Correlated(FactorTable(two, [[0, -1], [-1, 1]]), "a:b=0.2")
    with pytest.raises(UserError, match="no image has values that"):
        Correlated(FactorTable(two, [[0, 1], [1, 0]]), "a:b=0.01")
    with pytest.raises(UserError, match="there are no factors to correlate"):
        Correlated(FactorTable((), np.zeros((3, 0), int)), "a:b=0.2")
    with pytest.raises(UserError, match="combinations of values, more than"):
        Correlated(FactorGrid((Factor("a", 10_000), Factor("b", 10_000))), "a:b=0.2")


def test_the_name_of_a_run_knows_the_correlation_and_others_keep_theirs():
    plain, correlated = configure("vae", "circles"), configure("vae", "circles", correlate="x:y=0.2")
    assert configure("vae", "circles", correlate="none").run_name == plain.run_name
    assert correlated.fingerprint != plain.fingerprint
    assert type(plain).from_dict(correlated.as_dict()) == correlated


def test_training_draws_correlated_images_and_mistakes_write_nothing(tmp_path, monkeypatch):
    seen = []
    draw = Correlated.sample

    def sample(self, generator, count):
        seen.append(draw(self, generator, count))
        return seen[-1]

    monkeypatch.setattr(Correlated, "sample", sample)
    options = {"steps": 3, "resolution": 16, "machine": Machine(quiet=True)}
    lddr.train("circles", "vae", correlate="x:y=0.05", out=tmp_path / "runs", **options)
    factors = load_dataset("circles").space.factors_of(np.concatenate(seen))
    assert len(factors) >= 3 * 64
    assert np.corrcoef(factors.T)[0, 1] > 0.9
    with pytest.raises(UserError, match="no factor 'hue' here"):
        lddr.train("circles", "vae", correlate="x:hue=0.2", out=tmp_path / "other", **options)
    with pytest.raises(UserError, match="cannot have correlated factors"):
        lddr.train("circles", "ada-gvae", correlate="x:y=0.2", out=tmp_path / "other", **options)
    assert not list((tmp_path / "other").glob("*"))
