import pytest
import torch

from lddr import losses
from lddr.latents import latents
from lddr.latents.categorical import Categorical
from lddr.latents.latent import Posterior
from lddr.likelihoods import likelihoods
from lddr.objectives import objectives
from lddr.objectives.elbo import Annealed, Autoencoder, Beta, Elbo
from lddr.objectives.objective import AdversarialObjective, Loss
from lddr.objectives.total_correlation import AdversarialCorrelation, DipI, DipII, TotalCorrelation
from lddr.vae import VAE, Output

PIXELS = 4


class Decoder(torch.nn.Module):
    """Four pixels, from one hidden layer."""

    def __init__(self, inputs):
        super().__init__()
        self.last = torch.nn.Linear(inputs, PIXELS)

    def hidden(self, z):
        return [z.sin().cumsum(1).square()]

    def forward(self, z):
        return self.last(self.hidden(z)[0]).unflatten(1, (1, 2, 2))


def vae_with(latent, likelihood="bernoulli"):
    torch.manual_seed(0)
    latent.initialise(torch.Generator().manual_seed(0))
    encoder = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(PIXELS, latent.num_parameters))
    return VAE(encoder, Decoder(latent.width), latent, likelihood)


VAES = {name: vae_with(latents[name](num_latents=3).build()) for name in latents}
IMAGES = torch.rand(8, 1, 2, 2, generator=torch.Generator().manual_seed(0))


@pytest.fixture(params=VAES)
def vae(request):
    return VAES[request.param].train()


@pytest.fixture
def output(vae):
    vae.zero_grad()
    return vae(IMAGES, vae.latent.noise(8, torch.Generator().manual_seed(1)))


def fits(objective, vae):
    return vae.latent.has_densities or not objective.needs_densities


@pytest.mark.parametrize("name", list(objectives))
def test_every_objective_is_defined_for_every_latent(name, vae, output):
    objective = objectives[name]().build().attach(vae.latent)
    if not fits(objective, vae):
        with pytest.raises(ValueError, match=f"needs densities, which {type(vae.latent).__name__} latents do not have"):
            objective(output, IMAGES)
        return
    loss = objective(output, IMAGES, step=5)
    assert all(value.shape == () and value.isfinite() for value in loss.terms.values())
    assert not any(value.requires_grad for value in loss.terms.values())
    loss.backward()
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in vae.parameters())
    assert vae.encoder[1].weight.grad.abs().sum() > 0
    assert (loss.discriminator is not None) == isinstance(objective, AdversarialObjective)


def test_the_total_is_the_weighted_reconstruction_and_all_penalties(vae, output):
    objective = Beta(beta=3.0)
    objective.reconstruction_weight = 5.0
    loss = objective(output, IMAGES)
    own = vae.latent.losses(output.posterior, output.sample)
    reconstruction = losses.bernoulli_reconstruction(output.reconstruction, IMAGES)
    kl = output.posterior.kl.sum(1).mean()
    assert torch.isclose(loss.reconstruction, reconstruction)
    assert torch.isclose(loss.total, 5 * reconstruction + 3 * kl + sum(own.values(), torch.zeros(())))
    assert loss.item() == loss.total.item()
    assert list(loss.terms) == ["loss", "elbo", "reconstruction", "kl", *own]
    assert torch.isclose(loss.terms["kl"], kl)  # without its weight
    assert torch.isclose(loss.terms["elbo"], -reconstruction - kl)
    more = loss.plus(extra=torch.tensor(7.0))
    assert torch.isclose(more.total, loss.total + 7)
    assert list(more.terms)[-1] == "extra"
    assert "extra" not in loss.terms


def test_a_loss_without_penalties_is_the_reconstruction():
    assert Loss(torch.tensor(3.0), torch.tensor(1.0), {}, 2.0).total == 6


@pytest.mark.parametrize("name", list(likelihoods))
def test_the_reconstruction_is_that_of_the_likelihood(name):
    vae = vae_with(Categorical(num_latents=3), name)
    output = vae(IMAGES)
    loss = Elbo()(output, IMAGES)
    assert torch.isclose(loss.reconstruction, vae.likelihood.pixels(output.reconstruction, IMAGES).sum() / 8)


def test_an_autoencoder_adds_nothing(output):
    assert Autoencoder().penalties(output, 0, None) == {}


def penalties_of(objective, output):
    """With a discriminator whose score is the mean of its inputs."""
    if isinstance(objective, AdversarialObjective):
        return objective.adversarial_penalties(output, output.z.mean())
    return objective.penalties(output, 0, None)


def test_beta_1_and_no_weight_are_the_plain_bound(vae, output):
    plain = sum(Elbo().penalties(output, 0, None).values())
    assert torch.isclose(plain, output.posterior.mean_kl)
    for same in (Beta(1.0), TotalCorrelation(1.0), AdversarialCorrelation(0.0), DipI(0.0), DipII(0.0)):
        if fits(same, vae):
            assert torch.isclose(sum(penalties_of(same, output).values()), plain)


def test_weights_weigh(vae, output):
    kl = output.posterior.mean_kl
    assert torch.isclose(penalties_of(Beta(3.0), output)["kl"], 3 * kl)
    of_critic = penalties_of(AdversarialCorrelation(7.0), output)["total_correlation"]
    assert torch.isclose(of_critic, 7 * output.z.mean())
    if not vae.latent.has_densities:
        return
    correlation = losses.total_correlation(output.posterior.cross_log_density(output.sample))
    assert torch.isclose(penalties_of(TotalCorrelation(5.0), output)["total_correlation"], 4 * correlation)


def test_the_capacity_grows_linearly_and_stays(output):
    objective, kl = Annealed(capacity=20.0, capacity_weight=3.0, capacity_steps=100), output.posterior.mean_kl
    for step, capacity in ((0, 0.0), (50, 10.0), (100, 20.0), (500, 20.0)):
        penalty = objective(output, IMAGES, step).penalties["capacity"]
        assert torch.isclose(penalty, 3 * (kl - capacity).abs())
    assert torch.isclose(objective(output, IMAGES, 500, schedule=10.0).penalties["capacity"], 3 * (kl - 10).abs())


class Given(Posterior):
    """One whose means and variances are what they are."""

    def __init__(self, mean, variance):
        self.mean, self.variance, self.kl = mean, variance, torch.zeros_like(mean)

    def sample(self, noise=None, scale=1.0, hard=None):
        raise NotImplementedError

    def expected(self, hard=None):
        raise NotImplementedError


def test_dip_pulls_the_covariance_to_that_of_the_prior(vae):
    count, prior_variance = 20_000, vae.latent.prior_variance
    mean = torch.randn(count, 3, generator=torch.Generator().manual_seed(0)) * prior_variance**0.5

    def found(objective, mean, variance):
        posterior = Given(mean, torch.full((count, 3), variance))
        return objective.penalties(Output(mean, posterior, None, vae), 0, None)["covariance"]

    assert found(DipI(1.0), mean, 0.0) < 0.02
    assert found(DipII(1.0), mean, 0.0) < 0.02
    assert torch.isclose(found(DipI(1.0), 0 * mean, prior_variance), torch.tensor(30.0))
    assert found(DipII(1.0), 0 * mean, prior_variance) < 1e-6  # the variance makes up for it


def test_each_loss_has_gradients_for_its_own_weights_alone(vae, output):
    objective = AdversarialCorrelation(5.0, discriminator_width=6, discriminator_layers=1).attach(vae.latent)
    loss = objective(output, IMAGES)
    loss.discriminator.backward()
    own = [weight.grad.clone() for weight in objective.discriminator.parameters()]
    assert all(gradient.abs().sum() > 0 for gradient in own)
    assert all(weight.grad is None for weight in vae.parameters())
    loss.backward()
    assert all(map(torch.equal, own, [weight.grad for weight in objective.discriminator.parameters()]))
    assert vae.encoder[1].weight.grad.abs().sum() > 0


def test_the_score_is_the_density_ratio_and_its_gradient_that_of_the_whole_network(vae, output):
    objective = AdversarialCorrelation(5.0, discriminator_width=6).attach(vae.latent)
    shown = vae.latent.discriminator_input(output.sample)
    plain = 5 * losses.density_ratio(objective.discriminator(shown.flatten(1)))
    for penalties in (objective(output, IMAGES).penalties, objective.penalties(output, 0.0, None)):
        assert torch.isclose(penalties["total_correlation"], plain, atol=1e-7)
        weight = vae.encoder[1].weight
        slopes = [
            torch.autograd.grad(each, weight, retain_graph=True)[0] for each in (penalties["total_correlation"], plain)
        ]
        assert torch.allclose(*slopes, rtol=1e-4, atol=1e-7)
        assert slopes[0].abs().sum() > 0


def test_random_numbers_come_from_who_asks_or_from_torch(vae, output):
    objective = AdversarialCorrelation(discriminator_width=6).attach(vae.latent)
    order = objective.draw(vae.latent, 8, torch.Generator().manual_seed(3))
    one, same = (objective(output, IMAGES, random=order).discriminator for _ in range(2))
    assert torch.equal(one, same)
    torch.manual_seed(0)
    one = objective(output, IMAGES).discriminator
    torch.manual_seed(0)
    assert torch.equal(one, objective(output, IMAGES).discriminator)


def test_a_discriminator_that_nobody_built_is_a_sentence(output):
    with pytest.raises(ValueError, match=r"has no discriminator yet; call attach\(latent\) before training"):
        AdversarialCorrelation()(output, IMAGES)
