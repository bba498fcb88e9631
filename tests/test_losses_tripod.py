"""Tripod's terms: the kernel-based multi-information of codes, and the curvature of a decoder."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lddr import losses
from lddr.losses import DISTANCE


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def information(z):
    return losses.multi_information(z, losses.deviation(z)).item()


def silverman(batch, latents):
    return (4 / (latents + 2)) ** (1 / (latents + 4)) * batch ** (-1 / (latents + 4))


def by_loops(z, deviation):
    """Every density as a mean of scipy's normal densities."""
    batch, latents = z.shape
    narrow = deviation * silverman(batch, latents)
    total = 0.0
    for code in z:
        joint = np.mean([stats.norm.pdf(code, other, narrow).prod() for other in z])
        marginals = [np.mean(stats.norm.pdf(code[k], z[:, k], deviation[k])) for k in range(latents)]
        total += math.log(joint) - np.log(marginals).sum()
    return total / batch


def expected_of_normals(covariance, batch):
    """What the estimate tends to, of codes from a normal distribution: kernels widen the densities."""
    latents = len(covariance)
    wide = covariance + silverman(batch, latents) ** 2 * np.diag(covariance.diagonal())
    joint = -0.5 * (np.linalg.slogdet(wide)[1] + np.trace(np.linalg.solve(wide, covariance)))
    return joint + 0.5 * (np.log(2 * covariance.diagonal()) + 0.5).sum()  # twice the variance for the marginals


@pytest.mark.parametrize(("batch", "latents"), [(2, 1), (7, 2), (16, 5)])
def test_multi_information_is_that_of_loops_over_scipys_densities(batch, latents):
    z, deviation = normal(batch, latents) * torch.arange(1.0, latents + 1), torch.rand(latents).double() + 0.5
    assert math.isclose(losses.multi_information(z, deviation).item(), by_loops(z.numpy(), deviation.numpy()))


def test_its_marginals_and_joint_are_scipys_kernel_estimates():
    z = normal(40, 1)
    marginal = stats.gaussian_kde(z[:, 0].numpy(), bw_method=np.sqrt(39 / 40))  # its deviation divides by 39
    joint = stats.gaussian_kde(z[:, 0].numpy(), bw_method=np.sqrt(39 / 40) * silverman(40, 1))
    points = z[:, 0].numpy()
    deviation = z.std(0, correction=0)
    expected = joint.logpdf(points).mean() - marginal.logpdf(points).mean()
    assert math.isclose(losses.multi_information(z, deviation).item(), expected, rel_tol=1e-9)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9, 0.99])
def test_multi_information_of_normal_codes_tends_to_its_analytic_limit(correlation):
    covariance = np.array([[1.0, 2 * correlation], [2 * correlation, 4.0]])
    z = normal(2000, 2) @ torch.from_numpy(np.linalg.cholesky(covariance)).T
    assert information(z) == pytest.approx(expected_of_normals(covariance, 2000), abs=0.05)


def test_latents_that_copy_each_other_have_more_than_independent_ones():
    independent = normal(500, 3)
    copies = independent[:, :1].expand(-1, 3)
    assert information(copies) > information(independent) + 1.5
    assert information(independent) < 0.5


@given(st.integers(0, 100), st.integers(2, 8), st.integers(1, 4))
def test_multi_information_does_not_know_order_scale_or_place(seed, batch, latents):
    z = normal(batch, latents, seed=seed)
    found = information(z)
    generator = torch.Generator().manual_seed(seed)
    images, order = torch.randperm(batch, generator=generator), torch.randperm(latents, generator=generator)
    assert math.isclose(information(z[images]), found, abs_tol=1e-9)
    assert math.isclose(information(z[:, order]), found, abs_tol=1e-9)
    assert math.isclose(information(z * 100 + 5), found, abs_tol=1e-3)  # 1e-6 is added to the deviation


def test_a_deviation_of_nothing_has_no_slope():
    codes = torch.tensor([[1.0, 2.0], [1.0, 3.0]], requires_grad=True)
    found = losses.deviation(codes)
    assert torch.allclose(found, torch.tensor([1e-6, 0.5]), atol=2e-7)
    (slope,) = torch.autograd.grad(found.sum(), codes)
    assert torch.equal(slope, torch.tensor([[0.0, -0.5], [0.0, 0.5]]))


HESSIAN = normal(4, 4, 5, seed=1)  # of five outputs; symmetric below
HESSIAN = HESSIAN + HESSIAN.transpose(0, 1)


def quadratic(z):  # (…, 4) → (…, 5)
    return torch.einsum("...i,ijo,...j->...o", z, HESSIAN, z) / 2 + z[..., :1]


def smooth(z):
    weights = normal(4, 5, seed=2) / 2
    return torch.tanh(z @ weights).cumsum(-1)


def variances(function, z, deviation, seeds):
    """Mean over directions, images and outputs of half the squared difference of two second differences, by kind."""
    total = torch.zeros(2, dtype=torch.float64)
    for seed in range(seeds):
        drawn = losses.directions(z.shape, torch.Generator().manual_seed(seed)).double()
        around = losses.neighbours(z, deviation, drawn).unflatten(0, (2, 2, 2, -1))
        second = (function(around).sum(2) - 2 * function(z)) / DISTANCE**2
        total += second.var(1).mean((1, 2)) / seeds
    return total


@pytest.mark.parametrize(("function", "tolerance"), [(quadratic, 0.03), (smooth, 0.06)])
def test_the_variances_are_twice_the_squared_entries_of_the_hessian_by_autograd(function, tolerance):
    z, deviation = normal(6, 4), torch.tensor([0.5, 1.0, 0.3, 0.8]).double()
    expected = torch.zeros(2, dtype=torch.float64)
    for code in z:
        for output in range(5):
            exact = torch.autograd.functional.hessian(lambda at, o=output: function(at)[o], code)
            squares = (exact * deviation[:, None] * deviation).square()
            expected += 2 * torch.stack([squares.sum() - squares.diagonal().sum(), squares.sum()]) / 30
    found = variances(function, z, deviation, 1500)
    assert torch.allclose(found, expected, rtol=tolerance)


def test_the_ratio_is_that_of_the_variances():
    z, deviation = normal(6, 4), torch.ones(4).double()
    drawn = losses.directions(z.shape, torch.Generator().manual_seed(0)).double()
    mixed, whole = variances(smooth, z, deviation, seeds=1)
    assert torch.isclose(losses.hessian_ratio(smooth(losses.neighbours(z, deviation, drawn))), mixed / whole)


def test_latents_that_add_up_cost_nothing_and_a_flat_decoder_neither():
    z, deviation = normal(6, 4), torch.ones(4).double()
    around = losses.neighbours(z, deviation, losses.directions(z.shape, torch.Generator().manual_seed(0)).double())
    assert losses.hessian_ratio(around**2) < 1e-20  # no entry off the diagonal
    assert losses.hessian_ratio(around @ normal(4, 3)) < 1e-10  # no curvature: 0 / 1e-10
    mixed = around[:, :1] * around[:, 1:2]
    assert losses.hessian_ratio(mixed) > 0.1


def test_directions_are_signs_and_normal_numbers():
    signs, normals = losses.directions((500, 10), torch.Generator().manual_seed(0))
    assert set(signs.unique().tolist()) == {-1.0, 1.0}
    assert abs(signs.mean()) < 0.03
    assert stats.kstest(normals.flatten(), "norm").pvalue > 1e-3
