from math import exp

import numpy as np
import pytest

import lddr
from lddr.config import configure
from lddr.data.correlated import Correlated, correlate, rank_correlation
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
        ("a:b=-0.2", "must be a number above 0, not '-0.2'"),
        ("a:b=nan", "must be a number above 0, not 'nan'"),
        ("a:b=inf", "must be a number above 0, not 'inf'"),
        ("a:b=wide", "not 'wide'"),
        ("one:*=0.2", "'one' has one value"),
        ("*:a=0.2", "no factor '\\*' here"),
        ("a:b", "cannot read 'a:b'"),
        ("a:b=0.2,", "cannot read ''"),
        ("a:b=0.2,b:a=0.1", "has a and b twice"),
    ],
)
def test_impossible_correlations_are_refused_in_a_sentence(rule, message):
    with pytest.raises(UserError, match=message) as caught:
        Correlated(GRID, rule)
    assert "\n" not in str(caught.value)


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


@pytest.mark.parametrize("name", ["circles", "pendulum"])
def test_both_distributions_are_scored(name):
    dataset = load_dataset(name, 16)
    first, second = dataset.space.names[:2]
    correlated = correlate(dataset, f"{first}:{second}=0.05")
    assert not isinstance(dataset.space, Correlated)

    def brightness(images):
        halves = images.mean(axis=3)
        return np.stack([halves[:, :, :8].mean(axis=(1, 2)), halves[:, :8].mean(axis=(1, 2))], axis=1)

    plain, biased = (lddr.evaluate(each, brightness, ["mig"], quiet=True) for each in (dataset, correlated))
    assert plain["mig"]["score"] > biased["mig"]["score"] + 0.02, "a latent of one factor informs about the other"


def test_the_rank_correlation_of_a_sample():
    space, generator = load_dataset("circles").space, np.random.default_rng(0)
    widths = [0.02, 0.1, 0.5, 10]
    found = [rank_correlation(space, Correlated(space, f"x:y={w}").sample(generator, 4000), "x", "y") for w in widths]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.99
    assert abs(found[-1]) < 0.05
    table = FactorTable((Factor("a", 4), Factor("b", 4)), [[0, 3], [1, 2], [2, 1], [3, 0], [-1, 3], [3, -1]])
    assert rank_correlation(table, np.arange(6), "a", "b") == pytest.approx(-1)
    with pytest.raises(UserError, match="'a' does not vary in these images"):
        rank_correlation(table, [0, 0, 4], "a", "b")
    with pytest.raises(UserError, match="no factor 'c' here"):
        rank_correlation(table, [0, 1], "a", "c")


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
