import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch.autograd import gradcheck
from torch.distributions import Bernoulli, Categorical, Gumbel, Normal, kl_divergence
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from lddr import losses
from tests.exact import exact_total_correlation

BATCH, LATENTS, CATEGORIES = 5, 3, 4
ACTIVE = torch.tensor([[True, True, True, True], [True, False, True, False], [False, False, False, True]])


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


@st.composite
def masks(draw):
    """Masks (latents, categories) with at least one active category per latent."""
    latents, categories = draw(st.integers(1, 4)), draw(st.integers(1, 8))
    row = st.lists(st.booleans(), min_size=categories, max_size=categories).filter(any)
    return torch.tensor(draw(st.lists(row, min_size=latents, max_size=latents)))


# every term as (function of its differentiable inputs, the shapes of those inputs)
LOGITS = (BATCH, LATENTS, CATEGORIES)
CODES = (BATCH, LATENTS)
TERMS = {
    "reconstruction": (lambda logits, images: losses.bernoulli_reconstruction(logits, images), [(2, 3, 4, 4)] * 2),
    "gaussian_kl": (losses.gaussian_kl, [CODES] * 2),
    "categorical_kl": (lambda x: losses.categorical_kl(x.log_softmax(-1), None), [LOGITS]),
    "masked_kl": (lambda x: losses.categorical_kl(losses.masked_log_softmax(x, ACTIVE), ACTIVE), [LOGITS]),
    "log_softmax": (lambda x: losses.masked_log_softmax(x, None), [LOGITS]),
    "masked_log_softmax": (lambda x: losses.masked_log_softmax(x, ACTIVE)[:, ACTIVE], [LOGITS]),
    "gumbel_softmax": (lambda x, noise: losses.gumbel_softmax(x, noise, 0.7), [LOGITS] * 2),
    "masked_gumbel_softmax": (lambda x, noise: losses.gumbel_softmax(x, noise, 0.7, ACTIVE), [LOGITS] * 2),
    "gaussian_cross": (losses.gaussian_cross_log_density, [CODES] * 3),
    "categorical_cross": (
        lambda x, y: losses.categorical_cross_log_probability(
            losses.gumbel_softmax(x, 0, 0, ACTIVE), losses.masked_log_softmax(y, ACTIVE), ACTIVE
        ),
        [LOGITS] * 2,
    ),
    "total_correlation": (losses.total_correlation, [(BATCH, BATCH, LATENTS)]),
    "exact_total_correlation": (
        lambda x: exact_total_correlation(losses.gumbel_softmax(x, 0, 0, ACTIVE)),
        [LOGITS],
    ),
    "dip": (lambda codes: losses.dip_penalty(losses.covariance(codes), 3.0, 7.0), [CODES]),
    "density_ratio": (losses.density_ratio, [(BATCH, 2)]),
    "discriminator_loss": (losses.discriminator_loss, [(BATCH, 2)] * 2),
}


@pytest.mark.parametrize("name", TERMS)
def test_gradients_are_those_of_finite_differences(name):
    term, shapes = TERMS[name]
    inputs = [normal(*shape, seed=seed).requires_grad_() for seed, shape in enumerate(shapes)]
    assert gradcheck(term, inputs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", TERMS)
def test_terms_keep_the_precision_and_leave_their_inputs_alone(name, dtype):
    term, shapes = TERMS[name]
    inputs = [normal(*shape, seed=seed).to(dtype).requires_grad_() for seed, shape in enumerate(shapes)]
    before = [each.detach().clone() for each in inputs]
    value = term(*inputs)
    assert value.dtype == dtype
    value.sum().backward()
    for each, old in zip(inputs, before, strict=True):
        assert torch.equal(each, old)
        assert each.grad.isfinite().all()
    exact = term(*[each.detach().double() for each in inputs])
    torch.testing.assert_close(value.double(), exact, rtol=1e-5, atol=1e-5)


# reconstruction


@pytest.mark.parametrize("scale", [0.1, 3.0, 100.0])
def test_reconstruction_is_the_bernoulli_log_likelihood_per_image(scale):
    logits, images = scale * normal(4, 3, 8, 8), torch.rand(4, 3, 8, 8, generator=seeded(), dtype=torch.float64)
    expected = -Bernoulli(logits=logits, validate_args=False).log_prob(images).sum((1, 2, 3)).mean()
    torch.testing.assert_close(losses.bernoulli_reconstruction(logits, images), expected, rtol=1e-13, atol=0)
    single = losses.bernoulli_reconstruction(logits.float(), images.float())
    torch.testing.assert_close(single.double(), expected, rtol=1e-5, atol=1e-5)


def test_reconstruction_of_coin_flips_is_log_2_per_pixel_and_channel():
    value = losses.bernoulli_reconstruction(torch.zeros(7, 3, 8, 8), torch.ones(7, 3, 8, 8))
    assert value.item() == pytest.approx(192 * math.log(2), rel=1e-6)


def test_reconstruction_sums_half_precision_logits_in_single_precision():
    logits = (5 * normal(64, 1, 64, 64)).bfloat16().requires_grad_()
    images = torch.rand(64, 1, 64, 64, generator=seeded())
    value = losses.bernoulli_reconstruction(logits, images)
    value.backward()
    assert value.dtype == torch.float32
    exact = losses.bernoulli_reconstruction(logits.detach().double(), images.double())
    assert value.item() == pytest.approx(exact.item(), rel=1e-5)
    assert logits.grad.dtype == torch.bfloat16


class _Operations(TorchDispatchMode):
    """Records every operation that returns a tensor, with the tensor's strides."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor):
            self.seen.append((operation._opname, result.stride()))
        return result


def test_reconstruction_stays_in_channels_last_without_copies():
    logits, images = (torch.rand(4, 3, 8, 8).to(memory_format=torch.channels_last) for _ in range(2))
    logits.requires_grad_()
    with _Operations() as operations:
        losses.bernoulli_reconstruction(logits, images).backward()
    names = {name for name, _ in operations.seen}
    assert "softplus" in names
    # the last two copy too, but inside one operation
    assert not names & {"clone", "copy_", "_to_copy", "contiguous", "binary_cross_entropy_with_logits", "log_sigmoid"}
    strides = {stride for _, stride in operations.seen if len(stride) == 4} - {(0, 0, 0, 0)}  # the expanded gradient
    assert strides == {logits.stride()}
    assert logits.grad.stride() == logits.stride()


# divergences


@given(st.floats(-5, 5), st.floats(-10, 5))
@settings(deadline=None)
def test_gaussian_kl_is_that_of_torch(mean, log_variance):
    mean, log_variance = torch.tensor([[mean]]).double(), torch.tensor([[log_variance]]).double()
    expected = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(0.0, 1.0))
    torch.testing.assert_close(losses.gaussian_kl(mean, log_variance), expected, rtol=1e-9, atol=1e-12)


def test_gaussian_kl_of_the_prior_is_exactly_zero():
    assert torch.equal(losses.gaussian_kl(torch.zeros(3, 2), torch.zeros(3, 2)), torch.zeros(3, 2))


def test_categorical_kl_is_that_of_torch():
    log_probabilities = (3 * normal(*LOGITS)).log_softmax(-1)
    expected = kl_divergence(Categorical(logits=log_probabilities), Categorical(logits=torch.zeros(*LOGITS).double()))
    torch.testing.assert_close(losses.categorical_kl(log_probabilities, None), expected, rtol=1e-12, atol=1e-12)


@given(masks(), st.integers(0, 2**32))
@settings(deadline=None)
def test_masked_kl_is_that_of_the_active_categories_alone(active, seed):
    logits = 3 * normal(2, *active.shape, seed=seed)
    kl = losses.categorical_kl(losses.masked_log_softmax(logits, active), active)
    for image, latent in itertools.product(range(2), range(len(active))):
        probabilities = logits[image, latent][active[latent]].softmax(-1).numpy()
        expected = stats.entropy(probabilities, np.full(len(probabilities), 1 / len(probabilities)))
        assert kl[image, latent].item() == pytest.approx(expected, abs=1e-12)


def test_categorical_kl_of_certainty_is_the_log_of_the_number_of_categories():
    certain = torch.eye(CATEGORIES).log()[:, None].requires_grad_()
    kl = losses.categorical_kl(certain, None)
    assert torch.allclose(kl, torch.full((CATEGORIES, 1), math.log(CATEGORIES)))
    kl.sum().backward()
    assert torch.equal(certain.grad, torch.eye(CATEGORIES)[:, None])  # p (1 + log p)


# masks


@given(masks(), st.integers(0, 2**32), st.sampled_from([torch.float32, torch.float64]))
@settings(deadline=None)
def test_masked_categories_have_no_probability_and_no_gradient(active, seed, dtype):
    shape = (6, *active.shape)
    logits = (5 * normal(*shape, seed=seed)).to(dtype).requires_grad_()
    noise = losses.gumbel_noise(shape, seeded(seed), dtype=dtype)
    log_probabilities = losses.masked_log_softmax(logits, active)
    sample = losses.straight_through(losses.gumbel_softmax(logits, noise, 1.0, active))
    cross = losses.categorical_cross_log_probability(sample, log_probabilities, active)
    for probabilities in (log_probabilities.exp(), sample, losses.gumbel_softmax(logits, noise, 2.0, active)):
        assert (probabilities[:, ~active] == 0).all()
        torch.testing.assert_close(probabilities.sum(-1), torch.ones(shape[:2], dtype=dtype))
    assert (log_probabilities[:, ~active] == -math.inf).all()
    loss = (
        losses.categorical_kl(log_probabilities, active).sum()
        + losses.total_correlation(cross)
        + losses.gumbel_softmax(logits, noise, 0.5, active).square().sum()
        + exact_total_correlation(log_probabilities.exp())
    )
    loss.backward()
    assert loss.isfinite()
    assert logits.grad.isfinite().all()
    assert (logits.grad[:, ~active] == 0).all()


def test_what_is_behind_the_mask_does_not_matter():
    logits = normal(*LOGITS)
    wild = torch.where(ACTIVE, logits, torch.tensor(math.nan).double()).requires_grad_()
    log_probabilities = losses.masked_log_softmax(wild, ACTIVE)
    assert torch.equal(log_probabilities, losses.masked_log_softmax(logits, ACTIVE))
    soft = losses.gumbel_softmax(wild, torch.ones(LOGITS), 1.0, ACTIVE)
    (losses.categorical_kl(log_probabilities, ACTIVE).sum() + soft.square().sum()).backward()
    assert wild.grad.isfinite().all()


def test_the_masked_outputs_send_nothing_back():
    logits = normal(*LOGITS).requires_grad_()
    losses.masked_log_softmax(logits, ACTIVE)[:, ~ACTIVE].sum().backward()
    assert torch.equal(logits.grad, torch.zeros_like(logits))


# Gumbel


def test_gumbel_noise_has_the_gumbel_distribution():
    noise = losses.gumbel_noise((100_000,), seeded(1))
    assert noise.dtype == torch.float32
    assert stats.kstest(noise.double().numpy(), stats.gumbel_r.cdf).pvalue > 0.01
    assert noise.mean().item() == pytest.approx(np.euler_gamma, abs=5 * math.pi / math.sqrt(6e5))
    assert noise.var().item() == pytest.approx(math.pi**2 / 6, rel=0.05)


def test_gumbel_noise_is_finite_and_its_tail_honest():
    noise = torch.cat([losses.gumbel_noise((4_000_000,), seeded(seed)) for seed in range(5)])
    assert noise.isfinite().all()
    expected = len(noise) * (1 - math.exp(-math.exp(-12)))  # 123 of 20 million lie beyond 12
    assert (noise > 12).sum().item() == pytest.approx(expected, abs=5 * math.sqrt(expected))
    assert noise.max() < 24


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("draw", [0.0, "largest", 1.0])  # 1 should not come, but on some devices rounding makes it
def test_the_rarest_uniform_draws_stay_finite(monkeypatch, dtype, draw):
    def extreme(shape, *, dtype, **_):
        value = 1 - torch.finfo(dtype).eps / 2 if draw == "largest" else draw
        return torch.full(shape, value, dtype=dtype)

    monkeypatch.setattr(torch, "rand", extreme)
    noise = losses.gumbel_noise((3,), seeded(), dtype=dtype)
    assert noise.dtype == dtype
    assert ((noise > -4) & (noise < 40)).all()  # rare, but not out of proportion


def test_gumbel_noise_repeats_with_its_generator_and_leaves_the_global_one_alone():
    state = torch.get_rng_state()
    assert torch.equal(losses.gumbel_noise((5, 2), seeded(3)), losses.gumbel_noise((5, 2), seeded(3)))
    assert not torch.equal(losses.gumbel_noise((5, 2), seeded(3)), losses.gumbel_noise((5, 2), seeded(4)))
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("active", [None, torch.tensor([[True, False, True, True, False]])])
def test_the_argmax_of_noisy_logits_is_a_categorical_draw(active):
    logits = torch.tensor([[0.5, 2.0, -1.0, 0.0, 1.0]])
    noise = losses.gumbel_noise((50_000, 1, 5), seeded(2))
    hard = losses.straight_through(losses.gumbel_softmax(logits, noise, 1.0, active))
    probabilities = losses.masked_log_softmax(logits, active).exp()[0].double()
    counts, expected = hard[:, 0].double().sum(0), 50_000 * probabilities / probabilities.sum()
    possible = expected > 0
    assert (counts[~possible] == 0).all()
    assert stats.chisquare(counts[possible].numpy(), expected[possible].numpy()).pvalue > 0.01


def test_gumbel_softmax_is_a_softmax_whose_noise_scales():
    logits, noise = normal(*LOGITS), Gumbel(0.0, 1.0).sample(LOGITS).double()
    assert torch.equal(losses.gumbel_softmax(logits, noise, 0.0), logits.softmax(-1))
    unnormalised = (logits + 1.7 * noise).exp()
    expected = unnormalised / unnormalised.sum(-1, keepdim=True)
    torch.testing.assert_close(losses.gumbel_softmax(logits, noise, 1.7), expected)
    torch.testing.assert_close(losses.gumbel_softmax(logits, noise, torch.tensor(1.7).double()), expected)


def test_straight_through_is_one_hot_forwards_and_the_identity_backwards():
    soft = normal(500, LATENTS, CATEGORIES).float().softmax(-1).requires_grad_()
    hard, weights = losses.straight_through(soft), normal(500, LATENTS, CATEGORIES, seed=1).float()
    assert torch.equal(hard, functional.one_hot(soft.argmax(-1), CATEGORIES).float())
    (hard * weights).sum().backward()
    assert torch.equal(soft.grad, weights)


def test_positions_are_equally_spaced():
    assert losses.positions(-1, 1, 5).tolist() == [-1, -0.5, 0, 0.5, 1]
    assert torch.allclose(losses.positions(0, 1, 64), torch.arange(64) / 63)
    assert not losses.positions(-1, 1, 5).requires_grad
