"""The presets of other discrete models are the published settings, in our units."""

import math

import pytest
import torch

from lddr.config import Training, configure
from lddr.data.load import load_dataset
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer


@pytest.mark.parametrize(
    ("dataset", "numbers"), [("dsprites", 64 * 64), ("color_dsprites", 64 * 64 * 3), ("shapes3d", 64 * 64 * 3)]
)
@pytest.mark.parametrize("model", ["fsq-ae", "qlae", "tripod"])
def test_the_reconstruction_is_a_mean_over_pixels_and_channels(model, dataset, numbers):
    config = configure(model, dataset)
    assert config.training.reconstruction_weight == 1 / numbers
    assert configure(model, dataset, resolution=32).training.reconstruction_weight == 4 / numbers
    assert config.training.clip == 1


def test_qlae_as_published():
    config = configure("qlae", "shapes3d")
    assert (config.latent.num_categories, config.latent.num_latents) == (10, 12)  # twice the factors
    assert (config.latent.quantisation_weight, config.latent.commitment_weight) == (0.01, 0.01)
    assert configure("qlae", "dsprites").latent.commitment_weight == 0.001
    training = config.training
    assert (training.weight_decay, training.learning_rate, training.batch_size) == (0.1, 1e-3, 128)
    assert (training.steps, training.schedule) == (200_000, "constant")
    assert training.clip_of == "weights"  # gradients of biases and values are not clipped


@pytest.mark.parametrize(
    ("dataset", "latents", "information", "hessian"),
    [
        ("shapes3d", 12, 1e-4, 1e-2),
        ("rooms", 12, 1e-4, 1e-2),
        ("mpi3d_toy", 14, 1e-8, 1e-4),
        ("dsprites", 10, 1e-4, 1e-2),
    ],
)
def test_tripod_as_published(dataset, latents, information, hessian):
    config = configure("tripod", dataset)
    objective, training = config.objective, config.training
    assert (objective.multi_information_weight, objective.hessian_weight) == (information, hessian)
    assert objective.kl_weight == 0
    assert (config.latent.num_categories, config.latent.num_latents) == (12, latents)  # twice the factors
    assert config.latent == configure("fsq-ae", dataset).latent
    assert (training.learning_rate, training.batch_size, training.steps) == (2e-4, 64, 250_000)
    assert (training.clip, training.weight_decay, training.schedule) == (1, 0, "constant")
    assert training.clip_of == "all"


def test_factor_qvae_as_published():
    """Mean over pixels + 1e-3 · mean KL of 12 latents + 1e-4 · TC, divided by 1e-3 / 12."""
    config = configure("factor-qvae", "shapes3d")
    weight = 1e-3 / 12
    assert config.training.reconstruction_weight == pytest.approx(1 / (64 * 64 * 3) / weight)
    assert config.objective.gamma == pytest.approx(1e-4 / weight)
    assert (config.latent.num_latents, config.latent.num_categories) == (12, 64)
    assert (config.training.batch_size, config.training.learning_rate) == (512, 1e-3)
    network = config.objective.build().attach(config.latent.build()).discriminator.layers
    assert [layer.out_features for layer in network if hasattr(layer, "out_features")] == 5 * [1000] + [2]
    assert [layer.negative_slope for layer in network if hasattr(layer, "negative_slope")] == 5 * [0.2]


def test_qvae_as_published():
    qvae, factor_qvae = (configure(model, "shapes3d") for model in ("qvae", "factor-qvae"))
    assert (qvae.training.batch_size, qvae.training.steps) == (256, 100_000)
    assert qvae.latent == factor_qvae.latent
    assert qvae.training.reconstruction_weight == factor_qvae.training.reconstruction_weight


def test_factor_qvae_has_its_own_weights_and_latents_on_mpi3d():
    """Mean over pixels + 5e-5 · mean KL of 14 latents + 1e-6 · TC."""
    config, weight = configure("factor-qvae", "mpi3d_real"), 5e-5 / 14
    assert config.latent.num_latents == 14
    assert config.training.reconstruction_weight == pytest.approx(1 / (64 * 64 * 3) / weight)
    assert config.objective.gamma == pytest.approx(1e-6 / weight)


def test_both_schedules_of_qvae_end_after_50_000_steps():
    """FactorQVAE stops there; QVAE trains for as long again, while its learning rate rises."""
    for model, steps, last in (("qvae", 100_000, 1e-3), ("factor-qvae", 50_000, 0.0)):
        training = configure(model, "shapes3d").training
        rates = [training.learning_rate_at(step) for step in (0, 25_000, 50_000)]
        assert rates == pytest.approx([1e-3, 5e-4, 0], abs=1e-12)
        assert training.steps == steps
        assert training.learning_rate_at(steps) == pytest.approx(last, abs=1e-12)


def test_the_discriminator_of_factor_qvae_learns_as_its_model_does():
    """Adam with torch's own betas, and at every step the model's learning rate."""
    settings = {"resolution": 16, "num_latents": 2, "discriminator_width": 16, "batch_size": 8, "steps": 4}
    config = configure("factor-qvae", "circles", **settings)
    trainer = Trainer(config, load_dataset("circles", 16), torch.device("cpu"))
    batches, rates = Batches(trainer, load_dataset("circles", 16)), []
    for step in range(4):
        trainer.step(batches.batch(step))
        rates.append(trainer.discriminator_optimizer.learning_rate)
    assert trainer.discriminator_optimizer.betas == (0.9, 0.999)
    assert rates == pytest.approx([1e-3 * (1 + math.cos(math.pi * step / 4)) / 2 for step in range(4)])
    assert rates == pytest.approx([config.training.learning_rate_at(step) for step in range(4)])


def test_the_balance_of_factor_qvae_is_that_of_the_latents_there_are():
    for preset in ("paper", "quick"):
        config = configure("factor-qvae", "shapes3d", preset, num_latents=5, resolution=64)
        assert config.objective.gamma == pytest.approx(0.5)
        assert config.training.reconstruction_weight == pytest.approx(5 / 1e-3 / (64 * 64 * 3))


def test_elsewhere_on_the_grid_the_weights_of_quantised_latents_go_with_the_reconstruction():
    published, other = configure("qlae", "shapes3d"), configure("quantised+factor", "shapes3d")
    ratios = [each.latent.commitment_weight / each.training.reconstruction_weight for each in (published, other)]
    assert ratios[0] == pytest.approx(ratios[1])
    assert other.training.steps == 300_000


def test_quick_runs_keep_the_balance_and_the_papers_points_know_nothing_of_it():
    for model in ("fsq-ae", "qlae", "tripod"):
        quick = configure(model, "dsprites", "quick")
        assert quick.training.reconstruction_weight == 1 / 32**2
        assert quick.training.steps == configure("dvae", "dsprites", "quick").training.steps
    assert configure("dvae", "dsprites").training == Training()


@pytest.mark.parametrize("model", ["fsq-ae", "qlae", "factor-qvae", "fsq+factor", "quantised+elbo", "codebook+tc"])
@pytest.mark.parametrize("preset", ["paper", "quick"])
def test_weights_begin_where_rounded_codes_learn(model, preset):
    begun = [configure(model, dataset, preset).networks for dataset in ("circles", "dsprites")]
    assert [networks.initialiser for networks in begun] == ["uniform", "truncated"]
    assert all(networks.mean_bias for networks in begun)
    assert configure("dvae", "circles", preset).networks.initialiser == "truncated"
    assert configure("dvae", "dsprites", preset).networks.mean_bias == (preset == "quick")


def test_rounded_codes_learn_on_dark_pictures():
    """Seed 1 is one of those whose codes all became the same, and stayed so, without the mean brightness."""

    def awake(**settings):
        config = configure("fsq-ae", "dsprites", "quick", seed=1, **settings)
        dataset = load_dataset("dsprites", config.resolution)
        trainer = Trainer(config, dataset, torch.device("cpu"))
        batches = Batches(trainer, dataset)
        for step in range(60):
            trainer.step(batches.batch(step))
        with torch.no_grad():
            return int((trainer.vae.encode(batches.batch(60).images).mean.std(dim=0) > 0).sum())

    assert awake() > 5
    assert awake(mean_bias=False) == 0
