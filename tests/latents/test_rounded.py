"""The latents that are rounded and not sampled, `fsq` and `quantised`, against numpy."""

import math

import numpy as np
import pytest
import torch

from lddr import losses
from lddr.config import configure
from lddr.data.factors import Factor, FactorGrid
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.latents.quantised import FiniteScalar, Quantised
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer

SPACE = FactorGrid((Factor("a", 3), Factor("b", 5)))
FACTORS = np.array([[0, 4], [2, 1], [1, 0]])
SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16}


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def by_hand(code, values):
    """The nearest value and its place, by looking at all of them; a tie goes to the lower one."""
    places = np.zeros(code.shape, int)
    for at in np.ndindex(*code.shape):
        row = values[at[-1]]
        places[at] = min(range(len(row)), key=lambda place: (abs(code[at] - row[place]), row[place]))
    return np.take_along_axis(values, places.T, axis=1).T, places


@pytest.mark.parametrize("count", [2, 5, 12])
def test_fsq_against_the_formula(count):
    outputs = numbers(50, 3)
    posterior = FiniteScalar(num_latents=3, num_categories=count)(outputs)
    code = np.tanh(outputs.double().numpy())
    expected = 2 * np.round((code + 1) / 2 * (count - 1)) / (count - 1) - 1
    assert np.allclose(posterior.expected().z, expected, atol=1e-6)
    assert np.allclose(posterior.expected(hard=False).z, code, atol=1e-6)
    assert np.array_equal(posterior.categories, np.round((code + 1) / 2 * (count - 1)))
    one_hot = posterior.expected().weights
    assert torch.equal(one_hot, torch.nn.functional.one_hot(posterior.categories, count).float())


def mentzer(e, count):
    """Quantised codes by the formulas of Mentzer et al.: bound, round, divide."""
    half, offset = (count - 1) * (1 - 1e-3) / 2, 0.5 if count % 2 == 0 else 0.0
    bounded = np.tanh(e + np.tan(offset / half)) * half - offset
    return np.round(bounded) / (count // 2), bounded / (count // 2)


@pytest.mark.parametrize("count", [2, 5, 8, 12])
def test_shifted_fsq_against_the_formulas_of_mentzer(count):
    latent = FiniteScalar(num_latents=3, num_categories=count, bound="shifted")
    outputs = 2 * numbers(200, 3)
    expected, code = mentzer(outputs.double().numpy(), count)
    assert np.allclose(latent(outputs).expected().z, expected, atol=1e-6)
    assert np.allclose(latent(outputs).expected(hard=False).z, code, atol=1e-6)
    values = latent.values()[0]
    assert (values.min().item(), values.max().item()) == pytest.approx((-1, 1 if count % 2 else 1 - 2 / count))
    assert values.abs().min() < 1e-6  # 0 is one of them
    assert latent.prior_variance == pytest.approx(values.var(correction=0).item(), rel=1e-5)


def test_the_two_forms_of_fsq_put_a_third_of_normal_codes_elsewhere():
    outputs = numbers(20_000, 1)
    symmetric, shifted = (
        FiniteScalar(num_latents=1, bound=bound)(outputs).categories for bound in ("symmetric", "shifted")
    )
    assert (symmetric != shifted).float().mean().item() == pytest.approx(0.31, abs=0.02)


def test_fsq_with_very_many_values_is_a_plain_autoencoder():
    latent = FiniteScalar(num_latents=3, num_categories=20_001)
    outputs = numbers(20, 3).requires_grad_()
    z = latent(outputs).rsample()
    assert (z - outputs.tanh()).abs().max() <= 0.5e-4 + 1e-6
    (slope,) = torch.autograd.grad(z.sum(), outputs)
    assert torch.allclose(slope, 1 - outputs.tanh() ** 2)


def test_quantised_latents_against_all_distances():
    latent = Quantised(num_latents=3, num_categories=4)
    assert torch.allclose(latent.positions, torch.tensor([-1 / 2, -1 / 6, 1 / 6, 1 / 2]).expand(3, -1))
    with torch.no_grad():
        latent.positions.copy_(numbers(3, 4, seed=1))  # in no order, others for every latent
    outputs = numbers(50, 3)
    posterior = latent(outputs)
    values = np.sort(latent.positions.detach().numpy(), axis=1)
    assert np.array_equal(latent.values().detach(), values)
    expected, places = by_hand(outputs.numpy(), values)
    assert np.array_equal(posterior.rsample().detach(), expected)
    assert np.array_equal(posterior.categories, places)
    assert torch.equal(posterior.expected(hard=False).z, outputs)


@pytest.mark.parametrize("latent", [FiniteScalar(num_latents=3), Quantised(num_latents=3)], ids=lambda each: each.name)
def test_gradients_pass_straight_through(latent):
    outputs, weight = numbers(8, 3).requires_grad_(), numbers(8, 3, seed=1)
    posterior = latent(outputs)
    rounded, code = posterior.sample(), posterior.sample(hard=False)
    assert not torch.equal(rounded.z, code.z)
    for hard, soft in ((rounded.z, code.z), (posterior.mean, code.z)):
        slopes = [torch.autograd.grad((each * weight).sum(), outputs, retain_graph=True)[0] for each in (hard, soft)]
        assert torch.equal(*slopes)
    assert not any(parameter.grad is not None for parameter in latent.parameters())


def test_the_losses_of_quantised_latents_by_hand():
    latent = Quantised(num_latents=3, num_categories=4, quantisation_weight=0.3, commitment_weight=0.2)
    outputs = numbers(7, 3).requires_grad_()

    def found():
        posterior = latent(outputs)
        return latent.losses(posterior, posterior.sample())

    code = outputs.detach().double().numpy()
    values, places = by_hand(code, latent.positions.detach().double().numpy())
    distance = ((code - values) ** 2).mean()
    assert found()["quantisation"].item() == pytest.approx(0.3 * distance, rel=1e-5)
    assert found()["commitment"].item() == pytest.approx(0.2 * distance, rel=1e-5)
    (to_values,) = torch.autograd.grad(found()["quantisation"], latent.positions)
    expected = np.zeros((3, 4))
    for image, number in np.ndindex(7, 3):
        expected[number, places[image, number]] += 0.3 * 2 * (values - code)[image, number] / 21
    assert np.allclose(to_values, expected, atol=1e-6)
    (to_code,) = torch.autograd.grad(found()["commitment"], outputs)
    assert np.allclose(to_code, 0.2 * 2 * (code - values) / 21, atol=1e-6)
    for loss, other in (("quantisation", outputs), ("commitment", latent.positions)):
        (slope,) = torch.autograd.grad(found()[loss], other, allow_unused=True)
        assert slope is None or not slope.any()


@pytest.mark.parametrize("kind", [FiniteScalar, Quantised], ids=lambda each: each.name)
def test_a_tie_goes_to_the_lower_value(kind):
    values = torch.tensor([[-1.0, 0.0, 0.5, 0.5]])
    codes = torch.tensor([[-0.5], [0.25], [0.5], [9.0], [-9.0]])
    assert losses.nearest(codes, values).argmax(2).flatten().tolist() == [0, 1, 2, 2, 0]
    even = kind(num_latents=1, num_categories=2)
    assert even(torch.zeros(1, 1)).rsample().item() == even.low  # half way between both


@pytest.mark.parametrize("latent", [FiniteScalar(), Quantised()], ids=lambda each: each.name)
def test_the_posterior_is_certain_and_its_kl_a_constant(latent):
    posterior = latent(numbers(5, 10).requires_grad_())
    assert torch.allclose(posterior.kl, torch.tensor(math.log(latent.num_categories)))
    assert not posterior.kl.requires_grad
    assert not posterior.variance.any()
    assert latent.prior_variance == pytest.approx(latent.values()[0].var(correction=0).item(), rel=1e-5)


@pytest.mark.parametrize("latent", [FiniteScalar(num_latents=3), Quantised(num_latents=3)], ids=lambda each: each.name)
def test_labels_ask_for_places_between_the_first_and_the_last_value(latent):
    outputs = numbers(3, 3).requires_grad_()
    posterior = latent(outputs)
    wanted = latent.low + (latent.high - latent.low) * FACTORS / np.array([2, 4])
    code = posterior.expected(hard=False).z.detach().numpy()[:, :2]
    risk = latent.risk("l2", posterior, latent.targets("l2", FACTORS, SPACE))
    assert risk.item() == pytest.approx(((code - wanted) ** 2).sum(1).mean(), rel=1e-5)
    (slope,) = torch.autograd.grad(risk, outputs)
    assert (slope[:, :2] != 0).all()
    assert (slope[:, 2] == 0).all()


@pytest.mark.parametrize("latent", ["fsq", "quantised"])
def test_what_rounding_leaves_out_is_a_sentence(latent):
    with pytest.raises(UserError, match=f"'masked' is not for {latent} latents; choose one of: l2"):
        configure(latent=latent, objective="elbo", dataset="circles", supervision="masked")
    with pytest.raises(UserError, match=f"'tc' compares densities, and {latent} latents, .* have none; choose another"):
        configure(latent=latent, objective="tc", dataset="circles")


def test_learned_values_move_unused_ones_stay_and_none_decays():
    config = configure(
        latent="quantised", objective="elbo", dataset="circles", preset="quick", weight_decay=0.5, **SMALL
    )
    dataset = load_dataset("circles", 16)
    trainer = Trainer(config, dataset, torch.device("cpu"))
    latent, begun = trainer.vae.latent, trainer.vae.latent.positions.detach().clone()
    with torch.no_grad():
        latent.positions[:, 0] = -100.0  # no code is near
    for step in range(5):
        terms = trainer.step(Batches(trainer, dataset).batch(step))
    assert {"quantisation", "commitment"} <= set(terms)
    assert (latent.positions[:, 0] == -100).all()
    assert not torch.equal(latent.positions[:, 1:], begun[:, 1:])
    assert torch.isclose(
        terms["loss"],
        16 * terms["reconstruction"] + sum(terms[name] for name in ("kl", "quantisation", "commitment")),
        rtol=1e-5,
    )
