"""Single-neuron classification and neuron knockout."""

import numpy as np
import pytest
from sklearn.neural_network import MLPClassifier

from lddr.metrics import nk, snc
from lddr.metrics.metric import UndefinedError

pytestmark = [
    pytest.mark.filterwarnings("ignore::lddr.metrics.metric.FewSamplesWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def parts(codes, factors, train=600):
    return codes[:train], factors[:train], codes[train:], factors[train:]


def noisy(samples=900, noise=0.6):
    generator = np.random.default_rng(3)
    factors = generator.integers([2, 3, 4], size=(samples, 3))
    return factors[:, [2, 0, 1]] + noise * generator.normal(size=(samples, 3)), factors


def plain_snc(codes, factors, codes_test, factors_test):
    """The definition in loops, for factors that all vary and latents that are the factors in another order."""
    found = []
    for factor, latent in enumerate((1, 2, 0)):
        values = sorted(set(factors[:, factor]))
        ordered = sorted(codes[:, latent])
        starts = [ordered[len(codes) * place // len(values)] for place in range(1, len(values))]
        predicted = [values[sum(code >= start for start in starts)] for code in codes_test[:, latent]]
        found.append(np.mean(predicted == factors_test[:, factor]))  # bins and values grow together
    return found


def test_snc_is_the_definition():
    given = parts(*noisy())
    found = snc(*given)
    assert found.latents == (1, 2, 0)
    assert np.allclose(found.per_factor, plain_snc(*given))
    assert np.isclose(found.score, np.mean(found.per_factor))
    assert found.chance < found.score < 1


def test_bins_may_stand_for_values_in_any_order():
    factors = np.repeat([0, 1, 2], 300)[:, None]
    codes = np.array([5.0, -1.0, 2.0])[factors]
    assert snc(codes, factors, codes, factors).score == 1


def test_one_latent_is_not_used_for_two_factors():
    generator = np.random.default_rng(0)
    factors = generator.integers(2, size=(1_000, 2))
    codes = (factors[:, [0]] + 2 * factors[:, [1]]).astype(float)  # encodes both, and is the only one
    found = snc(*parts(codes, factors))
    assert sorted(found.latents)[0] == -1
    left = found.latents.index(-1)
    assert abs(found.per_factor[left] - 0.5) < 0.1
    assert found.per_factor[1 - left] > 0.9


def test_knockout_is_the_accuracy_that_only_the_matched_latent_gives():
    given = parts(*noisy(noise=0.1), train=700)
    found = nk(*given, width=32, epochs=40)
    scaled = [(part - given[0].mean(axis=0)) / given[0].std(axis=0) for part in (given[0], given[2])]
    model = MLPClassifier((32,), learning_rate_init=0.01, max_iter=40, random_state=0, alpha=0.0, batch_size=700)
    alone = model.fit(scaled[0][:, [0, 2]], given[1][:, 0]).score(scaled[1][:, [0, 2]], given[3][:, 0])
    assert np.isclose(found.accuracies_without[0], alone)
    assert np.allclose(found.accuracies, 1, atol=0.05)
    assert abs(found.score - (1 - np.mean([1 / 2, 1 / 3, 1 / 4]))) < 0.1


def test_a_copy_of_a_latent_makes_its_knockout_harmless_and_snc_does_not_see_it():
    codes, factors = noisy(noise=0.1)
    doubled = np.concatenate([codes, codes], axis=1)
    assert nk(*parts(doubled, factors), width=16).score < 0.1
    assert snc(*parts(doubled, factors)).score == snc(*parts(codes, factors)).score


def test_without_a_factor_that_varies_there_is_no_score():
    for score in (snc, nk):
        with pytest.raises(UndefinedError, match="more than one value"):
            score(*parts(np.random.default_rng(0).normal(size=(900, 2)), np.zeros((900, 2), int)))
