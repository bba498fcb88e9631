import pytest
import torch

from lddr.models.latent import latents
from lddr.objectives import terms
from lddr.objectives.losses import (
    Annealed,
    Beta,
    DipI,
    DipII,
    Elbo,
    Factor,
    Moment,
    TotalCorrelation,
    mean_kl,
    objectives,
)

FAMILIES = {name: latents[name](num_latents=3).build() for name in latents}


@pytest.fixture(params=FAMILIES)
def family(request):
    return FAMILIES[request.param]


@pytest.fixture
def latent(family):
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(8, 3 * family.outputs_per_latent, generator=generator).requires_grad_()
    return family(outputs, family.noise(8, generator), 1.0)


@pytest.mark.parametrize("name", list(objectives))
def test_every_objective_is_defined_for_every_family(name, family, latent):
    moment = Moment(step=5, family=family, density_ratio=lambda z: z.mean())
    penalties = objectives[name]().penalties(latent, moment)
    assert all(value.shape == () and value.isfinite() for value in penalties.values())
    (slope,) = torch.autograd.grad(torch.stack(list(penalties.values())).sum(), latent.mean, allow_unused=True)
    assert sum(penalties.values()).requires_grad
    assert slope is None or slope.isfinite().all()


def test_beta_1_and_no_weight_are_the_plain_bound(family, latent):
    moment = Moment(0, family, lambda z: z.mean())
    plain = sum(Elbo().penalties(latent, moment).values())
    assert torch.isclose(plain, mean_kl(latent))
    for same in (Beta(1.0), TotalCorrelation(1.0), Factor(0.0), DipI(0.0), DipII(0.0)):
        assert torch.isclose(sum(same.penalties(latent, moment).values()), plain)


def test_weights_weigh(family, latent):
    moment = Moment(0, family, lambda z: z.sum())
    kl = mean_kl(latent)
    assert torch.isclose(Beta(3.0).penalties(latent, moment)["kl"], 3 * kl)
    assert torch.isclose(Factor(7.0).penalties(latent, moment)["total_correlation"], 7 * latent.z.sum())
    correlation = terms.total_correlation(family.cross_log_density(latent))
    assert torch.isclose(TotalCorrelation(5.0).penalties(latent, moment)["total_correlation"], 4 * correlation)


def test_the_capacity_grows_linearly_and_stays(family, latent):
    objective, kl = Annealed(capacity=20.0, capacity_weight=3.0, capacity_steps=100), mean_kl(latent)
    for step, capacity in ((0, 0.0), (50, 10.0), (100, 20.0), (500, 20.0)):
        penalty = objective.penalties(latent, Moment(step, family))["capacity"]
        assert torch.isclose(penalty, 3 * (kl - capacity).abs())


def test_dip_pulls_the_covariance_to_that_of_the_prior(family):
    count = 20_000
    generator = torch.Generator().manual_seed(0)
    mean = torch.randn(count, 3, generator=generator) * family.prior_variance**0.5
    flat = family(torch.zeros(count, 3 * family.outputs_per_latent))
    matched = type(flat)(mean, mean, torch.zeros(count, 3), flat.kl, flat.parameters, flat.sample)
    assert DipI(1.0).penalties(matched, Moment(0, family))["covariance"] < 0.02
    assert DipII(1.0).penalties(matched, Moment(0, family))["covariance"] < 0.02
    narrow = type(flat)(
        mean, 0 * mean, torch.full((count, 3), family.prior_variance), flat.kl, flat.parameters, flat.sample
    )
    assert torch.isclose(DipI(1.0).penalties(narrow, Moment(0, family))["covariance"], torch.tensor(30.0))
    assert DipII(1.0).penalties(narrow, Moment(0, family))["covariance"] < 1e-6  # the variance makes up for it
