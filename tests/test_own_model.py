"""Models made of a user's own modules, and lddr's parts in a user's own loop: what the docs promise, line by line."""

import numpy as np
import pytest
import torch
from torch import nn

import lddr
from lddr.runs.loop import Stopped

QUIET = lddr.Machine("cpu", 1, quiet=True)
IMAGES = np.random.default_rng(0).integers(0, 256, (40, 12, 20, 3), np.uint8)


class MyEncoder(nn.Sequential):
    def __init__(self, out_features, hidden=8):
        super().__init__(
            nn.Conv2d(3, hidden, 3, 2, 1), nn.BatchNorm2d(hidden), nn.Flatten(), nn.Linear(hidden * 60, out_features)
        )


class MyDecoder(nn.Sequential):
    def __init__(self, in_features):
        super().__init__(nn.Linear(in_features, 3 * 12 * 20), nn.Unflatten(1, (3, 12, 20)))


def composed(likelihood="bernoulli", seed=0, **settings):
    torch.manual_seed(seed)
    latent = lddr.latents.Categorical(num_latents=3, num_categories=8, **settings)
    return lddr.VAE(MyEncoder(latent.num_parameters), MyDecoder(latent.width), latent, likelihood)


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian", "laplace", "continuous_bernoulli"])
def test_a_composed_model_is_trained_in_place_and_loads_with_its_modules(tmp_path, likelihood):
    vae = composed(likelihood)
    before = {name: tensor.clone() for name, tensor in vae.state_dict().items()}
    model = lddr.train(IMAGES, vae, objective="tc", steps=6, batch_size=8, out=tmp_path, machine=QUIET)
    assert model.image_shape == (12, 20, 3)  # no preset scales images that only the user's networks take
    assert any(not torch.equal(before[name], tensor) for name, tensor in vae.state_dict().items())
    assert model.config.objective.name == "tc"
    other = composed(likelihood, seed=1)
    again = lddr.Trained.load(model.folder, encoder=other.encoder, decoder=other.decoder)
    assert np.array_equal(again.represent(IMAGES), model.represent(IMAGES))
    assert np.array_equal(again.reconstruct(IMAGES[:4]), model.reconstruct(IMAGES[:4]))


def test_without_its_modules_it_is_a_sentence_and_others_do_not_fit(tmp_path):
    model = lddr.train(IMAGES, composed(), steps=2, batch_size=8, out=tmp_path, machine=QUIET)
    with pytest.raises(lddr.UserError, match=r"an encoder of your own, MyEncoder; give it: Trained.load\(FOLDER, enc"):
        lddr.Trained.load(model.folder)
    wider = MyEncoder(24, hidden=9)
    with pytest.raises(lddr.UserError, match="does not fit"):
        lddr.Trained.load(model.folder, encoder=wider, decoder=MyDecoder(3))


def test_it_resumes_to_the_same_weights(tmp_path):
    whole = lddr.train(IMAGES, composed(), steps=30, batch_size=8, out=tmp_path / "whole", machine=QUIET)
    calls = []

    def stop(step, terms):
        calls.append(step)
        if step >= 15:
            raise KeyboardInterrupt

    settings = {"steps": 30, "batch_size": 8, "out": tmp_path / "parts"}
    often = lddr.Machine("cpu", 1, quiet=True, checkpoint_seconds=0.0)
    with pytest.raises((KeyboardInterrupt, Stopped)):
        lddr.train(IMAGES, composed(), machine=often, on_log=stop, **settings)
    resumed = lddr.train(IMAGES, composed(seed=7), machine=often, **settings)  # other initial weights do not matter
    assert calls
    for (name, one), other in zip(whole.vae.state_dict().items(), resumed.vae.state_dict().values(), strict=True):
        assert torch.equal(one, other), name


def test_another_architecture_is_another_run(tmp_path):
    one = lddr.train(IMAGES, composed(), steps=2, batch_size=8, out=tmp_path, machine=QUIET)
    vae = composed()
    wider = lddr.VAE(MyEncoder(24, hidden=9), vae.decoder, vae.latent)
    other = lddr.train(IMAGES, wider, steps=2, batch_size=8, out=tmp_path, machine=QUIET)
    assert one.folder != other.folder


def test_an_objective_may_be_a_module_and_the_discriminator_trains(tmp_path):
    objective = lddr.objectives.AdversarialCorrelation(gamma=3, discriminator_width=8)
    model = lddr.train(IMAGES, composed(), objective=objective, steps=3, batch_size=8, out=tmp_path, machine=QUIET)
    assert model.config.objective.settings["gamma"] == 3
    assert (model.folder / "discriminator.safetensors").exists()


@pytest.mark.parametrize(
    ("encoder", "decoder", "sentence"),
    [
        (MyEncoder(23), MyDecoder(3), r"encoder must give latent.num_parameters .* \(2, 24\), not \(2, 23\)"),
        (MyEncoder(24), MyDecoder(4), "networks do not take images of 12x20x3"),
        (MyEncoder(24), nn.Sequential(nn.Linear(3, 5)), r"decoder must give images .* not \(2, 5\)"),
    ],
)
def test_networks_that_do_not_fit_are_a_sentence_before_there_is_a_folder(tmp_path, encoder, decoder, sentence):
    vae = lddr.VAE(encoder, decoder, lddr.latents.Categorical(num_latents=3, num_categories=8))
    with pytest.raises(lddr.UserError, match=sentence):
        lddr.train(IMAGES, vae, steps=2, out=tmp_path, machine=QUIET)
    assert not list(tmp_path.iterdir())


def test_seeds_of_one_object_are_refused(tmp_path):
    with pytest.raises(lddr.UserError, match="train each seed with modules of its own"):
        lddr.train(IMAGES, composed(), steps=2, seeds=2, out=tmp_path, machine=QUIET)


def test_an_own_loop_learns():
    torch.manual_seed(0)
    vae, objective = composed(), lddr.objectives.TotalCorrelation(beta=4)
    optimizer = torch.optim.Adam(vae.parameters(), 1e-2)
    x = torch.from_numpy(IMAGES[:8]).permute(0, 3, 1, 2) / 255
    seen = []
    for _ in range(20):
        output = vae(x)
        loss = objective(output, x)
        assert set(loss.terms) == {"loss", "elbo", "reconstruction", "kl", "total_correlation"}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen.append(loss.item())
    assert np.mean(seen[-5:]) < np.mean(seen[:5])


def test_a_discriminator_in_an_own_loop():
    torch.manual_seed(0)
    vae = composed()
    objective = lddr.objectives.AdversarialCorrelation(discriminator_width=8)
    x = torch.rand(8, 3, 12, 20)
    with pytest.raises(ValueError, match=r"call attach\(latent\)"):
        objective(vae(x), x)
    objective.attach(vae.latent)
    loss = objective(vae(x), x)
    loss.backward()
    assert all(weight.grad is None for weight in objective.discriminator.parameters())
    loss.discriminator.backward()
    assert all(weight.grad is not None for weight in objective.discriminator.parameters())


def test_a_latent_in_any_network():
    latent = lddr.latents.Categorical(num_latents=3, num_categories=8)
    posterior = latent(torch.randn(5, latent.num_parameters))
    assert posterior.rsample().shape == (5, latent.width)
    assert posterior.kl.shape == posterior.mean.shape == posterior.categories.shape == (5, 3)


def test_scores_from_here():
    codes, factors = np.random.default_rng(0).random((1000, 3)), np.random.default_rng(1).integers(0, 3, (1000, 2))
    assert 0 <= lddr.metrics.mig(codes, factors).score < 0.1
    few = {"mig": {"samples": 1000}}
    named = lddr.evaluate("circles", lambda images: images.mean((1, 2)), ["mig"], settings=few, quiet=True)
    loaded = lddr.load_dataset("circles")
    assert named == lddr.evaluate(loaded, lambda images: images.mean((1, 2)), ["mig"], settings=few, quiet=True)
