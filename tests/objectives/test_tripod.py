import pytest
import torch

from lddr import losses
from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.latents import latents
from lddr.latents.latent import Sample
from lddr.objectives import objectives
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer
from lddr.vae import Output

SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16, "initialiser": "truncated"}
OURS = ("klm", "nhp", "tripod")


def trainer_of(latent, objective, **settings):
    config = configure(None, "circles", "quick", latent=latent, objective=objective, **SMALL | settings)
    return Trainer(config, load_dataset("circles", 16), torch.device("cpu"))


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def batch_of(trainer, step=0):
    return Batches(trainer, load_dataset("circles", 16)).batch(step)


def output_of(trainer, batch):
    return trainer.vae(batch.images, batch.noise, batch.noise_scale)


def penalties_of(trainer, output, batch):
    return trainer.objective.penalties(output, batch.schedule, batch.random)


@pytest.mark.parametrize("decoder", ["deconvolution", "broadcast"])
def test_the_penalties_are_those_of_the_plain_formulas(decoder):
    """Second differences with f(z) in them, and a loop over layers and images."""
    weights = {"kl_weight": 0.5, "multi_information_weight": 3.0, "hessian_weight": 7.0}
    trainer = trainer_of("gaussian", "tripod", decoder=decoder, **weights)
    vae, batch = trainer.vae.double(), batch_of(trainer)
    posterior = vae.latent.posterior(vae.encoder(batch.images.double()).unflatten(1, (-1, 2)))
    sample = posterior.sample(batch.noise.double(), 1.0)
    z, steps = sample.z, 0.1 * (sample.z.std(0, correction=0) + 1e-6) * batch.random.double()
    at = [[[vae.decoder.hidden(z + sign * h) for sign in (-1, 0, 1)] for h in kind] for kind in steps]
    expected = 0
    for layer in range(len(at[0][0][0])):
        variances = []
        for kind in at:
            second = [(low[layer] - 2 * middle[layer] + high[layer]) / 0.1**2 for low, middle, high in kind]
            variances.append(torch.stack(second).var(0).mean())
        expected += variances[0] / (variances[1] + 1e-10)
    output = Output(vae.decoder(z), posterior, sample, vae)
    penalties = trainer.objective.penalties(output, 0.0, batch.random.double())
    assert torch.isclose(penalties["hessian"], 7 * expected)
    assert torch.isclose(penalties["multi_information"], 3 * losses.multi_information(z, losses.deviation(z)))
    assert torch.isclose(penalties["kl"], 0.5 * posterior.mean_kl)


@pytest.mark.parametrize("latent", list(latents))
@pytest.mark.parametrize("name", OURS)
def test_gradients_reach_every_weight_they_should(latent, name):
    trainer = trainer_of(latent, name, kl_weight=0.0)
    trainer.step(batch_of(trainer))  # which initialises a codebook of vectors
    trainer.vae.zero_grad()
    batch = batch_of(trainer)
    penalties = penalties_of(trainer, output_of(trainer, batch), batch)
    assert set(penalties) == {"klm": {"multi_information"}, "nhp": {"hessian"}}.get(
        name, {"multi_information", "hessian"}
    )
    sum(penalties.values()).backward()
    assert all(weight.grad.abs().sum() > 0 for weight in trainer.vae.encoder.parameters())
    of_decoder = [weight.grad is not None for weight in trainer.vae.decoder.parameters()]
    assert of_decoder == ([False] * len(of_decoder) if name == "klm" else [True] * (len(of_decoder) - 2) + [False] * 2)


def test_the_deviation_is_that_of_the_codes_before_they_are_rounded():
    trainer = trainer_of("gaussian", "klm")
    posterior = trainer.vae.latent(torch.randn(16, trainer.vae.latent.num_parameters, generator=seeded(0)))
    z = posterior.mean
    output = Output(z, posterior, Sample(z.round(), unrounded=z), trainer.vae)
    found = trainer.objective.penalties(output, 0.0, None)["multi_information"]
    weight = trainer.objective.multi_information_weight
    assert torch.isclose(found, weight * losses.multi_information(z.round(), losses.deviation(z)))


def test_a_decoder_without_hidden_layers_is_a_sentence():
    trainer = trainer_of("gaussian", "nhp")
    batch = batch_of(trainer)
    output = output_of(trainer, batch)
    trainer.vae.decoder = torch.nn.Flatten()
    with pytest.raises(ValueError, match=r"the Hessian penalty needs a decoder with a method hidden\(z\)"):
        trainer.objective(output, batch.images)


def test_directions_are_a_function_of_seed_and_step():
    trainer, same, other = (trainer_of("gaussian", "nhp", seed=seed) for seed in (0, 0, 1))
    assert torch.equal(batch_of(trainer, 3).random, batch_of(same, 3).random)
    assert not torch.equal(batch_of(trainer, 3).random, batch_of(trainer, 4).random)
    assert not torch.equal(batch_of(trainer, 3).random, batch_of(other, 3).random)
    assert batch_of(trainer_of("gaussian", "klm")).random is None


@pytest.mark.parametrize("name", OURS)
def test_codes_that_never_move_have_finite_gradients(name):
    trainer = trainer_of("gaussian", name)
    vae, batch = trainer.vae, batch_of(trainer)
    outputs = torch.zeros(16, vae.latent.num_parameters, requires_grad=True)
    posterior = vae.latent(outputs)
    output = Output(outputs, posterior, posterior.expected(), vae)
    penalties = objectives[name]().build().penalties(output, 0.0, batch.random)
    (slope,) = torch.autograd.grad(sum(penalties.values()), outputs)
    assert slope.isfinite().all()
    assert all(value.isfinite() for value in penalties.values())
