import math

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from torch.distributions import VonMises as TorchVonMises

from lddr.data.factors import Factor, FactorGrid
from lddr.latents.von_mises import VonMises, VonMisesPosterior, quantile

CONCENTRATIONS = [1e-5, 1e-3, 0.1, 0.5, 1.0, 3.0, 10.0, 12.0, 100.0, 1e3, 1e4]
LATENT = VonMises(num_latents=1)


def posterior_of(mean, kappa):
    """Of tensors of angles and concentrations, which it is differentiable in."""
    length = (torch.sqrt(0.25 + kappa) - 0.5).unsqueeze(1)
    outputs = torch.stack([length * mean.cos().unsqueeze(1), length * mean.sin().unsqueeze(1)], 2)
    return VonMisesPosterior(outputs, LATENT)


def numbers(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def even_noise(count):
    """The midpoints of equal intervals: their mean is an integral over the noise."""
    return ((torch.arange(count, dtype=torch.float64) + 0.5) / count - 0.5).unsqueeze(1)


def angles(sample):
    return torch.atan2(sample.z[:, 1], sample.z[:, 0])


@pytest.mark.parametrize("kappa", CONCENTRATIONS)
def test_kl_and_its_slope_are_those_of_numerical_integration(kappa):
    concentration = numbers(kappa)
    kl = posterior_of(numbers(0.3), concentration).kl
    density, end = stats.vonmises(kappa).pdf, min(math.pi, 12 / math.sqrt(kappa))
    expected = 2 * quad(lambda x: density(x) * math.log(2 * math.pi * density(x)), 0, end, epsabs=1e-13)[0]
    assert kl.item() == pytest.approx(expected, rel=1e-6, abs=1e-9)
    (slope,) = torch.autograd.grad(kl.sum(), concentration)
    moments = [2 * quad(lambda x, k=k: (1 - math.cos(x)) ** k * density(x), 0, end, epsabs=1e-15)[0] for k in (1, 2)]
    assert slope.item() == pytest.approx(kappa * (moments[1] - moments[0] ** 2), rel=1e-4)  # κ · Var[cos x]


def test_kl_in_float32_is_that_in_float64():
    outputs = (
        torch.randn(200, 1, 2, generator=torch.Generator().manual_seed(0)) * torch.logspace(-3, 2, 200)[:, None, None]
    )
    kls = VonMisesPosterior(outputs, LATENT).kl, VonMisesPosterior(outputs.double(), LATENT).kl.float()
    torch.testing.assert_close(*kls, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kappa", CONCENTRATIONS)
def test_samples_have_the_distribution_of_the_posterior(kappa):
    noise = VonMises(num_latents=1).noise(4_000, torch.Generator().manual_seed(3))
    sample = posterior_of(torch.full((4_000,), 0.7), torch.full((4_000,), kappa)).sample(noise)
    assert torch.allclose(sample.z.square().sum(1), torch.ones(4_000), atol=1e-5)
    around = (angles(sample).numpy() - 0.7 + math.pi) % (2 * math.pi) - math.pi
    assert stats.kstest(around, stats.vonmises(kappa).cdf).pvalue > 0.01


@pytest.mark.parametrize("kappa", CONCENTRATIONS)
def test_the_quantile_is_scipys(kappa):
    noise = torch.tensor([-0.499999, -0.4, -1e-3, 0.0, 1e-6, 0.1, 0.3, 0.49, 0.4999999], dtype=torch.float64)
    found = stats.vonmises(kappa).cdf(quantile(noise, torch.full_like(noise, kappa)).numpy())
    tolerance = 1e-9 if kappa < 50 else 2e-5  # beyond, scipy's is an approximation
    assert np.allclose(found, 0.5 + noise.numpy(), atol=tolerance)


def test_the_quantile_tends_to_that_of_a_normal_distribution():
    noise = even_noise(999)[:, 0]
    found = quantile(noise, torch.full_like(noise, 1e8)) * 1e4
    assert np.allclose(found, stats.norm.ppf(0.5 + noise.numpy()), atol=1e-6)


@pytest.mark.parametrize("kappa", [0.01, 0.5, 3.0, 40.0, 500.0])
def test_gradients_of_expectations_are_exact(kappa):
    """E[cos z] = A(κ) cos μ, E[sin z] = A(κ) sin μ, with A = I₁/I₀, and the same for twice the angle with I₂."""
    mean, concentration = numbers(0.4), numbers(kappa)
    noise = even_noise(8_000)
    z = posterior_of(mean.expand(8_000), concentration.expand(8_000)).sample(noise).z
    cosine, sine = z[:, 0], z[:, 1]
    first, second = (
        float(stats.vonmises(kappa).expect(lambda x, k=k: np.cos(k * x), lb=-math.pi, ub=math.pi)) for k in (1, 2)
    )
    ratio_slope = (1 + second) / 2 - first**2  # A' = Var[cos x]
    for function, expected in (
        (cosine, (-first * math.sin(0.4), ratio_slope * math.cos(0.4))),
        (sine, (first * math.cos(0.4), ratio_slope * math.sin(0.4))),
        (cosine.square() - sine.square(), (-2 * second * math.sin(0.8), None)),
    ):
        found = torch.autograd.grad(function.mean(), [mean, concentration], retain_graph=True)
        assert found[0].item() == pytest.approx(expected[0], rel=2e-3, abs=1e-5)
        if expected[1] is not None:
            assert found[1].item() == pytest.approx(expected[1], rel=2e-3, abs=1e-5)


@pytest.mark.parametrize("kappa", [0.05, 2.0, 30.0, 2e3])
def test_samples_move_with_the_concentration_as_finite_differences_say(kappa):
    concentration, noise = numbers(*[kappa] * 9), even_noise(9) * 0.999
    posterior = posterior_of(torch.zeros(9, dtype=torch.float64), concentration)
    (slope,) = torch.autograd.grad(angles(posterior.sample(noise)).sum(), concentration)
    step = 1e-4 * kappa
    moved = [quantile(noise[:, 0], concentration.detach() + side) for side in (step, -step)]
    assert torch.allclose(slope, (moved[0] - moved[1]) / (2 * step), rtol=1e-4, atol=1e-8)


def test_gradients_are_finite_and_bounded_where_there_is_no_direction():
    outputs = torch.tensor([[[0.0, 0.0]], [[1e-20, -1e-20]], [[1e-4, 0.0]], [[300.0, 0.0]]], requires_grad=True)
    posterior = VonMisesPosterior(outputs, LATENT)
    z = posterior.sample(torch.tensor([[0.2], [0.2], [0.2], [0.2]])).z
    (slope,) = torch.autograd.grad((z.sum() + posterior.kl.sum()), outputs)
    assert slope.isfinite().all()
    assert slope.abs().max() < 2


def test_samples_are_a_function_of_the_noise_and_without_noise_the_mean():
    posterior = VonMises(num_latents=3)(torch.randn(5, 6, generator=torch.Generator().manual_seed(0)))
    noise = VonMises(num_latents=3).noise(5, torch.Generator().manual_seed(1))
    assert torch.equal(posterior.sample(noise).z, posterior.sample(noise).z)
    assert torch.allclose(posterior.sample(noise, scale=0.0).z, posterior.expected().z, atol=1e-6)
    assert noise.abs().max() < 0.5


def test_densities_are_those_of_torch():
    latent = VonMises(num_latents=3)
    posterior = latent(3 * torch.randn(5, 6, generator=torch.Generator().manual_seed(0)))
    sample = posterior.sample(latent.noise(5, torch.Generator().manual_seed(1)))
    z = torch.atan2(*sample.z.unflatten(1, (3, 2)).flip(2).unbind(2))
    expected = TorchVonMises(posterior.mean, posterior.concentration).log_prob(z[:, None])
    assert torch.allclose(posterior.cross_log_density(sample), expected, atol=1e-4)


@pytest.mark.parametrize("kappa", CONCENTRATIONS)
def test_the_variance_is_that_of_the_angle(kappa):
    end = min(math.pi, 12 / math.sqrt(kappa))
    expected = 2 * quad(lambda x: x**2 * stats.vonmises(kappa).pdf(x), 0, end, epsabs=1e-13)[0]
    assert posterior_of(numbers(2.0), numbers(kappa)).variance.item() == pytest.approx(expected, rel=1e-5)
    assert posterior_of(numbers(2.0), numbers(1e-9)).variance.item() == pytest.approx(LATENT.prior_variance)


def test_codes_are_angles_and_embed_to_points_on_the_circle():
    latent = VonMises(num_latents=2)
    posterior = latent(torch.tensor([[1.0, 1.0, -3.0, -0.0], [0.0, -2.0, -1.0, 1.0]]))
    expected = torch.tensor([[math.pi / 4, math.pi], [-math.pi / 2, 3 * math.pi / 4]])
    assert torch.allclose(posterior.mean, expected)
    assert torch.allclose(latent.embed(posterior.mean), posterior.expected().z)
    assert torch.allclose(latent.embed(expected + 2 * math.pi), posterior.expected().z, atol=1e-6)
    assert latent.width == 4
    values = latent.values()
    assert values.shape == (2, 16)
    assert torch.allclose(values.diff(dim=1), torch.tensor(math.pi / 8), atol=1e-6)
    assert values[0, -1] == pytest.approx(math.pi)


def test_supervision_is_by_angles_and_the_best_constant_is_the_mean_direction():
    space = FactorGrid((Factor("hue", 8), Factor("turn", 4)))
    latent = VonMises(num_latents=3)
    targets = latent.targets("cosine", np.array([[0, 0], [2, 1], [7, 3]]), space)
    assert torch.allclose(targets, math.pi / 4 * torch.tensor([[0.0, 0], [2, 2], [7, 6]]))
    posterior = latent(latent.embed(torch.cat([targets, torch.zeros(3, 1)], 1)))
    assert latent.errors("cosine", posterior, targets).abs().max() < 1e-6
    assert torch.allclose(latent.errors("cosine", posterior, targets + math.pi), torch.tensor(2.0))
    seen = targets[:, 0]
    constants = torch.linspace(-math.pi, math.pi, 20_001)
    best = (1 - (constants[:, None] - seen).cos()).mean(1).min()
    assert latent.guess("cosine", seen, seen).mean() == pytest.approx(best.item(), abs=1e-6)
