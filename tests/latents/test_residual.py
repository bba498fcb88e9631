"""Residual vector quantisation, against loops."""

import numpy as np
import pytest
import torch

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.latents.quantised import VectorQuantised
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer

SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16}


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def latent_of(**settings):
    latent = VectorQuantised(**{"num_latents": 3, "num_categories": 5, "embedding_size": 2} | settings)
    with torch.no_grad():
        latent.codebook.copy_(numbers(*latent.codebook.shape, seed=1))
    return latent


def trainer_of(**settings):
    config = configure("vq-vae", "circles", "quick", **SMALL | settings)
    return Trainer(config, load_dataset("circles", 16), torch.device("cpu"))


def step(trainer, number):
    trainer.step(Batches(trainer, load_dataset("circles", 16)).batch(number))


@pytest.mark.parametrize("shared", [True, False])
def test_residual_levels_quantise_what_is_left(shared):
    latent = latent_of(num_latents=4, residual_levels=2, shared_codebook=shared)
    outputs, books = numbers(7, 4), latent.codebook.numpy()
    assert (latent.num_parameters, latent.width) == (4, 4)
    assert books.shape == (2 if shared else 4, 5, 2)
    posterior = latent(outputs)
    for image in range(7):
        for vector in range(2):
            rest, total = outputs[image, 2 * vector : 2 * vector + 2].numpy(), np.zeros(2)
            for level in range(2):
                book = books[level if shared else 2 * vector + level]
                nearest = ((book - rest) ** 2).sum(1).argmin()
                assert posterior.categories[image, 2 * vector + level] == nearest
                rest, total = rest - book[nearest], total + book[nearest]
            assert np.allclose(posterior.expected().z[image, 2 * vector : 2 * vector + 2], total, atol=1e-6)
    assert torch.allclose(latent.embed(posterior.mean), posterior.expected().z)


def test_more_residual_levels_come_nearer_to_the_outputs():
    outputs, errors = numbers(200, 2), []
    for levels in (1, 2, 4):
        latent = VectorQuantised(levels, 8, 2, residual_levels=levels, ema_decay=0.5)
        for _ in range(50):
            posterior = latent(outputs)
            latent.after_step(posterior, posterior.sample())
        errors.append((latent(outputs).expected().z - outputs).square().mean().item())
    assert errors[0] > 2 * errors[1] > 4 * errors[2]


def test_residual_losses_and_gradients():
    latent = latent_of(num_latents=2, residual_levels=2, codebook_update="loss", commitment_weight=1.0)
    outputs, weights = numbers(7, 2).requires_grad_(), numbers(2, seed=3)
    posterior = latent(outputs)
    sample = posterior.sample()
    (slope,) = torch.autograd.grad((sample.z * weights).sum(), outputs, retain_graph=True)
    assert torch.equal(slope, weights.expand(7, -1))
    first, second = latent.codebook[0, posterior.categories[:, 0]], latent.codebook[1, posterior.categories[:, 1]]
    expected = ((outputs - first) ** 2).sum(1) + ((outputs - first - second) ** 2).sum(1)
    found = latent.losses(posterior, sample)
    assert found["commitment"].item() == pytest.approx(expected.mean().item(), rel=1e-5)
    assert found["quantisation"].item() == pytest.approx(expected.mean().item(), rel=1e-5)
    seen = latent.discriminator_input(sample)
    assert torch.allclose(seen, torch.stack([first, second], 1))
    assert seen.shape[1] * seen.shape[2] == latent.discriminator_width


def test_levels_that_do_not_divide_the_latents_are_refused():
    with pytest.raises(UserError, match=r"num_latents \(3\) must be a multiple of residual_levels \(2\)"):
        latent_of(residual_levels=2)


@pytest.mark.parametrize("objective", ["autoencoder", "factor"])
def test_a_residual_quantiser_trains(objective):
    config = configure(
        latent="vector_quantised",
        objective=objective,
        dataset="circles",
        preset="quick",
        num_latents=4,
        residual_levels=4,
        **SMALL,
    )
    trainer = Trainer(config, load_dataset("circles", 16), torch.device("cpu"))
    before = trainer.vae.latent.codebook.clone()
    step(trainer, 0)
    assert not torch.equal(before, trainer.vae.latent.codebook)
