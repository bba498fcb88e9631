import math

import numpy as np
import pytest
import torch

from lddr import losses
from lddr.config import configure
from lddr.data.factors import Factor, FactorGrid
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.latents.quantised import FiniteScalar, Quantised, VectorQuantised
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


def test_the_bound_of_ifsq_spreads_normal_outputs_evenly():
    outputs = numbers(20_000, 1)
    latent = FiniteScalar(num_latents=1, num_categories=9, bound="sigmoid")
    code = 2 / (1 + np.exp(-1.6 * outputs.double().numpy())) - 1
    assert np.allclose(latent(outputs).expected(hard=False).z, code, atol=1e-6)
    assert np.array_equal(latent(outputs).categories, np.round((code + 1) / 2 * 8))
    grid = torch.linspace(-6, 6, 10_001).unsqueeze(1)
    uniform = torch.erf(grid / math.sqrt(2))  # 2 Φ(e) - 1 of normal e is uniform
    tanh = FiniteScalar(num_latents=1)(grid).expected(hard=False).z
    assert (latent(grid).expected(hard=False).z - uniform).abs().max().item() == pytest.approx(0.0345, abs=1e-3)
    assert (tanh - uniform).abs().max().item() == pytest.approx(0.0885, abs=1e-3)


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


def vector_quantised(**settings):
    latent = VectorQuantised(**{"num_latents": 3, "num_categories": 5, "embedding_size": 2} | settings)
    with torch.no_grad():
        latent.codebook.copy_(numbers(*latent.codebook.shape, seed=1))
    return latent


def trainer_of(**settings):
    config = configure("vq-vae", "circles", "quick", **SMALL | settings)
    return Trainer(config, load_dataset("circles", 16), torch.device("cpu"))


def step(trainer, number):
    trainer.step(Batches(trainer, load_dataset("circles", 16)).batch(number))


@pytest.mark.parametrize("shared", [True, False])
def test_each_latent_is_the_nearest_vector_of_its_codebook(shared):
    latent, outputs = vector_quantised(shared_codebook=shared), numbers(7, 6)
    books, vectors = latent.codebook.numpy(), outputs.numpy().reshape(7, 3, 2)
    assert books.shape == (1 if shared else 3, 5, 2)
    posterior = latent(outputs)
    for image in range(7):
        for place in range(3):
            book = books[0 if shared else place]
            nearest = ((book - vectors[image, place]) ** 2).sum(1).argmin()
            assert posterior.categories[image, place] == nearest
            assert posterior.mean[image, place] == pytest.approx(nearest / 2 - 1)
            assert np.allclose(posterior.expected().z[image, 2 * place : 2 * place + 2], book[nearest])
    assert torch.allclose(posterior.kl, torch.full((7, 3), math.log(5)))
    assert torch.equal(posterior.sample(latent.noise(7)).z, posterior.expected().z)
    assert torch.equal(posterior.expected(hard=False).z, outputs)


@pytest.mark.parametrize("shared", [True, False])
def test_codes_embed_to_the_vectors(shared):
    latent = vector_quantised(shared_codebook=shared)
    posterior = latent(numbers(7, 6))
    assert torch.equal(latent.embed(posterior.mean), posterior.expected().z)
    between = latent.embed(torch.tensor([[-0.75, 0.0, 1.0]]))[0, :2]
    assert torch.allclose(between, latent.codebook[0, :2].mean(0))


def test_the_gradient_passes_straight_through():
    latent, outputs, weights = vector_quantised(), numbers(7, 6).requires_grad_(), numbers(6, seed=3)
    (slope,) = torch.autograd.grad((latent(outputs).sample().z * weights).sum(), outputs)
    assert torch.equal(slope, weights.expand(7, -1))


def test_the_losses_draw_outputs_and_vectors_to_each_other():
    latent = vector_quantised(codebook_update="loss", quantisation_weight=3.0, commitment_weight=0.5)
    outputs = numbers(7, 6).requires_grad_()
    posterior = latent(outputs)
    found = latent.losses(posterior, posterior.sample())
    squared = (outputs - posterior.expected().z).square().sum(1).mean().item()
    assert found["commitment"].item() == pytest.approx(0.5 * squared)
    assert found["quantisation"].item() == pytest.approx(3 * squared)
    (by_outputs,) = torch.autograd.grad(found["commitment"], outputs)
    assert torch.allclose(by_outputs, 0.5 * 2 / 7 * (outputs - posterior.expected().z).detach())
    (by_book,) = torch.autograd.grad(found["quantisation"], latent.codebook)
    used = torch.zeros(5).index_add(0, posterior.categories.flatten(), torch.ones(21))
    assert torch.equal(by_book[0].abs().sum(1) > 0, used > 0)
    assert set(vector_quantised().losses(vector_quantised()(numbers(7, 6)), posterior.sample())) == {"commitment"}


@pytest.mark.parametrize("shared", [True, False])
def test_moving_averages_end_at_the_means_of_the_outputs(shared):
    """With the same batch again and again this is k-means."""
    latent, outputs = vector_quantised(shared_codebook=shared, ema_decay=0.5, restart_below=0), numbers(40, 6)
    for _ in range(200):
        posterior = latent(outputs)
        latent.after_step(posterior, posterior.sample())
    posterior = latent(outputs)
    vectors, categories = outputs.unflatten(1, (3, 2)), posterior.categories
    for book in range(1 if shared else 3):
        ours = (vectors, categories) if shared else (vectors[:, book], categories[:, book])
        for category in ours[1].unique():
            mean = ours[0][ours[1] == category].mean(0)
            assert torch.allclose(latent.codebook[book, category], mean, atol=1e-5)


def test_one_moving_average_by_hand():
    latent = VectorQuantised(num_latents=1, num_categories=2, embedding_size=1, ema_decay=0.75, restart_below=0)
    latent.codebook.copy_(torch.tensor([[[0.0], [10.0]]]))
    latent.use.copy_(torch.tensor([[4.0, 4.0]]))
    latent.sums.copy_(torch.tensor([[[0.0], [40.0]]]))
    posterior = latent(torch.tensor([[1.0], [2.0], [8.0], [3.0]]))
    latent.after_step(posterior, posterior.sample())
    assert latent.use.tolist() == [[3.75, 3.25]]  # 0.75 · 4 + 0.25 · 3 and · 1
    assert torch.allclose(latent.codebook, torch.tensor([[[1.5 / 3.75], [32 / 3.25]]]))  # (0.25 · 6), (30 + 0.25 · 8)


@pytest.mark.parametrize("update", ["ema", "loss"])
def test_vectors_that_nobody_uses_are_replaced_by_outputs_of_the_batch(update):
    latent = vector_quantised(codebook_update=update, restart_below=0.1, num_categories=4)
    with torch.no_grad():
        latent.codebook[0] = torch.tensor([[0.0, 0.0], [100, 100], [1, 1], [200, 200]])
    latent.use.copy_(torch.tensor([[5.0, 0.0, 5.0, 0.0]]))
    outputs = 0.4 * torch.rand(6, 6, generator=torch.Generator().manual_seed(0))
    before, posterior = latent.codebook.detach().clone(), latent(outputs)
    latent.after_step(posterior, posterior.sample())
    fresh = outputs.unflatten(1, (3, 2)).flatten(0, 1)
    assert torch.equal(latent.codebook[0, [1, 3]], fresh[:2])
    assert not latent.codebook.equal(before)
    assert (latent.use >= 0.1 * latent.use.mean()).all()
    if update == "loss":
        assert torch.equal(latent.codebook[0, [0, 2]], before[0, [0, 2]])


def test_the_first_batch_initialises_the_codebook():
    latent, outputs = vector_quantised(num_categories=20), 50 + numbers(30, 6)
    posterior = latent(outputs)
    latent.after_step(posterior, posterior.sample())
    assert (latent.codebook > 40).all()
    posterior = latent(outputs)
    assert len(posterior.categories.unique()) > 10


def test_the_seed_decides_the_initial_codebook_whose_vectors_differ():
    begun = [trainer_of(seed=seed).vae.latent.codebook for seed in (0, 0, 1)]
    assert torch.equal(begun[0], begun[1])
    assert not torch.equal(begun[0], begun[2])
    for codebook in (begun[0], VectorQuantised().codebook):
        assert len(codebook[0].unique(dim=0)) == 16
        assert codebook.abs().max() <= 1 / 16


def test_computing_changes_nothing():
    latent = vector_quantised().train()
    before = {name: tensor.clone() for name, tensor in latent.state_dict().items()}
    posterior = latent(numbers(7, 6))
    latent.losses(posterior, posterior.sample())
    assert all(torch.equal(tensor, before[name]) for name, tensor in latent.state_dict().items())


@pytest.mark.parametrize("settings", [{}, {"codebook_update": "loss"}, {"shared_codebook": False}])
def test_a_trainer_that_is_restored_goes_on_to_the_same_weights(settings):
    whole, first, second = (trainer_of(**settings) for _ in range(3))
    begun = whole.vae.latent.codebook.detach().clone()
    for number in range(6):
        step(whole, number)
    for number in range(3):
        step(first, number)
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()})
    for number in range(3, 6):
        step(second, number)
    ours, theirs = whole.tensors(), second.tensors()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not torch.equal(begun, whole.vae.latent.codebook)
    assert any(name.endswith("latent.use") for name in ours)


def test_a_step_that_is_not_applied_leaves_the_codebook_alone():
    trainer = trainer_of()
    step(trainer, 0)
    before = trainer.vae.latent.codebook.clone()
    with torch.no_grad():
        trainer.vae.decoder.last.bias.fill_(math.nan)
    step(trainer, 1)
    assert torch.equal(trainer.vae.latent.codebook, before)
