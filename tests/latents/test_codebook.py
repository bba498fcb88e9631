import numpy as np
import pytest
import torch
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import kl_divergence

from lddr import losses
from lddr.config import configure
from lddr.data.factors import Factor, FactorGrid
from lddr.data.load import load_dataset
from lddr.latents.categorical import Codebook
from lddr.latents.latent import Sample
from lddr.objectives.total_correlation import AdversarialCorrelation
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer

SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16, "discriminator_width": 20}


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def latent_of(values=None, **settings):
    latent = Codebook(num_latents=3, num_categories=7, **settings)
    with torch.no_grad():
        latent.codebook.copy_(numbers(7, seed=1) if values is None else values)
    return latent


def trainer_of(**settings):
    config = configure(latent="codebook", objective="factor", dataset="circles", preset="quick", **SMALL | settings)
    return Trainer(config, load_dataset("circles", 16), torch.device("cpu"))


def test_the_posterior_comes_from_squared_distances():
    latent, outputs = latent_of(), numbers(5, 3)
    values = np.sort(latent.codebook.detach().numpy())
    distances = (outputs.numpy()[:, :, None] - values) ** 2
    expected = np.exp(-distances) / np.exp(-distances).sum(2, keepdims=True)
    posterior = latent(outputs)
    assert np.allclose(posterior.parameters.detach(), expected, atol=1e-6)
    by_torch, uniform = TorchCategorical(probs=torch.from_numpy(expected)), TorchCategorical(logits=torch.zeros(7))
    assert torch.allclose(posterior.kl, kl_divergence(by_torch, uniform).float(), atol=1e-5)
    assert np.allclose(posterior.variance.detach(), expected @ values**2 - (expected @ values) ** 2, atol=1e-5)
    assert np.array_equal(posterior.expected().z.detach(), values[distances.argmin(2)])  # at test time


def test_in_training_samples_are_those_of_the_gumbel_softmax():
    latent, outputs = latent_of(), numbers(5, 3)
    noise = latent.noise(5, torch.Generator().manual_seed(2))
    sample = latent(outputs).sample(noise, latent.noise_scale(7, 10))
    values = latent.codebook.detach().sort().values
    soft = (noise - (outputs.unsqueeze(2) - values) ** 2).softmax(2)
    assert torch.allclose(sample.weights, soft, atol=1e-6)
    assert torch.allclose(sample.z, soft @ values, atol=1e-6)


def test_with_sharp_logits_and_even_values_it_is_rounding_to_the_nearest():
    even = torch.linspace(-1, 1, 7)
    latent, outputs = latent_of(even[torch.randperm(7)], sharpness=1e5), numbers(40, 3)
    rounded = (losses.nearest(outputs, even.expand(3, -1)) * even).sum(2)
    noise, posterior = latent.noise(40, torch.Generator().manual_seed(2)), latent(outputs)
    for sample in (posterior.expected(), posterior.expected(hard=False), posterior.sample(noise, 1.0)):
        assert torch.allclose(sample.z, rounded, atol=1e-3)


def test_of_two_values_as_near_the_lower_one_is_taken():
    latent = latent_of(torch.tensor([3.0, 1.0, -1.0, -3.0, 5.0, 5.0, 7.0]))
    posterior = latent(torch.tensor([[0.0, 2.0, 5.0]]))
    assert posterior.expected().z.tolist() == [[-1.0, 1.0, 5.0]]
    assert posterior.categories.tolist() == [[1, 2, 4]]


def test_straight_through_codes_have_the_gradient_of_soft_ones():
    latent, outputs = latent_of(), numbers(5, 3).requires_grad_()
    posterior = latent(outputs)
    soft, hard = posterior.expected(hard=False), posterior.expected(hard=True)
    slopes = [torch.autograd.grad(each.z.sum(), [outputs], retain_graph=True)[0] for each in (soft, hard)]
    assert torch.allclose(*slopes, atol=1e-6)
    assert torch.equal(hard.z, posterior.mean)


def test_the_codebook_begins_as_the_seed_says_and_moves():
    one, same, other = (trainer_of(seed=seed) for seed in (0, 0, 1))
    begun = one.vae.latent.codebook.detach().clone()
    assert begun.shape == (64,)
    assert torch.equal(begun, same.vae.latent.codebook)
    assert not torch.equal(begun, other.vae.latent.codebook)
    assert abs(begun.mean()) < 0.5
    assert 0.7 < begun.std() < 1.3
    one.step(Batches(one, load_dataset("circles", 16)).batch(0))
    assert (one.vae.latent.codebook != begun).any()


def test_weight_decay_leaves_the_codebook_alone():
    plain, decayed = trainer_of(), trainer_of(weight_decay=0.5)
    for trainer in (plain, decayed):
        trainer.step(Batches(trainer, load_dataset("circles", 16)).batch(0))
    assert torch.equal(plain.vae.latent.codebook, decayed.vae.latent.codebook)
    weights = (trainer.vae.encoder.head[0].weight for trainer in (plain, decayed))
    assert not torch.equal(*weights)


def test_the_discriminator_sees_soft_vectors_whose_latents_are_permuted():
    latent = latent_of()
    objective = AdversarialCorrelation(discriminator_width=5).attach(latent)
    assert objective.discriminator.layers[0].in_features == 21
    weights = numbers(6, 3, 7).softmax(2)
    assert torch.equal(latent.discriminator_input(Sample(numbers(6, 3), weights)), weights)
    permutation = objective.draw(latent, 6, torch.Generator().manual_seed(0))
    negatives = objective.negatives(weights, permutation)
    for number in range(3):
        assert torch.equal(negatives[:, number], weights[permutation[:, number], number])  # vectors stay whole


def test_masked_values_are_never_taken():
    latent = latent_of()
    latent.active[0, 1:6] = False
    noise, posterior = latent.noise(50, torch.Generator().manual_seed(2)), latent(numbers(50, 3))
    for sample in (posterior.expected(), posterior.sample(noise, 1.0)):
        assert (sample.weights[:, 0, 1:6] == 0).all()
    assert set(posterior.expected().z[:, 0].tolist()) <= set(latent.values_of(0).tolist())
    assert len(latent.values_of(0)) == 2


@pytest.mark.parametrize("loss", ["cross-entropy", "masked"])
def test_labels_pull_the_expected_value_to_that_of_their_category(loss):
    """The slope of -log q(j) by e is 2 (E[v] - v_j), since log q(v_j) is -(e - v_j)² up to a constant."""
    space, factors = FactorGrid((Factor("a", 3), Factor("b", 5))), np.array([[0, 4], [2, 1], [1, 0]])
    latent, outputs = latent_of(), numbers(3, 3).requires_grad_()
    latent.mask_to_factors(loss, space)
    posterior, targets = latent(outputs), latent.targets(loss, factors, space)
    (slope,) = torch.autograd.grad(latent.risk(loss, posterior, targets), outputs)
    values = latent.codebook.detach().sort().values
    expected = posterior.parameters.detach() @ values
    assert torch.allclose(slope[:, :2], 2 * (expected[:, :2] - values[targets]) / 3, atol=1e-5)
    assert not slope[:, 2].any()
