"""The paper's Propositions 1 and 2 and the arguments around them (Sections 3.2 and 3.3, Appendix "Proofs").

The positions are (j - 1)/(m - 1) for j = 1 … m, as the paper defines them, not the j/(m - 1) of its proposition.
"""

import math

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lddr import losses

torch_settings = settings(deadline=None)
seeds = st.integers(0, 2**32)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def places(categories: int) -> torch.Tensor:
    return torch.tensor([(j - 1) / (categories - 1) for j in range(1, categories + 1)], dtype=torch.float64)


def draws_of_f(log_alpha: torch.Tensor, active: torch.Tensor | None, count: int, seed: int) -> torch.Tensor:
    noise = losses.gumbel_noise((count, *log_alpha.shape), seeded(seed), dtype=torch.float64)
    return losses.gumbel_softmax(log_alpha, noise, 1.0, active) @ places(log_alpha.shape[-1])


@st.composite
def alphas(draw):
    """The logarithms of α and which α are not zero: at least two, or the support is a point."""
    categories = draw(st.integers(2, 12))
    chosen = draw(st.sets(st.integers(0, categories - 1), min_size=2, max_size=categories))
    active = torch.zeros(categories, dtype=torch.bool).index_fill(0, torch.tensor(sorted(chosen)), True)
    log_alpha = draw(st.lists(st.floats(-3, 3), min_size=categories, max_size=categories))
    return torch.tensor(log_alpha, dtype=torch.float64), active


def ends(active: torch.Tensor) -> tuple[float, float]:
    reached = places(len(active))[active]
    return reached.min().item(), reached.max().item()


# Proposition 1 (a): the support is the open interval between the outermost active categories


def test_the_positions_are_the_corrected_ones():
    torch.testing.assert_close(losses.positions(0, 1, 64).double(), places(64), rtol=0, atol=1e-7)


@given(alphas(), seeds)
@torch_settings
def test_every_sample_lies_strictly_between_the_outermost_active_categories(given_alphas, seed):
    log_alpha, active = given_alphas
    low, high = ends(active)
    values = draws_of_f(log_alpha, active, 500, seed)
    assert (values > low).all()
    assert (values < high).all()


@given(alphas(), st.floats(0.001, 0.999))
@torch_settings
def test_every_point_between_them_is_reached_by_some_noise(given_alphas, share):
    log_alpha, active = given_alphas
    low, high = ends(active)
    wanted = torch.full_like(log_alpha, 1e-13)  # the proof's z: all on the two ends, up to the interior's sliver
    outermost = active.nonzero().flatten()
    wanted[outermost[0]], wanted[outermost[-1]] = share, 1 - share
    value = losses.gumbel_softmax(log_alpha, wanted.log() - log_alpha, 1.0, active) @ places(len(active))
    assert value.item() == pytest.approx(share * low + (1 - share) * high, abs=1e-11)
    assert low < value < high


@pytest.mark.parametrize("chosen", [(0, 1), (0, 7), (2, 3, 5), (1, 4, 6, 7), tuple(range(8))])
def test_samples_come_close_to_both_ends(chosen):
    active = torch.zeros(8, dtype=torch.bool).index_fill(0, torch.tensor(chosen), True)
    low, high = ends(active)
    values = draws_of_f(torch.zeros(8, dtype=torch.float64), active, 20_000, seed=0)
    margin = 0.02 * (high - low)
    assert values.min() < low + margin
    assert values.max() > high - margin


def test_a_category_without_probability_between_two_others_still_has_density():
    active = torch.tensor([False, True, False, True, False])  # the paper's remark on Figure 2 (a)
    values = draws_of_f(torch.zeros(5, dtype=torch.float64), active, 2000, seed=0)
    near_the_third = (values - 0.5).abs() < 0.125  # as z of the two is uniform here: half of all samples
    assert near_the_third.double().mean().item() == pytest.approx(0.5, abs=4 * math.sqrt(0.25 / 2000))


# Proposition 1 (b): a category that takes all probability takes all samples


def log_alpha_with(probability: float, category: int, categories: int) -> torch.Tensor:
    others = math.log1p(-probability) - math.log(categories - 1)
    log_alpha = torch.full((categories,), others, dtype=torch.float64)
    log_alpha[category] = math.log(probability)
    return log_alpha


@pytest.mark.parametrize("probability", [0.5, 0.9, 0.99, 0.9999])
@pytest.mark.parametrize("epsilon", [0.2, 0.01])
def test_two_categories_approach_one_as_the_logistic_distribution_says(probability, epsilon):
    values = draws_of_f(log_alpha_with(probability, 1, 2), None, 20_000, seed=1)
    within = ((values - 1).abs() < epsilon).double().mean().item()
    odds = probability / (1 - probability) * epsilon / (1 - epsilon)  # P(z < 1 - ε) = 1/(1 + odds)
    expected = odds / (1 + odds)
    assert within == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 20_000))


@given(st.integers(2, 12), st.data(), st.floats(1e-3, 0.5))
@torch_settings
def test_the_chance_to_be_near_the_position_tends_to_one(categories, data, epsilon):
    category = data.draw(st.integers(0, categories - 1))
    shares = []
    for probability in (0.5, 0.99, 1 - 1e-5, 1 - 1e-9):
        values = draws_of_f(log_alpha_with(probability, category, categories), None, 1000, seed=2)
        shares.append(((values - category / (categories - 1)).abs() < epsilon).double().mean().item())
        # the others' sum is at most m - 1 times their largest, and a difference of Gumbels is logistic
        odds = probability / (1 - probability) * epsilon / (categories - 1)
        assert shares[-1] >= odds / (1 + odds) - 4 * math.sqrt(0.25 / 1000)
    assert shares == sorted(shares)  # the same noise, and the more certain category only gains
    assert shares[-1] > 0.99


def test_in_the_limit_all_samples_are_the_position():
    values = draws_of_f(log_alpha_with(1 - 2**-53, 3, 8), None, 1000, seed=3)
    torch.testing.assert_close(values, torch.full_like(values, 3 / 7), rtol=0, atol=1e-9)


# Proposition 2: equal variances can be rotated


@st.composite
def rotations(draw):
    """A rotation by some angle in a plane (i, j) of n latents."""
    latents = draw(st.integers(2, 6))
    first, second = draw(st.permutations(range(latents)))[:2]
    angle = draw(st.floats(0, 2 * math.pi))
    rotation = torch.eye(latents, dtype=torch.float64)
    rotation[first, first] = rotation[second, second] = math.cos(angle)
    rotation[first, second], rotation[second, first] = -math.sin(angle), math.sin(angle)
    return rotation, first, second, angle


def gaussian(latents: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A mean and log-variances, all different, (latents,) each."""
    mean = torch.randn(latents, generator=seeded(seed), dtype=torch.float64)
    return mean, torch.linspace(-2, 1, latents, dtype=torch.float64)


def sigma_points(mean: torch.Tensor, log_variance: torch.Tensor) -> torch.Tensor:  # (2 latents, latents)
    """Samples whose mean and (biased) covariance are exactly those of the Gaussian."""
    offsets = (len(mean) * log_variance.exp()).sqrt().diag()
    return mean + torch.cat([offsets, -offsets])


@given(rotations(), seeds)
@torch_settings
def test_rotating_equal_variances_rotates_the_mean_alone(given_rotation, seed):
    rotation, first, second, _ = given_rotation
    mean, log_variance = gaussian(len(rotation), seed)
    log_variance[second] = log_variance[first]
    samples = sigma_points(mean, log_variance)
    rotated = samples @ rotation.T
    torch.testing.assert_close(losses.covariance(samples), log_variance.exp().diag())
    torch.testing.assert_close(rotated.mean(0), rotation @ mean)
    torch.testing.assert_close(losses.covariance(rotated), log_variance.exp().diag())
    before = losses.gaussian_cross_log_density(samples, mean[None], log_variance[None]).sum(-1)
    after = losses.gaussian_cross_log_density(rotated, (rotation @ mean)[None], log_variance[None]).sum(-1)
    torch.testing.assert_close(after, before)


@given(rotations(), seeds)
@torch_settings
def test_rotating_different_variances_makes_them_covary(given_rotation, seed):
    rotation, first, second, angle = given_rotation
    assume(abs(math.sin(2 * angle)) > 0.01)  # quarter turns only swap the axes
    mean, log_variance = gaussian(len(rotation), seed)
    rotated = sigma_points(mean, log_variance) @ rotation.T
    difference = (log_variance[first].exp() - log_variance[second].exp()).item()
    found = losses.covariance(rotated)[first, second].item()
    assert found == pytest.approx(difference * math.sin(2 * angle) / 2, abs=1e-10)
    assert abs(found) > 1e-4
    before = losses.gaussian_cross_log_density(sigma_points(mean, log_variance), mean[None], log_variance[None]).sum(-1)
    after = losses.gaussian_cross_log_density(rotated, (rotation @ mean)[None], log_variance[None]).sum(-1)
    assert not torch.allclose(after, before, rtol=0, atol=1e-6)


@given(rotations(), seeds)
@torch_settings
def test_the_gaussian_kl_does_not_see_the_rotation(given_rotation, seed):
    rotation, _, _, _ = given_rotation
    mean, log_variance = gaussian(len(rotation), seed)
    kl, rotated = losses.gaussian_kl(mean, log_variance), losses.gaussian_kl(rotation @ mean, log_variance)
    torch.testing.assert_close(rotated.sum(), kl.sum())


# Section 3.2: the KL does not see the order of the categories, the support does


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=12), st.randoms(use_true_random=False))
@torch_settings
def test_the_categorical_kl_does_not_see_a_permutation(logits, random):
    order = torch.tensor(random.sample(range(len(logits)), len(logits)))
    log_probabilities = torch.tensor(logits, dtype=torch.float64).log_softmax(-1)[None, None]
    kl = losses.categorical_kl(log_probabilities, None)
    torch.testing.assert_close(losses.categorical_kl(log_probabilities[..., order], None), kl)


def test_swapping_two_categories_keeps_the_kl_but_not_the_support():
    alpha = torch.tensor([0.0, 0.25, 0.0, 0.45, 0.3, 0.0], dtype=torch.float64)  # as in Figure 2 (a): α³ is zero
    swapped = alpha[[0, 1, 4, 3, 2, 5]]  # (b): α³ ↔ α⁵
    kl, same = (losses.categorical_kl(values.log()[None, None], None).item() for values in (alpha, swapped))
    assert same == pytest.approx(kl, abs=1e-12)
    masked = [losses.categorical_kl(values.log()[None, None], (values > 0)[None]).item() for values in (alpha, swapped)]
    assert masked[0] == pytest.approx(masked[1], abs=1e-12)
    wide, narrow = (draws_of_f(values.log(), values > 0, 20_000, seed=4) for values in (alpha, swapped))
    assert (wide.max() - wide.min()).item() == pytest.approx(3 / 5, abs=0.02)
    assert (narrow.max() - narrow.min()).item() == pytest.approx(2 / 5, abs=0.02)
