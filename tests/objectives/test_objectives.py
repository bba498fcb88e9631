import pytest
import torch

from lddr import losses
from lddr.latents import latents
from lddr.networks.latent_layer import LatentLayer
from lddr.objectives.annealed import Annealed
from lddr.objectives.autoencoder import Autoencoder
from lddr.objectives.dip import DipI, DipII
from lddr.objectives.elbo import Beta, Elbo
from lddr.objectives.factor import AdversarialCorrelation
from lddr.objectives.objective import Moment, mean_kl, objectives
from lddr.objectives.total_correlation import TotalCorrelation

LAYERS = {name: LatentLayer(latents[name](num_latents=3)) for name in latents}


def at(schedule, layer, verdict=None, drawn=None):
    """A moment of a training whose decoder gives one pixel, from one hidden layer."""
    return Moment(schedule, layer, lambda z: z.sum(1), lambda z: [z.sin().cumsum(1).square()], drawn, verdict)


@pytest.fixture(params=LAYERS)
def layer(request):
    return LAYERS[request.param]


@pytest.fixture
def latent(layer):
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(8, 3 * layer.family.outputs_per_latent, generator=generator).requires_grad_()
    return layer(outputs, layer.family.noise(8, generator), 1.0)


@pytest.mark.parametrize("name", list(objectives))
def test_every_objective_is_defined_for_every_family(name, layer, latent):
    if objectives[name].needs_densities and not layer.family.has_densities:
        pytest.skip("refused when it is configured")
    objective = objectives[name]()
    drawn = objective.draw(latent.z.shape, torch.Generator().manual_seed(0))
    penalties = objective.penalties(latent, at(5, layer, lambda latent: latent.z.mean(), drawn))
    assert all(value.shape == () and value.isfinite() for value in penalties.values())
    (slope,) = torch.autograd.grad(sum(penalties.values(), latent.mean.sum()), latent.mean)
    assert slope.isfinite().all()


def test_an_autoencoder_adds_nothing(layer, latent):
    assert Autoencoder().penalties(latent, at(0, layer)) == {}


def test_beta_1_and_no_weight_are_the_plain_bound(layer, latent):
    moment = at(0, layer, lambda latent: latent.z.mean())
    plain = sum(Elbo().penalties(latent, moment).values())
    assert torch.isclose(plain, mean_kl(latent))
    for same in (Beta(1.0), TotalCorrelation(1.0), AdversarialCorrelation(0.0), DipI(0.0), DipII(0.0)):
        if same.needs_densities and not layer.family.has_densities:
            continue
        assert torch.isclose(sum(same.penalties(latent, moment).values()), plain)


def test_weights_weigh(layer, latent):
    moment = at(0, layer, lambda latent: latent.z.sum())
    kl = mean_kl(latent)
    assert torch.isclose(Beta(3.0).penalties(latent, moment)["kl"], 3 * kl)
    assert torch.isclose(AdversarialCorrelation(7.0).penalties(latent, moment)["total_correlation"], 7 * latent.z.sum())
    if not layer.family.has_densities:
        return
    correlation = losses.total_correlation(layer.cross_log_density(latent))
    assert torch.isclose(TotalCorrelation(5.0).penalties(latent, moment)["total_correlation"], 4 * correlation)


def test_the_capacity_grows_linearly_and_stays(layer, latent):
    objective, kl = Annealed(capacity=20.0, capacity_weight=3.0, capacity_steps=100), mean_kl(latent)
    for step, capacity in ((0, 0.0), (50, 10.0), (100, 20.0), (500, 20.0)):
        penalty = objective.penalties(latent, at(objective.schedule(step), layer))["capacity"]
        assert torch.isclose(penalty, 3 * (kl - capacity).abs())


def test_dip_pulls_the_covariance_to_that_of_the_prior(layer):
    count = 20_000
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(count, 3, generator=generator) * layer.family.prior_variance**0.5
    flat = layer(torch.zeros(count, 3 * layer.family.outputs_per_latent))
    matched = type(flat)(mean, mean, lambda: torch.zeros(count, 3), flat.kl, flat.parameters, flat.sample)
    assert DipI(1.0).penalties(matched, at(0, layer))["covariance"] < 0.02
    assert DipII(1.0).penalties(matched, at(0, layer))["covariance"] < 0.02
    variance = torch.full((count, 3), layer.family.prior_variance)
    narrow = type(flat)(mean, 0 * mean, lambda: variance, flat.kl, flat.parameters, flat.sample)
    assert torch.isclose(DipI(1.0).penalties(narrow, at(0, layer))["covariance"], torch.tensor(30.0))
    assert DipII(1.0).penalties(narrow, at(0, layer))["covariance"] < 1e-6  # the variance makes up for it
