import pytest
import torch
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import Normal, kl_divergence

from lddr.latents.categorical import Categorical
from lddr.latents.family import latents
from lddr.latents.gaussian import Gaussian
from lddr.latents.rounded import Rounded
from lddr.networks.latent_layer import LatentLayer

FAMILIES = {name: latents[name](num_latents=3) for name in latents}
FAMILIES |= {f"categorical, {name}": Categorical(num_latents=3, **{name: True}) for name in ("hard", "learn_positions")}


def outputs_for(layer, batch=5):
    generator, family = torch.Generator().manual_seed(0), layer.family
    return torch.randn(batch, family.num_latents * family.outputs_per_latent, generator=generator)


@pytest.mark.parametrize("settings", FAMILIES.values(), ids=FAMILIES)
def test_every_family_gives_the_same_shapes(settings):
    layer = LatentLayer(settings)
    noise = layer.family.noise(5, torch.Generator().manual_seed(1))
    latent = layer(outputs_for(layer), noise, 1.0)
    for tensor in (latent.z, latent.mean, latent.variance, latent.kl):
        assert tensor.shape == (5, 3)
        assert tensor.isfinite().all()
    assert (latent.kl >= 0).all()
    assert (latent.variance >= 0).all()
    if settings.has_densities:
        assert layer.cross_log_density(latent).shape == (5, 5, 3)
    else:
        with pytest.raises(NotImplementedError):
            layer.cross_log_density(latent)
    assert settings.shown(latent)[0].numel() == settings.numbers_shown
    assert {name for name, _ in layer.named_parameters()} == set(settings.weights())


@pytest.mark.parametrize("settings", FAMILIES.values(), ids=FAMILIES)
def test_without_noise_the_sample_is_the_representation(settings):
    layer = LatentLayer(settings)
    latent = layer(outputs_for(layer))
    assert torch.allclose(latent.z, latent.mean)
    assert torch.equal(layer(outputs_for(layer), hard=settings.rounds_codes).z, latent.z)


@pytest.mark.parametrize("settings", FAMILIES.values(), ids=FAMILIES)
def test_with_noise_of_scale_0_it_is_what_a_training_sample_spreads_around(settings):
    layer = LatentLayer(settings)
    silent = layer(outputs_for(layer), layer.family.noise(5, torch.Generator().manual_seed(1)), 0.0)
    assert torch.allclose(silent.z, layer(outputs_for(layer), hard=settings.rounds_samples).z, atol=1e-6)


@pytest.mark.parametrize("settings", FAMILIES.values(), ids=FAMILIES)
def test_hard_samples_and_rounded_codes_are_values_and_the_posterior_agrees(settings):
    if not settings.is_discrete:
        pytest.skip("has no values")
    layer = LatentLayer(settings)
    latent, values = layer(outputs_for(layer), hard=True), settings.values(layer)
    assert (values.diff() >= 0).all()  # in rising order
    posterior = settings.posterior(latent)
    assert torch.allclose(posterior.sum(2), torch.ones(5, 3))
    likeliest = values.gather(1, posterior.argmax(2).T).T
    assert torch.equal(latent.z, likeliest)
    if settings.rounds_codes:
        assert torch.equal(latent.mean, likeliest)


@pytest.mark.parametrize("settings", FAMILIES.values(), ids=FAMILIES)
def test_noise_depends_on_the_generator_alone(settings):
    layer = LatentLayer(settings)
    one, same, other = (layer.family.noise(4, torch.Generator().manual_seed(seed)) for seed in (7, 7, 8))
    assert torch.equal(one, same)
    assert torch.equal(one, other) == (not one.numel())  # what is rounded and not drawn has none
    assert one.numel() or isinstance(settings, Rounded)


def test_gaussian_latents_against_torch():
    layer = LatentLayer(Gaussian(num_latents=3))
    outputs = outputs_for(layer)
    mean, log_variance = outputs.unflatten(1, (3, 2)).unbind(2)
    posterior = Normal(mean, (log_variance / 2).exp())
    noise = layer.family.noise(5, torch.Generator().manual_seed(1))
    latent = layer(outputs, noise, 1.0)
    assert torch.allclose(latent.kl, kl_divergence(posterior, Normal(0.0, 1.0)), atol=1e-6)
    assert torch.allclose(latent.variance, posterior.variance)
    assert torch.allclose(latent.z, mean + noise * posterior.stddev)
    cross = layer.cross_log_density(latent)
    assert torch.allclose(cross.diagonal().T, posterior.log_prob(latent.z), atol=1e-5)


def test_categorical_latents_against_torch():
    layer = LatentLayer(Categorical(num_latents=3, num_categories=7, low=0.0, high=6.0))
    outputs = outputs_for(layer)
    posterior = TorchCategorical(logits=outputs.unflatten(1, (3, 7)))
    latent = layer(outputs)
    values = torch.arange(7.0)
    assert torch.allclose(latent.mean, (posterior.probs * values).sum(2), atol=1e-5)
    expected = (posterior.probs * (values - latent.mean.unsqueeze(2)) ** 2).sum(2)
    assert torch.allclose(latent.variance, expected, atol=1e-4)
    prior = TorchCategorical(logits=torch.zeros(7))
    assert torch.allclose(latent.kl, kl_divergence(posterior, prior), atol=1e-6)
    assert abs(layer.family.prior_variance - 4.0) < 1e-6  # (7² - 1) / 12


def test_hard_samples_are_positions_with_the_gradient_of_soft_ones():
    layer = LatentLayer(Categorical(num_latents=3, num_categories=7))
    outputs = outputs_for(layer).requires_grad_()
    noise = layer.family.noise(5, torch.Generator().manual_seed(1))
    hard = layer(outputs, noise, 1.0, hard=True)
    assert torch.isin(hard.z, layer.positions).all()
    soft = layer(outputs, noise, 1.0)
    assert torch.equal(hard.sample.argmax(2), soft.sample.argmax(2))
    (hard_slope,) = torch.autograd.grad(hard.z.sum(), outputs)
    (soft_slope,) = torch.autograd.grad(soft.z.sum(), outputs)
    assert torch.allclose(hard_slope, soft_slope, atol=1e-6)


def test_masked_categories_have_no_probability_and_no_gradient():
    active = torch.ones(3, 7, dtype=torch.bool)
    active[0, 1:6] = False
    layer = LatentLayer(Categorical(num_latents=3, num_categories=7))
    layer.active.copy_(active)
    outputs = outputs_for(layer).requires_grad_()
    latent = layer(outputs, layer.family.noise(5, torch.Generator().manual_seed(1)), 2.0)
    masked = ~active.expand(5, 3, 7)
    assert (latent.parameters.exp()[masked] == 0).all()
    assert (latent.sample[masked] == 0).all()
    cross = layer.cross_log_density(latent)
    (latent.z.sum() + latent.kl.sum() + latent.variance.sum() + cross.sum()).backward()
    slopes = outputs.grad.unflatten(1, (3, 7))
    assert slopes.isfinite().all()
    assert (slopes[masked] == 0).all()
    assert (slopes[~masked] != 0).any()
    assert latent.kl[:, 0].max() <= torch.log(torch.tensor(2.0)) + 1e-6  # uniform over two active categories


def test_positions_never_train_and_are_saved():
    layer = LatentLayer(Categorical(num_latents=2, num_categories=5))
    assert not layer.positions.requires_grad
    assert torch.allclose(layer.positions, torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0]))
    assert set(layer.state_dict()) == {"positions", "active"}


def test_the_noise_grows_along_a_cosine_for_categorical_latents_only():
    layer = LatentLayer(Categorical())
    assert layer.family.noise_scale(0, 100) == 0.5
    assert abs(layer.family.noise_scale(50, 100) - 1.25) < 1e-9
    assert layer.family.noise_scale(99, 100) < layer.family.noise_scale(100, 100) == 2.0
    assert Gaussian().noise_scale(50, 100) == 1.0
