import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import distributions

from lddr import losses
from lddr.errors import UserError
from lddr.likelihoods import SMALLEST_SCALE, Bernoulli, GaussianLikelihood, LaplaceLikelihood, likelihoods

NAMES = list(likelihoods)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def some(scale=3.0, dtype=torch.float64):
    outputs = scale * torch.randn(6, 2, 4, 4, generator=seeded(), dtype=dtype)
    return outputs, torch.rand(6, 2, 4, 4, generator=seeded(1), dtype=dtype)


@pytest.fixture(params=NAMES)
def likelihood(request):
    return likelihoods[request.param]().build().double()


def test_they_are_the_four_that_are_documented():
    assert set(NAMES) == {"bernoulli", "continuous_bernoulli", "gaussian", "laplace"}


@pytest.mark.parametrize("scale", [0.02, 0.1, 1.0])
@pytest.mark.parametrize(
    ("kind", "expected"), [(GaussianLikelihood, distributions.Normal), (LaplaceLikelihood, distributions.Laplace)]
)
def test_location_and_scale_against_torch(kind, expected, scale):
    outputs, images = some(0.5)
    found = kind(scale=scale).double().pixels(outputs, images)
    torch.testing.assert_close(found, -expected(outputs, scale).log_prob(images), rtol=1e-6, atol=1e-6)


def test_bernoulli_against_torch():
    outputs, images = some()
    expected = -distributions.Bernoulli(logits=outputs, validate_args=False).log_prob(images)
    torch.testing.assert_close(likelihoods["bernoulli"]().build().pixels(outputs, images), expected)


@pytest.mark.parametrize(
    "scale", [1e-4, 0.01, 0.1, 3.0, 8.0]
)  # torch goes through probabilities, which are near 1 beyond
def test_continuous_bernoulli_against_torch(scale):
    outputs, images = some(scale)
    likelihood, expected = (
        likelihoods["continuous_bernoulli"]().build(),
        distributions.ContinuousBernoulli(logits=outputs),
    )
    torch.testing.assert_close(likelihood.pixels(outputs, images), -expected.log_prob(images), rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(likelihood.mean(outputs), expected.mean, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_continuous_bernoulli_is_a_truncated_exponential(scale):
    """p(x) = l eˡˣ / (eˡ - 1), one number at a time; holds for logits at which torch's own is inexact."""

    def exact(logit, pixel):
        return max(logit, 0) - logit * pixel + math.log((1 - math.exp(-abs(logit))) / abs(logit))

    outputs, images = some(scale)
    pairs = zip(outputs.flatten().tolist(), images.flatten().tolist(), strict=True)
    expected = torch.tensor([exact(*pair) for pair in pairs], dtype=torch.float64).view_as(images)
    found = likelihoods["continuous_bernoulli"]().build().pixels(outputs, images)
    torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("logit", [-30.0, -2.0, -0.0201, -0.0199, 0.0, 0.0199, 0.0201, 5.0])
def test_continuous_bernoulli_is_a_density_with_this_mean(logit):
    """Integrals over [0, 1] by the trapezoidal rule, on both sides of where the Taylor series begins."""
    pixels = torch.linspace(0, 1, 100_001, dtype=torch.float64)
    outputs = torch.full_like(pixels, logit)
    likelihood = likelihoods["continuous_bernoulli"]().build()
    density = (-likelihood.pixels(outputs, pixels)).exp()
    assert torch.trapezoid(density, pixels).item() == pytest.approx(1, abs=1e-6)
    assert torch.trapezoid(density * pixels, pixels).item() == pytest.approx(
        likelihood.mean(outputs)[0].item(), abs=1e-5
    )


def test_the_mean_and_its_outputs_are_inverses(likelihood):
    pixels = torch.linspace(0.001, 0.999, 101, dtype=torch.float64)
    torch.testing.assert_close(likelihood.mean(likelihood.outputs_of(pixels)), pixels, rtol=1e-6, atol=1e-6)
    black_and_white = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert likelihood.outputs_of(black_and_white).isfinite().all()
    torch.testing.assert_close(
        likelihood.mean(likelihood.outputs_of(black_and_white)), black_and_white, rtol=0, atol=2e-3
    )


def test_expected_pixels_are_pixels(likelihood):
    outputs, _ = some(50.0)
    mean = likelihood.mean(outputs)
    assert mean.shape == outputs.shape
    assert 0 <= mean.min() <= mean.max() <= 1


def test_the_loss_is_the_mean_over_images_of_the_sum_over_pixels(likelihood):
    outputs, images = some()
    pixels = likelihood.pixels(outputs, images)
    assert pixels.shape == images.shape
    torch.testing.assert_close(likelihood.per_image(outputs, images), pixels.sum((1, 2, 3)))
    torch.testing.assert_close(likelihood(outputs, images), pixels.sum() / len(images))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite(likelihood, dtype):
    likelihood = likelihood.to(dtype)
    outputs = torch.tensor([-300.0, -20.0, -1.0, -0.021, -0.019, 0.0, 0.019, 0.021, 1.0, 20.0, 300.0], dtype=dtype)
    for pixel in (0.0, 0.3, 1.0):
        leaf = outputs.clone().requires_grad_()
        likelihood(leaf.view(1, -1), torch.full_like(outputs, pixel).view(1, -1)).backward()
        assert leaf.grad.isfinite().all()
    assert all(weight.grad.isfinite() for weight in likelihood.parameters())


def test_gradients_are_those_of_finite_differences(likelihood):
    outputs, images = (each[:2, :, :2, :2] for each in some())
    assert torch.autograd.gradcheck(lambda given: likelihood.pixels(given, images), outputs.clone().requires_grad_())


def test_no_reconstruction_is_better_than_a_copy_and_the_mean_image_is_the_best_constant(likelihood):
    _, images = some()
    images = 0.05 + 0.9 * images
    copies = likelihood.of_copies(images)
    for seed in range(5):
        other = (images + 0.05 * torch.randn(images.shape, generator=seeded(seed), dtype=images.dtype)).clamp(
            0.01, 0.99
        )
        assert (likelihood.per_image(likelihood.outputs_of(other), images) > copies).all()
    assert likelihood.of_mean(images) > copies.mean()
    assert likelihood.contrast(images) == pytest.approx(likelihood.of_mean(images) - copies.mean().item())
    constant = likelihood.outputs_of(images.mean(0, keepdim=True)).expand_as(images)
    assert likelihood.of_mean(images) == pytest.approx(likelihood(constant, images).item(), rel=1e-6)


def test_a_bernoulli_copy_costs_its_entropy():
    _, images = some()
    likelihood = likelihoods["bernoulli"]().build()
    assert torch.equal(likelihood.of_copies(images), losses.bernoulli_entropy(images))
    assert (
        likelihood.contrast(images)
        == losses.mean_picture(images) - losses.bernoulli_entropy(images.double()).mean().item()
    )


@pytest.mark.parametrize("kind", [GaussianLikelihood, LaplaceLikelihood])
def test_a_learned_scale_moves_to_that_of_the_errors(kind):
    """The best σ is the root of the mean squared error, the best b the mean absolute error."""
    outputs, images = some(0.3)
    error = images - outputs
    best = error.square().mean().sqrt() if kind is GaussianLikelihood else error.abs().mean()
    likelihood = kind(scale=float(best)).double()
    (slope,) = torch.autograd.grad(likelihood(outputs, images), likelihood.log_scale)
    assert abs(slope.item()) < 1e-4
    for factor in (0.9, 1.1):
        assert kind(scale=factor * float(best)).double()(outputs, images) > likelihood(outputs, images)


@pytest.mark.parametrize("kind", [GaussianLikelihood, LaplaceLikelihood])
def test_a_scale_is_learned_or_fixed_and_never_vanishes(kind):
    assert [name for name, _ in kind().named_parameters()] == ["log_scale"]
    fixed = kind(learn_scale=False)
    assert (list(fixed.parameters()), dict(fixed.state_dict())) == ([], {})  # a setting, not a weight
    assert fixed.scale.item() == pytest.approx(0.1)
    with torch.no_grad():
        kept = kind()
        kept.log_scale.fill_(-50.0)
    assert kept.scale.item() == pytest.approx(SMALLEST_SCALE)
    assert math.isfinite(kept(*some()).item())
    with pytest.raises(UserError, match="scale must be more than 0, not 0"):
        kind(scale=0)


LIKELIHOOD = Bernoulli()


def both(logits, images, weight=1.0):
    """Value and gradient in one visit, and those of the plain formula."""
    for function in (LIKELIHOOD, losses.bernoulli_reconstruction):
        leaf = logits.clone().requires_grad_()
        value = function(leaf, images)
        (weight * value).backward()
        yield value.detach(), leaf.grad


@given(st.floats(0.01, 300), st.floats(-5, 5), st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_value_and_gradient_are_those_of_the_plain_formula(scale, weight, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = scale * torch.randn(3, 2, 4, 4, generator=generator, dtype=torch.float64)
    images = torch.rand(3, 2, 4, 4, generator=generator, dtype=torch.float64)
    (value, gradient), (expected, slopes) = both(logits, images, weight)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(gradient, slopes, rtol=1e-12, atol=1e-15)


def test_pictures_that_are_certain_cost_nothing_and_wrong_ones_their_logit():
    images = torch.tensor([0.0, 1.0]).expand(2, 1, 2, 2)
    certain = torch.where(images > 0, 200.0, -200.0)
    (value, gradient), _ = both(certain, images)
    assert value == 0
    assert not gradient.any()
    assert LIKELIHOOD(-certain, images) == 4 * 200


def test_single_precision_agrees_with_double():
    generator = torch.Generator().manual_seed(0)
    logits, images = 8 * torch.randn(8, 3, 16, 16, generator=generator), torch.rand(8, 3, 16, 16, generator=generator)
    value = LIKELIHOOD(logits, images)
    assert value.item() == pytest.approx(losses.bernoulli_reconstruction(logits.double(), images.double()).item(), 1e-5)


def test_what_is_no_number_stays_none():
    logits = torch.tensor([[[[float("nan"), 1.0]]]], requires_grad=True)
    assert LIKELIHOOD(logits, torch.zeros(1, 1, 1, 2)).isnan()


def test_it_stays_in_channels_last():
    logits, images = (torch.rand(4, 3, 8, 8).to(memory_format=torch.channels_last) for _ in range(2))
    (_, gradient), _ = both(logits, images)
    assert gradient.stride() == logits.stride()


def test_half_precision_takes_the_plain_way():
    logits = torch.randn(2, 1, 4, 4).bfloat16()
    images = torch.rand(2, 1, 4, 4)
    assert torch.equal(LIKELIHOOD(logits, images), losses.bernoulli_reconstruction(logits, images))
