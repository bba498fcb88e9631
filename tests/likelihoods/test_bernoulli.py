import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lddr import losses
from lddr.likelihoods import Bernoulli

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
