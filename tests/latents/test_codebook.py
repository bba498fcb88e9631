import numpy as np
import pytest
import torch
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import kl_divergence

from lddr import terms
from lddr.config import configure
from lddr.data.factors import Factor, FactorGrid
from lddr.data.load import load_dataset
from lddr.latents.codebook import Codebook
from lddr.networks.latent_layer import LatentLayer
from lddr.objectives.factor import AdversarialCorrelation
from lddr.training.feed import Feed
from lddr.training.learner import Learner

SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16, "discriminator_width": 20}


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def layer_of(values=None, **settings):
    layer = LatentLayer(Codebook(num_latents=3, num_categories=7, **settings))
    with torch.no_grad():
        layer.codebook.copy_(numbers(7, seed=1) if values is None else values)
    return layer


def learner_of(**settings):
    config = configure(latent="codebook", objective="factor", dataset="circles", preset="quick", **SMALL | settings)
    return Learner(config, load_dataset("circles", 16), torch.device("cpu"))


def test_the_posterior_comes_from_squared_distances():
    layer, outputs = layer_of(), numbers(5, 3)
    values = np.sort(layer.codebook.detach().numpy())
    distances = (outputs.numpy()[:, :, None] - values) ** 2
    expected = np.exp(-distances) / np.exp(-distances).sum(2, keepdims=True)
    latent = layer(outputs)
    assert np.allclose(layer.family.posterior(latent).detach(), expected, atol=1e-6)
    posterior = TorchCategorical(probs=torch.from_numpy(expected))
    uniform = TorchCategorical(logits=torch.zeros(7))
    assert torch.allclose(latent.kl, kl_divergence(posterior, uniform).float(), atol=1e-5)
    assert np.allclose(latent.variance.detach(), expected @ values**2 - (expected @ values) ** 2, atol=1e-5)
    assert np.array_equal(latent.z.detach(), values[distances.argmin(2)])  # at test time


def test_while_it_trains_samples_are_those_of_the_gumbel_softmax():
    layer, outputs = layer_of(), numbers(5, 3)
    noise = layer.family.noise(5, torch.Generator().manual_seed(2))
    latent = layer(outputs, noise, layer.family.noise_scale(7, 10))
    values = layer.codebook.detach().sort().values
    soft = (noise - (outputs.unsqueeze(2) - values) ** 2).softmax(2)
    assert torch.allclose(latent.sample, soft, atol=1e-6)
    assert torch.allclose(latent.z, soft @ values, atol=1e-6)


def test_with_sharp_logits_and_even_values_it_is_rounding_to_the_nearest():
    even = torch.linspace(-1, 1, 7)
    layer, outputs = layer_of(even[torch.randperm(7)], sharpness=1e5), numbers(40, 3)
    rounded = (terms.nearest(outputs, even.expand(3, -1)) * even).sum(2)
    noise = layer.family.noise(40, torch.Generator().manual_seed(2))
    for latent in (layer(outputs), layer(outputs, hard=False), layer(outputs, noise, 1.0)):
        assert torch.allclose(latent.z, rounded, atol=1e-3)


def test_of_two_values_as_near_the_lower_one_is_taken():
    layer = layer_of(torch.tensor([3.0, 1.0, -1.0, -3.0, 5.0, 5.0, 7.0]))
    latent = layer(torch.tensor([[0.0, 2.0, 5.0]]))
    assert latent.z.tolist() == [[-1.0, 1.0, 5.0]]
    assert layer.family.posterior(latent).argmax(2).tolist() == [[1, 2, 4]]


def test_straight_through_codes_have_the_gradient_of_soft_ones():
    layer, outputs = layer_of(), numbers(5, 3).requires_grad_()
    soft, hard = layer(outputs, hard=False), layer(outputs, hard=True)
    slopes = [torch.autograd.grad(each.z.sum(), [outputs], retain_graph=True)[0] for each in (soft, hard)]
    assert torch.allclose(*slopes, atol=1e-6)
    assert torch.equal(hard.z, hard.mean)


def test_the_codebook_begins_as_the_seed_says_and_moves():
    one, same, other = (learner_of(seed=seed) for seed in (0, 0, 1))
    begun = one.vae.family.codebook.detach().clone()
    assert begun.shape == (64,)
    assert torch.equal(begun, same.vae.family.codebook)
    assert not torch.equal(begun, other.vae.family.codebook)
    assert abs(begun.mean()) < 0.5
    assert 0.7 < begun.std() < 1.3
    one.step(Feed(one, load_dataset("circles", 16)).inputs(0))
    assert (one.vae.family.codebook != begun).any()


def test_weight_decay_leaves_the_codebook_alone():
    plain, decayed = learner_of(), learner_of(weight_decay=0.5)
    for learner in (plain, decayed):
        learner.step(Feed(learner, load_dataset("circles", 16)).inputs(0))
    assert torch.equal(plain.vae.family.codebook, decayed.vae.family.codebook)
    weights = (learner.vae.encoder.head[0].weight for learner in (plain, decayed))
    assert not torch.equal(*weights)


def test_the_discriminator_sees_soft_vectors_whose_latents_are_permuted():
    family = Codebook(num_latents=3, num_categories=7)
    adversary = AdversarialCorrelation(discriminator_width=5).adversary(family.numbers_shown)
    assert adversary.network.layers[0].in_features == 21
    sample = numbers(6, 3, 7).softmax(2)
    drawn = adversary.draw((6, 3), torch.Generator().manual_seed(0))
    rivals = adversary.rivals(sample, drawn)
    for latent in range(3):
        assert torch.equal(rivals[:, latent], sample[drawn[:, latent], latent])  # vectors stay whole
    shown = sample.requires_grad_()
    verdict = adversary.meet(shown, drawn)
    assert torch.isclose(verdict, terms.density_ratio(adversary.network(sample.flatten(1))))
    verdict.backward()
    assert shown.grad.abs().sum() > 0


def test_masked_values_are_never_taken():
    layer = layer_of()
    layer.active[0, 1:6] = False
    noise = layer.family.noise(50, torch.Generator().manual_seed(2))
    for latent in (layer(numbers(50, 3)), layer(numbers(50, 3), noise, 1.0)):
        assert (latent.sample[:, 0, 1:6] == 0).all()
    assert set(layer(numbers(50, 3)).z[:, 0].tolist()) <= set(layer.values_of(0).tolist())
    assert len(layer.values_of(0)) == 2


@pytest.mark.parametrize("loss", ["cross-entropy", "masked"])
def test_labels_pull_the_expected_value_to_that_of_their_category(loss):
    """The slope of -log q(j) by e is 2 (E[v] - v_j), since log q(v_j) is -(e - v_j)² up to a constant."""
    space, factors = FactorGrid((Factor("a", 3), Factor("b", 5))), np.array([[0, 4], [2, 1], [1, 0]])
    layer, outputs = layer_of(), numbers(3, 3).requires_grad_()
    layer.tie(loss, space)
    latent, targets = layer(outputs), layer.family.targets(loss, factors, space)
    (slope,) = torch.autograd.grad(layer.family.risk(loss, latent, targets), outputs)
    values = layer.codebook.detach().sort().values
    expected = layer.family.posterior(latent).detach() @ values
    assert torch.allclose(slope[:, :2], 2 * (expected[:, :2] - values[targets]) / 3, atol=1e-5)
    assert not slope[:, 2].any()
