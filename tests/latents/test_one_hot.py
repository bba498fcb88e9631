import pytest
import torch
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import kl_divergence

from lddr import losses
from lddr.data.factors import Factor, FactorGrid
from lddr.latents.categorical import OneHot
from lddr.objectives.total_correlation import AdversarialCorrelation


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def latent_of(**settings):
    return OneHot(num_latents=3, num_categories=5, **settings)


def test_the_decoder_gets_the_relaxed_one_hot_vectors():
    latent, outputs = latent_of(), numbers(4, 15)
    noise = latent.noise(4, torch.Generator().manual_seed(1))
    sample = latent(outputs).sample(noise, 0.7)
    expected = (outputs.unflatten(1, (3, 5)) + 0.7 * noise).softmax(2)
    assert torch.allclose(sample.z, expected.flatten(1))
    assert torch.equal(sample.weights.flatten(1), sample.z)
    assert latent.width == sample.z.shape[1] == 15


def test_a_low_temperature_gives_samples_of_the_categories():
    latent, outputs = OneHot(num_latents=1, num_categories=5, temperature=1e-3), numbers(1, 5)
    noise = latent.noise(20_000, torch.Generator().manual_seed(1))
    sample = latent(outputs.expand(20_000, -1)).sample(noise)
    assert (sample.z.amax(1) > 0.99).float().mean() > 0.99
    assert torch.allclose(sample.z.mean(0), outputs[0].softmax(0), atol=0.015)  # the Gumbel-max trick


def test_kl_is_torchs():
    outputs = numbers(4, 15)
    uniform = TorchCategorical(logits=torch.zeros(5))
    expected = kl_divergence(TorchCategorical(logits=outputs.unflatten(1, (3, 5))), uniform)
    assert torch.allclose(latent_of()(outputs).kl, expected, atol=1e-6)


def test_hard_samples_are_one_hot_with_the_gradient_of_soft_ones():
    latent, outputs = latent_of(), numbers(4, 15).requires_grad_()
    noise, weights = latent.noise(4, torch.Generator().manual_seed(1)), numbers(15, seed=2)
    soft, hard = (latent(outputs).sample(noise, hard=each) for each in (False, True))
    assert set(hard.z.flatten().tolist()) == {0.0, 1.0}
    assert torch.equal(hard.unrounded, soft.z)
    slopes = [torch.autograd.grad((each.z * weights).sum(), outputs, retain_graph=True)[0] for each in (soft, hard)]
    assert torch.allclose(*slopes)


def test_the_code_is_the_most_probable_category_which_embeds_to_its_vector():
    latent, outputs = latent_of(), numbers(4, 15)
    posterior = latent(outputs)
    assert torch.equal(posterior.categories, outputs.unflatten(1, (3, 5)).argmax(2))
    assert torch.allclose(posterior.mean, posterior.categories / 2 - 1)
    assert torch.equal(latent.embed(posterior.mean), posterior.expected().z)
    assert torch.equal(latent.values()[1], torch.linspace(-1, 1, 5))
    assert torch.allclose(posterior.expected(hard=False).z, outputs.unflatten(1, (3, 5)).softmax(2).flatten(1))


@pytest.mark.parametrize("categories", [2, 3, 11, 64, 1000])
def test_every_value_embeds_to_exactly_one_category(categories):
    latent = OneHot(num_latents=1, num_categories=categories)
    assert torch.equal(latent.embed(latent.values().T), torch.eye(categories))


def test_a_code_between_two_categories_is_a_mixture_of_both():
    latent = OneHot(num_latents=1, num_categories=5)
    assert torch.allclose(latent.embed(torch.tensor([[-0.125]])), torch.tensor([[0.0, 0.25, 0.75, 0, 0]]))
    assert torch.equal(latent.embed(torch.tensor([[-7.0], [7.0]])), torch.eye(5)[[0, 4]])


def test_masked_categories_have_nothing():
    latent, space = latent_of(), FactorGrid((Factor("shape", 3), Factor("size", 2)))
    latent.mask_to_factors("masked", space)
    assert latent.active.sum(1).tolist() == [3, 2, 5]
    noise = latent.noise(4, torch.Generator().manual_seed(1))
    for sample in (latent(numbers(4, 15)).sample(noise), latent(numbers(4, 15)).expected()):
        assert (sample.weights[:, ~latent.active] == 0).all()
    assert latent.values_of(1).tolist() == [-1, 1]


def test_a_discriminator_gets_whole_vectors_of_each_latent():
    latent = latent_of()
    sample = latent(numbers(6, 15)).sample(latent.noise(6, torch.Generator().manual_seed(1)))
    objective = AdversarialCorrelation(discriminator_width=7).attach(latent)
    seen = latent.discriminator_input(sample)
    assert seen.shape == (6, 3, 5)
    order = objective.draw(latent, 6, torch.Generator().manual_seed(2))
    negatives = objective.negatives(seen, order)
    for place in range(3):
        assert torch.equal(negatives[:, place], seen[order[:, place], place])
    assert objective.discriminator(negatives.flatten(1)).shape == (6, 2)


def test_densities_are_those_of_the_categories():
    latent, outputs = latent_of(), numbers(4, 15)
    posterior = latent(outputs)
    cross = posterior.cross_log_density(posterior.expected())
    chosen = TorchCategorical(logits=outputs.unflatten(1, (3, 5))).log_prob(posterior.categories[:, None])
    assert torch.allclose(cross, chosen, atol=1e-6)


def test_the_noise_follows_its_schedule():
    latent = latent_of(noise_start=0.5, noise_end=2.0)
    assert (latent.noise_scale(0, 10), latent.noise_scale(10, 10)) == (0.5, 2.0)
    assert latent_of().prior_variance == pytest.approx(losses.positions(-1, 1, 5).var(correction=0).item())
