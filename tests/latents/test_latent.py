import pytest
import torch
from torch.distributions import Categorical as TorchCategorical
from torch.distributions import Normal, kl_divergence

from lddr import losses
from lddr.latents import latents
from lddr.latents.categorical import Categorical
from lddr.latents.gaussian import Gaussian
from lddr.latents.latent import Latent, Posterior
from lddr.latents.quantised import Rounded, VectorQuantised


def initialised(name):
    latent = latents[name](num_latents=3).build()
    latent.initialise(torch.Generator().manual_seed(2))
    return latent


def quantises(latent, setting):
    """Whether it quantises in training (hard) or at test time (hard_codes)."""
    return isinstance(latent, Rounded | VectorQuantised) or getattr(latent, setting, False)


LATENTS = {name: initialised(name) for name in latents}
LATENTS |= {f"categorical, {name}": Categorical(num_latents=3, **{name: True}) for name in ("hard", "learn_positions")}
LEARNED = {"codebook": {"codebook"}, "quantised": {"positions"}, "categorical, learn_positions": {"positions"}}


@pytest.fixture(params=LATENTS)
def latent(request):
    return LATENTS[request.param]


def outputs_for(latent, batch=5):
    return torch.randn(batch, latent.num_parameters, generator=torch.Generator().manual_seed(0))


def noise_for(latent, batch=5):
    return latent.noise(batch, torch.Generator().manual_seed(1))


def test_every_latent_gives_the_same_shapes(latent):
    posterior = latent(outputs_for(latent))
    sample = posterior.sample(noise_for(latent))
    assert sample.z.shape == (5, latent.width)
    for tensor in (posterior.mean, posterior.variance, posterior.kl):
        assert tensor.shape == (5, 3)
        assert tensor.isfinite().all()
    assert (posterior.kl >= 0).all()
    assert (posterior.variance >= 0).all()
    assert torch.isclose(posterior.mean_kl, posterior.kl.sum() / 5)
    if latent.has_densities:
        assert posterior.cross_log_density(sample).shape == (5, 5, 3)
    else:
        with pytest.raises(NotImplementedError):
            posterior.cross_log_density(sample)
    assert latent.discriminator_input(sample)[0].numel() == latent.discriminator_width
    assert latent.embed(posterior.mean).shape == (5, latent.width)


@pytest.mark.parametrize("name", latents)
def test_it_is_built_on_the_meta_device_first_in_a_process_that_loads_a_model(name):
    losses.positions_variance.cache_clear()
    with torch.device("meta"):
        latent = latents[name]().build()
    assert latent.prior_variance == latents[name]().build().prior_variance


@pytest.mark.parametrize("name", LATENTS)
def test_only_learned_values_are_weights(name):
    assert {each for each, _ in LATENTS[name].named_parameters()} == LEARNED.get(name, set())


def test_without_noise_the_decoder_gets_the_codes(latent):
    posterior = latent(outputs_for(latent))
    assert torch.allclose(posterior.expected().z, latent.embed(posterior.mean), atol=1e-6)
    assert torch.equal(posterior.expected(hard=quantises(latent, "hard_codes")).z, posterior.expected().z)


def test_with_noise_of_scale_0_it_is_what_training_samples_vary_around(latent):
    posterior = latent(outputs_for(latent))
    silent = posterior.sample(noise_for(latent), 0.0)
    assert torch.allclose(silent.z, posterior.expected(hard=quantises(latent, "hard")).z, atol=1e-6)


def test_hard_samples_and_rounded_codes_are_values_and_the_posterior_agrees(latent):
    if not latent.is_discrete:
        pytest.skip("has no values")
    posterior, values = latent(outputs_for(latent)), latent.values()
    assert (values.diff() >= 0).all()  # in rising order
    assert torch.allclose(posterior.parameters.sum(2), torch.ones(5, 3))
    likeliest = values.gather(1, posterior.parameters.argmax(2).T).T
    assert torch.allclose(posterior.expected(hard=True).z, latent.embed(likeliest), atol=1e-6)
    if latent.width == latent.num_latents:
        assert torch.equal(posterior.expected(hard=True).z, likeliest)
    assert torch.equal(posterior.categories, posterior.parameters.argmax(2))
    if quantises(latent, "hard_codes"):
        assert torch.equal(posterior.mean, likeliest)


def test_noise_depends_on_the_generator_alone(latent):
    one, same, other = (latent.noise(4, torch.Generator().manual_seed(seed)) for seed in (7, 7, 8))
    assert torch.equal(one, same)
    assert torch.equal(one, other) == (not one.numel())  # what is rounded and not sampled has none
    assert one.numel() or isinstance(latent, Rounded | VectorQuantised)


def test_a_sample_without_noise_given_draws_its_own(latent):
    posterior = latent(outputs_for(latent))
    torch.manual_seed(0)
    one, other = posterior.rsample(), posterior.rsample()
    torch.manual_seed(0)
    assert torch.equal(posterior.rsample(), one)
    assert torch.equal(one, other) == isinstance(latent, Rounded | VectorQuantised)


def test_an_encoder_with_the_wrong_number_of_outputs_is_a_sentence(latent):
    with pytest.raises(ValueError, match=rf"the encoder must give {latent.num_parameters} outputs for each image"):
        latent(torch.zeros(5, latent.num_parameters + 1))


def test_gaussian_latents_against_torch():
    latent = Gaussian(num_latents=3)
    outputs = outputs_for(latent)
    mean, log_variance = outputs.unflatten(1, (3, 2)).unbind(2)
    expected = Normal(mean, (log_variance / 2).exp())
    noise, posterior = noise_for(latent), latent(outputs)
    sample = posterior.sample(noise, 1.0)
    assert torch.allclose(posterior.kl, kl_divergence(expected, Normal(0.0, 1.0)), atol=1e-6)
    assert torch.allclose(posterior.variance, expected.variance)
    assert torch.equal(posterior.parameters, torch.stack([posterior.mean, posterior.variance], 2))
    assert torch.allclose(sample.z, mean + noise * expected.stddev)
    cross = posterior.cross_log_density(sample)
    assert torch.allclose(cross.diagonal().T, expected.log_prob(sample.z), atol=1e-5)


def test_categorical_latents_against_torch():
    latent = Categorical(num_latents=3, num_categories=7, low=0.0, high=6.0)
    outputs = outputs_for(latent)
    expected = TorchCategorical(logits=outputs.unflatten(1, (3, 7)))
    posterior = latent(outputs)
    values = torch.arange(7.0)
    assert torch.allclose(posterior.parameters, expected.probs, atol=1e-6)
    assert torch.allclose(posterior.mean, (expected.probs * values).sum(2), atol=1e-5)
    variance = (expected.probs * (values - posterior.mean.unsqueeze(2)) ** 2).sum(2)
    assert torch.allclose(posterior.variance, variance, atol=1e-4)
    prior = TorchCategorical(logits=torch.zeros(7))
    assert torch.allclose(posterior.kl, kl_divergence(expected, prior), atol=1e-6)
    assert abs(latent.prior_variance - 4.0) < 1e-6  # (7² - 1) / 12


def test_hard_samples_are_positions_with_the_gradient_of_soft_ones():
    latent = Categorical(num_latents=3, num_categories=7)
    outputs = outputs_for(latent).requires_grad_()
    noise = noise_for(latent)
    hard, soft = latent(outputs).sample(noise, 1.0, hard=True), latent(outputs).sample(noise, 1.0)
    assert torch.isin(hard.z, latent.positions).all()
    assert torch.equal(hard.weights.argmax(2), soft.weights.argmax(2))
    (hard_slope,) = torch.autograd.grad(hard.z.sum(), outputs)
    (soft_slope,) = torch.autograd.grad(soft.z.sum(), outputs)
    assert torch.allclose(hard_slope, soft_slope, atol=1e-6)


def test_masked_categories_have_no_probability_and_no_gradient():
    active = torch.ones(3, 7, dtype=torch.bool)
    active[0, 1:6] = False
    latent = Categorical(num_latents=3, num_categories=7)
    latent.active.copy_(active)
    outputs = outputs_for(latent).requires_grad_()
    posterior = latent(outputs)
    sample = posterior.sample(noise_for(latent), 2.0)
    masked = ~active.expand(5, 3, 7)
    assert (posterior.parameters[masked] == 0).all()
    assert (sample.weights[masked] == 0).all()
    cross = posterior.cross_log_density(sample)
    (sample.z.sum() + posterior.kl.sum() + posterior.variance.sum() + cross.sum()).backward()
    slopes = outputs.grad.unflatten(1, (3, 7))
    assert slopes.isfinite().all()
    assert (slopes[masked] == 0).all()
    assert (slopes[~masked] != 0).any()
    assert posterior.kl[:, 0].max() <= torch.log(torch.tensor(2.0)) + 1e-6  # uniform over two active categories


def test_positions_never_train_and_are_saved():
    latent = Categorical(num_latents=2, num_categories=5)
    assert not latent.positions.requires_grad
    assert torch.allclose(latent.positions, torch.tensor([-1.0, -0.5, 0.0, 0.5, 1.0]))
    assert set(latent.state_dict()) == {"positions", "active"}


def test_the_noise_grows_along_a_cosine_for_categorical_latents_only():
    latent = Categorical()
    assert latent.noise_scale(0, 100) == 0.5
    assert abs(latent.noise_scale(50, 100) - 1.25) < 1e-9
    assert latent.noise_scale(99, 100) < latent.noise_scale(100, 100) == 2.0
    assert Gaussian().noise_scale(50, 100) == 1.0


class Pairs(Latent):
    """Latents of two numbers each for the decoder: a code and its square."""

    prior_variance = 1.0

    def __init__(self, num_latents):
        super().__init__(num_latents, parameters_per_latent=1, numbers_per_latent=2)

    def posterior(self, parameters):
        raise NotImplementedError

    def noise(self, batch, generator=None, device=None):
        raise NotImplementedError

    def values(self):
        return torch.zeros(self.num_latents, 2)

    def embed(self, codes):
        return torch.stack([codes, codes.square()], 2).flatten(1)


def test_the_numbers_of_a_latent_stay_together_for_a_discriminator():
    from lddr.latents.latent import Sample

    latent, codes = Pairs(3), torch.randn(4, 3)
    assert (latent.num_parameters, latent.width) == (3, 6)
    shown = latent.discriminator_input(Sample(latent.embed(codes)))
    assert torch.equal(shown, torch.stack([codes, codes.square()], 2))  # (batch, latents, numbers)


def test_a_posterior_without_densities_says_which_constant_to_set():
    class Plain(Posterior):
        def sample(self, noise=None, scale=1.0, hard=None):
            raise NotImplementedError

        def expected(self, hard=None):
            raise NotImplementedError

    with pytest.raises(NotImplementedError, match="set has_densities = False in its latent"):
        Plain().cross_log_density(None)
