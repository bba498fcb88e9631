import numpy as np
import pytest
import torch

from benchmarks.launch import Launches
from lddr.data.dataset import stream
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.metrics.elbo import gap
from lddr.metrics.metric import UndefinedError, metrics
from lddr.trained import Trained

CIRCLES = load_dataset("circles", 16)


@pytest.fixture(scope="module")
def trained(folder_of):
    return Trained.load(folder_of("dvae"))


def test_the_gap_is_what_the_public_functions_of_the_model_give(trained):
    result = gap(trained, CIRCLES, 5, batches=3, batch_size=8)
    images = np.concatenate([CIRCLES.draw(stream(5, "gap", number), 8) for number in range(3)]) / 255
    posterior = trained.posterior(images).astype(np.float64)
    positions = np.linspace(-1, 1, 64)

    def loss(z):
        pictures = trained.decode(z.astype(np.float32)).astype(np.float64)
        return -(images * np.log(pictures) + (1 - images) * np.log1p(-pictures)).sum((1, 2, 3))

    soft, hard = loss(posterior @ positions), loss(positions[posterior.argmax(2)])
    kl = (posterior * np.log(posterior * 64)).sum((1, 2)).mean()
    assert np.isclose(result.reconstruction_soft, soft.mean(), rtol=1e-4)
    assert np.isclose(result.reconstruction_hard, hard.mean(), rtol=1e-4)
    assert np.isclose(result.score, abs(soft.mean() - hard.mean()), rtol=1e-3)
    assert np.isclose(result.per_image, np.abs(soft - hard).mean(), rtol=1e-3)
    assert np.isclose(result.kl_soft, kl, rtol=1e-3)
    assert np.isclose(result.elbo_soft - result.elbo_hard, hard.mean() - soft.mean(), rtol=1e-3)
    assert np.isclose(result.kl_hard, 2 * np.log(64))
    assert np.isclose(result.confidence, posterior.max(2).mean(), rtol=1e-4)
    assert np.isclose(result.entropy, -(posterior * np.log(posterior)).sum(2).mean(), rtol=1e-4)
    assert result.interval[0] <= result.score <= result.interval[1]
    assert result.settings == {"batches": 3, "batch_size": 8, "variant": "paper"}


def test_an_image_that_is_drawn_often_is_looked_at_once(trained):
    few = ArrayDataset(CIRCLES.images(np.arange(0, 1600, 160)))
    shown = []
    few.images = lambda numbers, generator=None: shown.extend(numbers) or ArrayDataset.images(few, numbers)
    result = gap(trained, few, 5, batches=40, batch_size=8)
    assert sorted(shown) == list(range(10))  # of 320 draws
    drawn = np.concatenate([few.space.sample(stream(5, "gap", number), 8) for number in range(40)])
    alone = [ArrayDataset(ArrayDataset.images(few, [number])) for number in range(10)]
    one_by_one = np.array([gap(trained, dataset, 0, 1, 1).reconstruction_hard for dataset in alone])
    assert np.isclose(result.reconstruction_hard, one_by_one[drawn].mean(), rtol=1e-5)


def test_a_model_that_is_discrete_already_has_no_gap(trained):
    sure = Trained(trained.config, trained.vae, trained.image_shape)
    last = [layer for layer in sure.vae.encoder.modules() if isinstance(layer, torch.nn.Linear)][-1]
    kept = last.weight.detach().clone()
    with torch.no_grad():
        last.weight.mul_(1e6)
    result = gap(sure, CIRCLES, 0, 2, 8)
    with torch.no_grad():
        last.weight.copy_(kept)
    assert result.score < 1e-3
    assert result.confidence > 0.999
    assert np.isclose(result.kl_soft, result.kl_hard, rtol=1e-3)


def test_the_seed_decides_the_images(trained):
    first, again, other = (gap(trained, CIRCLES, seed, 2, 8) for seed in (0, 0, 1))
    assert first == again
    assert first.reconstruction_soft != other.reconstruction_soft


@pytest.mark.parametrize("model", ["factor-dvae", pytest.param("tc-dvae", marks=pytest.mark.long), "beta-dvae"])
def test_the_authors_variant_adds_what_the_training_loss_has(folder_of, model):
    settings = {"discriminator_width": 8} if model == "factor-dvae" else {}
    trained = Trained.load(folder_of(model, **settings))
    plain = gap(trained, CIRCLES, 0, 2, 8)
    full = gap(trained, CIRCLES, 0, 2, 8, "authors")
    assert plain.penalty_soft == 0
    soft, hard = (-full.elbo_soft + full.penalty_soft, -full.elbo_hard + full.penalty_hard)
    assert np.isclose(full.score, abs(soft - hard), rtol=1e-6)
    if model == "beta-dvae":  # β · KL is the same for both
        assert np.isclose(full.penalty_soft, 3 * full.kl_soft, rtol=1e-5)
        assert np.isclose(full.score, plain.score, rtol=1e-6)
    else:
        assert full.penalty_soft != full.penalty_hard


def test_the_total_correlation_is_the_discriminators(folder_of):
    trained = Trained.load(folder_of("factor-dvae", discriminator_width=8))
    result = gap(trained, CIRCLES, 0, 1, 8, "authors")
    codes = torch.from_numpy(trained.represent(CIRCLES.draw(stream(0, "gap", 0), 8)))
    with torch.no_grad():
        logits = trained.objective().discriminator(codes)
    assert np.isclose(result.penalty_soft, 10 * (logits[:, 0] - logits[:, 1]).mean().item(), rtol=1e-4)


@pytest.mark.parametrize("model", ["fsq-ae", pytest.param("qlae", marks=pytest.mark.long), "qvae"])
def test_of_codes_that_are_always_rounded_it_is_what_rounding_costs(folder_of, model):
    trained = Trained.load(folder_of(model))
    result = gap(trained, CIRCLES, 0, 1, 8)
    images = CIRCLES.draw(stream(0, "gap", 0), 8) / 255
    with torch.no_grad():
        here = torch.from_numpy(images).float().permute(0, 3, 1, 2)
        posterior = trained.vae.encode(here)
        soft = posterior.expected(hard=False)
        own = sum(trained.vae.latent.losses(posterior, soft).values())
    for codes, found in ((soft.z, result.reconstruction_soft), (trained.represent(images), result.reconstruction_hard)):
        pictures = trained.decode(codes).astype(np.float64)
        expected = -(images * np.log(pictures) + (1 - images) * np.log1p(-pictures)).sum((1, 2, 3)).mean()
        assert np.isclose(found, expected, rtol=1e-4)
    full, weight = gap(trained, CIRCLES, 0, 1, 8, "authors"), trained.config.training.reconstruction_weight
    kl = 0 if model == "qvae" else full.kl_soft  # which these do not train on
    assert np.isclose(full.penalty_soft, (weight - 1) * full.reconstruction_soft - kl + float(own), rtol=1e-4)


def test_what_has_no_gap_says_why(folder_of, tmp_path):
    with pytest.raises(UndefinedError, match="Gaussian latents have no values to round to"):
        gap(Trained.load(folder_of("vae")), CIRCLES, 0)
    with pytest.raises(UndefinedError, match="needs the model"):
        metrics["gap"].score({})
    Trained.load(folder_of("factor-dvae", discriminator_width=8)).save(tmp_path)
    with pytest.raises(UserError, match="without its discriminator"):
        gap(Trained.load(tmp_path), CIRCLES, 0, 1, 8, "authors")


@pytest.mark.parametrize("variant", ["paper", "authors"])
def test_it_is_worked_out_where_the_model_is_and_read_at_the_end(folder_of, variant):
    trained = Trained.load(folder_of("factor-dvae", discriminator_width=8)).to("meta")
    shares = []
    with Launches() as counter, pytest.raises(NotImplementedError, match="meta"):
        gap(trained, CIRCLES, 0, 3, 8, variant, shares.append)
    assert len(shares) == 3  # all batches, before anything was read
    assert sum(counter.reads.values()) == 1
    assert "addmm" not in counter.on_host
