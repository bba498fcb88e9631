import numpy as np
import pytest

from lddr_paper.latent_figures import CASES, class_positions, density, gumbel_softmax, sampled


def test_two_classes_have_the_density_of_a_binary_concrete_variable():
    """z̄ = sigmoid(log(α₂/α₁) + logistic noise): density r / (r (1 - z) + z)², r = α₂/α₁ (Maddison et al. 2017)."""
    ratio = 3.0
    values, edges = density([1.0, ratio], bins=20, samples=400_000)
    exact = edges / (edges + ratio * (1 - edges))  # the distribution function
    assert values == pytest.approx(np.diff(exact) * 20, rel=0.06)


def test_the_density_is_one():
    values, edges = density((0.2, 0.5, 0.3), samples=10_000)
    assert (values * np.diff(edges)).sum() == pytest.approx(1)


def test_classes_without_probability_bound_the_support():
    drawn = sampled([0, 1, 0, 2, 0], samples=20_000)
    assert 0.25 <= drawn.min() < 0.26
    assert 0.74 < drawn.max() <= 0.75


def test_the_cases_are_those_the_paper_describes():
    far, near, one = (np.array(alpha) for alpha in CASES.values())
    assert np.array_equal(near, far[[0, 1, 4, 3, 2]])  # classes 3 and 5 change places
    assert sampled(near, 20_000).std() < 0.6 * sampled(far, 20_000).std()
    assert one.max() > 0.99
    assert density(far, 5, 20_000)[0][2] > 1  # class 3 has a high density although its probability is small
    assert far[2] < 0.02


def test_parameters_stand_above_densities():
    figure = gumbel_softmax([]).figure
    top, bottom = figure.axes[:3], figure.axes[3:]
    assert [axes.get_title() for axes in top] == list(CASES)
    for axes, alpha in zip(top, CASES.values(), strict=True):
        assert [bar.get_height() for bar in axes.patches] == pytest.approx(np.array(alpha) / sum(alpha))
    for axes, alpha in zip(bottom, CASES.values(), strict=True):
        assert axes.get_xlim() == (-0.02, 1.02)
        assert axes.lines[0].get_xdata()[0] == pytest.approx(np.array(alpha) @ class_positions(5) / sum(alpha))
