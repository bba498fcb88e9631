import math

import numpy as np
import pytest
import torch

from lddr.config import configure
from lddr.data.load import load_dataset
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
def test_each_latent_is_the_nearest_vector_of_its_codebook(shared):
    latent, outputs = latent_of(shared_codebook=shared), numbers(7, 6)
    books, vectors = latent.codebook.numpy(), outputs.numpy().reshape(7, 3, 2)
    assert books.shape == (1 if shared else 3, 5, 2)
    posterior = latent(outputs)
    for image in range(7):
        for place in range(3):
            book = books[0 if shared else place]
            nearest = ((book - vectors[image, place]) ** 2).sum(1).argmin()
            assert posterior.categories[image, place] == nearest
            assert posterior.mean[image, place] == pytest.approx(nearest / 2 - 1)
            assert np.allclose(posterior.expected().z[image, 2 * place : 2 * place + 2], book[nearest])
    assert torch.allclose(posterior.kl, torch.full((7, 3), math.log(5)))
    assert torch.equal(posterior.sample(latent.noise(7)).z, posterior.expected().z)
    assert torch.equal(posterior.expected(hard=False).z, outputs)


@pytest.mark.parametrize("shared", [True, False])
def test_codes_embed_to_the_vectors(shared):
    latent = latent_of(shared_codebook=shared)
    posterior = latent(numbers(7, 6))
    assert torch.equal(latent.embed(posterior.mean), posterior.expected().z)
    between = latent.embed(torch.tensor([[-0.75, 0.0, 1.0]]))[0, :2]
    assert torch.allclose(between, latent.codebook[0, :2].mean(0))


def test_the_gradient_passes_straight_through():
    latent, outputs, weights = latent_of(), numbers(7, 6).requires_grad_(), numbers(6, seed=3)
    (slope,) = torch.autograd.grad((latent(outputs).sample().z * weights).sum(), outputs)
    assert torch.equal(slope, weights.expand(7, -1))


def test_the_losses_draw_outputs_and_vectors_to_each_other():
    latent = latent_of(codebook_update="loss", quantisation_weight=3.0, commitment_weight=0.5)
    outputs = numbers(7, 6).requires_grad_()
    posterior = latent(outputs)
    found = latent.losses(posterior, posterior.sample())
    squared = (outputs - posterior.expected().z).square().sum(1).mean().item()
    assert found["commitment"].item() == pytest.approx(0.5 * squared)
    assert found["quantisation"].item() == pytest.approx(3 * squared)
    (by_outputs,) = torch.autograd.grad(found["commitment"], outputs)
    assert torch.allclose(by_outputs, 0.5 * 2 / 7 * (outputs - posterior.expected().z).detach())
    (by_book,) = torch.autograd.grad(found["quantisation"], latent.codebook)
    used = torch.zeros(5).index_add(0, posterior.categories.flatten(), torch.ones(21))
    assert torch.equal(by_book[0].abs().sum(1) > 0, used > 0)
    assert set(latent_of().losses(latent_of()(numbers(7, 6)), posterior.sample())) == {"commitment"}


@pytest.mark.parametrize("shared", [True, False])
def test_moving_averages_end_at_the_means_of_the_outputs(shared):
    """With the same batch again and again this is k-means."""
    latent, outputs = latent_of(shared_codebook=shared, ema_decay=0.5, restart_below=0), numbers(40, 6)
    for _ in range(200):
        posterior = latent(outputs)
        latent.after_step(posterior, posterior.sample())
    posterior = latent(outputs)
    vectors, categories = outputs.unflatten(1, (3, 2)), posterior.categories
    for book in range(1 if shared else 3):
        ours = (vectors, categories) if shared else (vectors[:, book], categories[:, book])
        for category in ours[1].unique():
            mean = ours[0][ours[1] == category].mean(0)
            assert torch.allclose(latent.codebook[book, category], mean, atol=1e-5)


def test_one_moving_average_by_hand():
    latent = VectorQuantised(num_latents=1, num_categories=2, embedding_size=1, ema_decay=0.75, restart_below=0)
    latent.codebook.copy_(torch.tensor([[[0.0], [10.0]]]))
    latent.use.copy_(torch.tensor([[4.0, 4.0]]))
    latent.sums.copy_(torch.tensor([[[0.0], [40.0]]]))
    posterior = latent(torch.tensor([[1.0], [2.0], [8.0], [3.0]]))
    latent.after_step(posterior, posterior.sample())
    assert latent.use.tolist() == [[3.75, 3.25]]  # 0.75 · 4 + 0.25 · 3 and · 1
    assert torch.allclose(latent.codebook, torch.tensor([[[1.5 / 3.75], [32 / 3.25]]]))  # (0.25 · 6), (30 + 0.25 · 8)


@pytest.mark.parametrize("update", ["ema", "loss"])
def test_vectors_that_nobody_uses_are_replaced_by_outputs_of_the_batch(update):
    latent = latent_of(codebook_update=update, restart_below=0.1, num_categories=4)
    with torch.no_grad():
        latent.codebook[0] = torch.tensor([[0.0, 0.0], [100, 100], [1, 1], [200, 200]])
    latent.use.copy_(torch.tensor([[5.0, 0.0, 5.0, 0.0]]))
    outputs = 0.4 * torch.rand(6, 6, generator=torch.Generator().manual_seed(0))
    before, posterior = latent.codebook.detach().clone(), latent(outputs)
    latent.after_step(posterior, posterior.sample())
    fresh = outputs.unflatten(1, (3, 2)).flatten(0, 1)
    assert torch.equal(latent.codebook[0, [1, 3]], fresh[:2])
    assert not latent.codebook.equal(before)
    assert (latent.use >= 0.1 * latent.use.mean()).all()
    if update == "loss":
        assert torch.equal(latent.codebook[0, [0, 2]], before[0, [0, 2]])


def test_the_first_batch_initialises_the_codebook():
    latent, outputs = latent_of(num_categories=20), 50 + numbers(30, 6)
    posterior = latent(outputs)
    latent.after_step(posterior, posterior.sample())
    assert (latent.codebook > 40).all()
    posterior = latent(outputs)
    assert len(posterior.categories.unique()) > 10


def test_the_seed_decides_the_initial_codebook_whose_vectors_differ():
    begun = [trainer_of(seed=seed).vae.latent.codebook for seed in (0, 0, 1)]
    assert torch.equal(begun[0], begun[1])
    assert not torch.equal(begun[0], begun[2])
    for codebook in (begun[0], VectorQuantised().codebook):
        assert len(codebook[0].unique(dim=0)) == 16
        assert codebook.abs().max() <= 1 / 16


def test_computing_changes_nothing():
    latent = latent_of().train()
    before = {name: tensor.clone() for name, tensor in latent.state_dict().items()}
    posterior = latent(numbers(7, 6))
    latent.losses(posterior, posterior.sample())
    assert all(torch.equal(tensor, before[name]) for name, tensor in latent.state_dict().items())


@pytest.mark.parametrize("settings", [{}, {"codebook_update": "loss"}, {"shared_codebook": False}])
def test_a_trainer_that_is_restored_goes_on_to_the_same_weights(settings):
    whole, first, second = (trainer_of(**settings) for _ in range(3))
    begun = whole.vae.latent.codebook.detach().clone()
    for number in range(6):
        step(whole, number)
    for number in range(3):
        step(first, number)
    second.restore({name: tensor.clone() for name, tensor in first.tensors().items()})
    for number in range(3, 6):
        step(second, number)
    ours, theirs = whole.tensors(), second.tensors()
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    assert not torch.equal(begun, whole.vae.latent.codebook)
    assert any(name.endswith("latent.use") for name in ours)


def test_a_step_that_is_not_applied_leaves_the_codebook_alone():
    trainer = trainer_of()
    step(trainer, 0)
    before = trainer.vae.latent.codebook.clone()
    with torch.no_grad():
        trainer.vae.decoder.last.bias.fill_(math.nan)
    step(trainer, 1)
    assert torch.equal(trainer.vae.latent.codebook, before)
