import pytest
import torch

from lddr import losses
from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.latents import latents
from lddr.objectives.objective import Moment, mean_kl, objectives
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer

SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16, "initialiser": "truncated"}
OURS = ("klm", "nhp", "tripod")


def trainer_of(latent, objective, **settings):
    config = configure(None, "circles", "quick", latent=latent, objective=objective, **SMALL | settings)
    return Trainer(config, load_dataset("circles", 16), torch.device("cpu"))


def batch_of(trainer, step=0):
    return Batches(trainer, load_dataset("circles", 16)).batch(step)


@pytest.mark.parametrize("decoder", ["deconvolution", "broadcast"])
def test_the_penalties_are_those_of_the_plain_formulas(decoder):
    """Second differences with f(z) in them, and a loop over layers and images."""
    weights = {"kl_weight": 0.5, "multi_information_weight": 3.0, "hessian_weight": 7.0}
    trainer = trainer_of("gaussian", "tripod", decoder=decoder, **weights)
    vae, inputs = trainer.vae.double(), batch_of(trainer)
    latent = vae.encode(inputs.images.double(), inputs.noise.double(), 1.0)
    z, steps = latent.z, 0.1 * (latent.z.std(0, correction=0) + 1e-6) * inputs.drawn.double()
    at = [[[vae.decoder.hidden(z + sign * h) for sign in (-1, 0, 1)] for h in kind] for kind in steps]
    expected = 0
    for layer in range(len(at[0][0][0])):
        variances = []
        for kind in at:
            second = [(low[layer] - 2 * middle[layer] + high[layer]) / 0.1**2 for low, middle, high in kind]
            variances.append(torch.stack(second).var(0).mean())
        expected += variances[0] / (variances[1] + 1e-10)
    moment = Moment(0.0, vae.latent, vae.decoder, vae.decoder.hidden, inputs.drawn.double())
    penalties = trainer.config.objective.penalties(latent, moment)
    assert torch.isclose(penalties["hessian"], 7 * expected)
    assert torch.isclose(penalties["multi_information"], 3 * losses.multi_information(z, losses.deviation(z)))
    assert torch.isclose(penalties["kl"], 0.5 * mean_kl(latent))


@pytest.mark.parametrize("latent", list(latents))
@pytest.mark.parametrize("name", OURS)
def test_gradients_reach_every_weight_they_should(latent, name):
    trainer = trainer_of(latent, name, kl_weight=0.0)
    inputs = batch_of(trainer)
    z = trainer.vae.encode(inputs.images, inputs.noise, inputs.noise_scale)
    penalties = trainer.config.objective.penalties(z, trainer._moment(inputs))
    assert set(penalties) == {"klm": {"multi_information"}, "nhp": {"hessian"}}.get(
        name, {"multi_information", "hessian"}
    )
    sum(penalties.values()).backward()
    assert all(weight.grad.abs().sum() > 0 for weight in trainer.vae.encoder.parameters())
    of_decoder = [weight.grad is not None for weight in trainer.vae.decoder.parameters()]
    assert of_decoder == ([False] * len(of_decoder) if name == "klm" else [True] * (len(of_decoder) - 2) + [False] * 2)


def test_the_deviation_is_that_of_the_codes_before_they_are_rounded():
    trainer = trainer_of("gaussian", "klm")
    outputs = torch.randn(16, 2 * trainer.config.latent.num_latents, generator=torch.Generator().manual_seed(0))
    latent = trainer.vae.latent(outputs)
    rounded = type(latent)(
        latent.z.round(), latent.mean, latent.spread, latent.kl, latent.parameters, latent.sample, latent.z
    )
    (found,) = list(trainer.config.objective.penalties(rounded, None).values())[1:]
    assert torch.isclose(found, losses.multi_information(latent.z.round(), losses.deviation(latent.z)))


def test_directions_are_a_function_of_seed_and_step():
    trainer, same, other = (trainer_of("gaussian", "nhp", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(batch_of(trainer, 3).drawn, batch_of(same, 3).drawn)
    assert not torch.equal(batch_of(trainer, 3).drawn, batch_of(trainer, 4).drawn)
    assert not torch.equal(batch_of(trainer, 3).drawn, batch_of(other, 3).drawn)
    assert batch_of(trainer_of("gaussian", "klm")).drawn is None


@pytest.mark.parametrize("name", OURS)
def test_codes_that_never_move_have_finite_gradients(name):
    trainer = trainer_of("gaussian", name)
    outputs = torch.zeros(16, 2 * trainer.config.latent.num_latents, requires_grad=True)
    penalties = objectives[name]().penalties(trainer.vae.latent(outputs), trainer._moment(batch_of(trainer)))
    (slope,) = torch.autograd.grad(sum(penalties.values()), outputs)
    assert slope.isfinite().all()
    assert all(value.isfinite() for value in penalties.values())
