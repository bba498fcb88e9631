"""The terms about dependence between latents: cross densities, total correlation, covariance, density ratio."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.distributions import Normal
from torch.nn import functional

from lddr import losses
from tests.exact import exact_total_correlation

BATCH, LATENTS, CATEGORIES = 5, 3, 4


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


def permuted_latents(z: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return losses.permute_latents(z, losses.permutations(z.shape, generator))


def posterior(kind: str, latents: int, categories: int, batch: int = 8) -> torch.Tensor:
    """Probabilities (batch, latents, categories) whose latents share much, something or nothing over the batch."""
    if kind == "independent":
        return normal(1, latents, categories).softmax(-1).expand(batch, -1, -1)
    if kind == "dependent":  # every latent encodes nearly the same about the image
        logits = 4 * functional.one_hot(torch.arange(batch) % categories, categories).double()
        return logits[:, None].expand(-1, latents, -1).softmax(-1)
    return (2 * normal(batch, latents, categories)).softmax(-1)


def enumerated_total_correlation(probabilities: torch.Tensor) -> float:
    """Σ q(z) log(q(z) / Π q(z_i)) by a loop over all categories of all latents."""
    table = probabilities.numpy()
    _, latents, categories = table.shape
    total = 0.0
    for combination in itertools.product(range(categories), repeat=latents):
        chosen = np.stack([table[:, latent, category] for latent, category in enumerate(combination)])
        joint, marginals = chosen.prod(0).mean(), chosen.mean(1).prod()
        total += joint * math.log(joint / marginals) if joint > 0 else 0.0
    return total


def all_combinations(latents: int, categories: int) -> torch.Tensor:  # (combinations, latents, categories) one-hot
    combinations = torch.cartesian_prod(*[torch.arange(categories)] * latents)
    return functional.one_hot(combinations, categories).double()


SIZES = pytest.mark.parametrize(("latents", "categories"), [(2, 3), (2, 4), (3, 3), (3, 4)])
KINDS = pytest.mark.parametrize("kind", ["independent", "mixed", "dependent"])


# log q(z | x')


def test_gaussian_cross_densities_are_those_of_torch():
    z, mean, log_variance = normal(BATCH, LATENTS), normal(BATCH, LATENTS, seed=1), normal(BATCH, LATENTS, seed=2)
    cross = losses.gaussian_cross_log_density(z, mean, log_variance)
    assert cross.shape == (BATCH, BATCH, LATENTS)
    for sample, image, latent in np.ndindex(*cross.shape):
        density = Normal(mean[image, latent], (log_variance[image, latent] / 2).exp())
        torch.testing.assert_close(cross[sample, image, latent], density.log_prob(z[sample, latent]))


def test_categorical_cross_probabilities_of_hard_samples_are_looked_up_and_of_soft_ones_averaged():
    table = normal(BATCH, LATENTS, CATEGORIES).log_softmax(-1)
    soft = normal(BATCH, LATENTS, CATEGORIES, seed=1).softmax(-1)
    hard = losses.categorical_cross_log_probability(losses.straight_through(soft), table, None)
    relaxed = losses.categorical_cross_log_probability(soft, table, None)
    for sample, image, latent in np.ndindex(BATCH, BATCH, LATENTS):
        assert hard[sample, image, latent] == table[image, latent, soft[sample, latent].argmax()]
        torch.testing.assert_close(relaxed[sample, image, latent], (soft[sample, latent] * table[image, latent]).sum())


def test_masked_categories_are_left_out_of_cross_probabilities():
    active = torch.tensor([[True, False, True, True], [False, True, False, False], [True, True, False, True]])
    logits, noise = normal(BATCH, LATENTS, CATEGORIES), normal(BATCH, LATENTS, CATEGORIES, seed=1)
    soft = losses.gumbel_softmax(logits, noise, 1.0, active)
    table = losses.masked_log_softmax(logits, active)
    cross = losses.categorical_cross_log_probability(soft, table, active)
    for sample, image, latent in np.ndindex(BATCH, BATCH, LATENTS):
        kept = active[latent]
        expected = (soft[sample, latent, kept] * table[image, latent, kept]).sum()
        torch.testing.assert_close(cross[sample, image, latent], expected)


# total correlation


@SIZES
@KINDS
def test_exact_total_correlation_is_that_of_a_loop_over_all_combinations(latents, categories, kind):
    probabilities = posterior(kind, latents, categories)
    exact = exact_total_correlation(probabilities).item()
    assert exact == pytest.approx(enumerated_total_correlation(probabilities), abs=1e-12)
    assert exact == pytest.approx(0, abs=1e-12) if kind == "independent" else exact > 0.01


@pytest.mark.parametrize("latents", [1, 2, 3, 4, 5])
def test_exact_total_correlation_of_copies_counts_every_copy(latents):
    copies = torch.eye(CATEGORIES).double()[:, None].expand(-1, latents, -1)
    expected = (latents - 1) * math.log(CATEGORIES)
    assert exact_total_correlation(copies).item() == pytest.approx(expected, abs=1e-12)


@SIZES
@KINDS
def test_the_estimate_is_exact_in_expectation(latents, categories, kind):
    probabilities = posterior(kind, latents, categories)
    batch, expected = len(probabilities), 0.0
    for combination in all_combinations(latents, categories):  # E over z ~ q(z): every z, weighted by q(z)
        sample = combination.expand(batch, -1, -1)
        cross = losses.categorical_cross_log_probability(sample, probabilities.log(), None)
        weight = (probabilities * combination).sum(-1).prod(-1).mean()
        expected += (weight * losses.total_correlation(cross)).item()
    assert expected == pytest.approx(exact_total_correlation(probabilities).item(), abs=1e-12)


@SIZES
@KINDS
def test_the_estimate_from_draws_has_the_right_mean(latents, categories, kind):
    probabilities = posterior(kind, latents, categories)
    logits, estimates = probabilities.log().repeat(25, 1, 1), []  # more samples of the same aggregate posterior
    for gumbel in losses.gumbel_noise((160, *logits.shape), seeded(3), dtype=torch.float64):
        sample = losses.straight_through(losses.gumbel_softmax(logits, gumbel, 1.0))
        cross = losses.categorical_cross_log_probability(sample, logits, None)
        estimates.append(losses.total_correlation(cross).item())
    bound = 4 * np.std(estimates) / math.sqrt(len(estimates)) + 1e-12
    assert bound < 0.05
    assert np.mean(estimates) == pytest.approx(exact_total_correlation(probabilities).item(), abs=bound)


def test_gaussian_total_correlation_is_that_of_the_integral():
    mean, log_variance = torch.tensor([[-1.0, -1.5], [1.0, 1.5]]).double(), torch.tensor([[0.0, -1.0]] * 2).double()
    axis = torch.linspace(-9, 9, 400, dtype=torch.float64)
    pieces = Normal(mean, (log_variance / 2).exp()).log_prob(axis[:, None, None]).exp()  # (axis, image, latent)
    joint = torch.einsum("ac,bc->ab", pieces[..., 0], pieces[..., 1]) / 2
    product = torch.outer(pieces[..., 0].mean(1), pieces[..., 1].mean(1))
    integral = ((joint * (joint / product).log()).sum() * (axis[1] - axis[0]) ** 2).item()
    mean, log_variance = mean.repeat(50, 1), log_variance.repeat(50, 1)  # the same aggregate posterior
    estimates = [
        losses.total_correlation(losses.gaussian_cross_log_density(z, mean, log_variance)).item()
        for z in mean + (log_variance / 2).exp() * normal(400, 100, 2)
    ]
    bound = 4 * np.std(estimates) / math.sqrt(len(estimates))
    assert bound < 0.02 < integral
    assert np.mean(estimates) == pytest.approx(integral, abs=bound)


def test_gaussian_posteriors_that_ignore_the_image_have_none():
    mean, log_variance = normal(1, LATENTS).expand(BATCH, -1), normal(1, LATENTS, seed=1).expand(BATCH, -1)
    cross = losses.gaussian_cross_log_density(normal(BATCH, LATENTS, seed=2), mean, log_variance)
    assert losses.total_correlation(cross).item() == pytest.approx(0, abs=1e-12)


def test_gaussian_posteriors_far_apart_have_all_there_is():
    mean = 1000.0 * torch.arange(BATCH).double()[:, None].expand(-1, LATENTS)
    cross = losses.gaussian_cross_log_density(mean, mean, torch.zeros_like(mean))
    assert losses.total_correlation(cross).item() == pytest.approx((LATENTS - 1) * math.log(BATCH))


def test_the_minibatch_weighted_estimator_differs_by_the_constant_of_the_docstring():
    cross, images = normal(BATCH, BATCH, LATENTS), 737_280
    log_joint = (cross.sum(-1).exp().sum(1) / (images * BATCH)).log()
    log_marginals = (cross.exp().sum(1) / (images * BATCH)).log().sum(-1)
    weighted = (log_joint - log_marginals).mean().item()
    assert weighted == pytest.approx(losses.total_correlation(cross).item() + (LATENTS - 1) * math.log(images))


# DIP


def test_covariance_is_that_of_numpy_divided_by_the_batch_size():
    codes = normal(BATCH, LATENTS) + 3
    np.testing.assert_allclose(losses.covariance(codes).numpy(), np.cov(codes.numpy().T, bias=True))


def test_squared_correlations_are_those_of_numpy():
    left, right = normal(BATCH, 3), normal(BATCH, 2, seed=1)
    left[:, 2] = 7 - 2 * right[:, 1]
    found = losses.squared_correlations(1 + 10 * left, right)
    whole = np.corrcoef(left.numpy().T, right.numpy().T)
    np.testing.assert_allclose(found.numpy(), whole[:3, 3:] ** 2, rtol=1e-6, atol=1e-9)
    assert found[2, 1].item() == pytest.approx(1)


def test_a_constant_is_correlated_with_nothing_and_has_a_gradient():
    left = torch.zeros(BATCH, 2, dtype=torch.float64, requires_grad=True)
    losses.squared_correlations(left, normal(BATCH, 3)).sum().backward()
    assert torch.equal(left.grad, torch.zeros_like(left))


def test_dip_penalty_is_that_of_a_loop():
    matrix, expected = normal(LATENTS, LATENTS), 0.0
    for row, column in np.ndindex(LATENTS, LATENTS):
        entry = matrix[row, column].item()
        expected += 7.0 * (entry - 1) ** 2 if row == column else 3.0 * entry**2
    assert losses.dip_penalty(matrix, 3.0, 7.0).item() == pytest.approx(expected)
    assert losses.dip_penalty(torch.eye(LATENTS), 3.0, 7.0) == 0


# FactorVAE


def test_permuting_keeps_every_column_and_breaks_every_row():
    z = torch.arange(600.0).reshape(200, 3)
    permuted = permuted_latents(z, seeded())
    assert torch.equal(permuted.sort(0).values, z)
    origins = (permuted // 3).long()  # the row each entry came from
    for one, other in itertools.combinations(range(3), 2):  # independent permutations of 200 agree in about 1 place
        assert (origins[:, one] == origins[:, other]).sum() < 8
    assert (origins == torch.arange(200)[:, None]).sum() < 15


def test_every_permutation_of_every_latent_is_equally_likely():
    z, counts, generator = torch.arange(3.0)[:, None].expand(-1, 2), {}, seeded(1)
    for _ in range(3600):
        permuted = permuted_latents(z, generator)
        key = tuple(permuted.T.flatten().tolist())
        counts[key] = counts.get(key, 0) + 1
    assert len(counts) == 36  # 3! orders of one latent times 3! of the other
    assert sum((count - 100) ** 2 / 100 for count in counts.values()) < 66.6  # 0.999 quantile of χ² with 35 degrees


def test_permuting_repeats_with_its_generator_and_leaves_z_alone():
    z = normal(BATCH, LATENTS)
    before = z.clone()
    assert torch.equal(permuted_latents(z, seeded(3)), permuted_latents(z, seeded(3)))
    assert torch.equal(z, before)


def test_density_ratio_of_the_perfect_discriminator_is_the_log_ratio():
    joint, product = torch.rand(6, generator=seeded()), torch.rand(6, generator=seeded(1))
    logits = torch.stack([joint.log(), product.log()], 1) + 5  # a common constant does not matter
    torch.testing.assert_close(losses.density_ratio(logits), (joint / product).log().mean())


def test_discriminator_loss_is_the_mean_of_two_cross_entropies():
    joint, permuted = 3 * normal(7, 2), 3 * normal(9, 2, seed=1)
    expected = functional.cross_entropy(joint, torch.zeros(7).long()) / 2
    expected += functional.cross_entropy(permuted, torch.ones(9).long()) / 2
    torch.testing.assert_close(losses.discriminator_loss(joint, permuted), expected)
    assert losses.discriminator_loss(torch.zeros(4, 2), torch.zeros(4, 2)).item() == pytest.approx(math.log(2))


def test_the_discriminator_learns_from_both_samples_and_the_encoder_from_neither():
    z = normal(BATCH, LATENTS).requires_grad_()
    discriminator = normal(LATENTS, 2, seed=1).requires_grad_()
    permuted = permuted_latents(z, seeded())
    assert not permuted.requires_grad
    losses.discriminator_loss(z.detach() @ discriminator, permuted @ discriminator).backward()
    assert z.grad is None
    assert (discriminator.grad != 0).all()
    losses.density_ratio(z @ discriminator.detach()).backward()
    assert (z.grad != 0).all()
