"""Latents that are several numbers for the decoder go through everything a user can do with a model."""

import math

import numpy as np
import pytest
import torch

import lddr
from lddr import losses
from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.explorer.open_model import open_model
from lddr.latents import latents
from lddr.models import models
from lddr.objectives import objectives
from lddr.report.pages import write_card
from lddr.runs.index import read_run
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer

LATENTS = ("von_mises", "one_hot", "vector_quantised")
LONG = pytest.mark.long
QUIET = lddr.Machine(quiet=True, threads=1)
SMALL = {"preset": "quick", "resolution": 16, "width": 4, "batch_size": 16}


@pytest.fixture(scope="module", params=LATENTS)
def model(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    return lddr.train("circles", latent=request.param, steps=20, out=out, machine=QUIET, **SMALL)


@pytest.fixture(scope="module")
def images():
    dataset = load_dataset("circles", 16)
    return dataset.images(np.arange(0, len(dataset), 301))


def test_codes_have_one_number_for_each_latent_and_lead_to_images(model, images):
    codes = model.represent(images)
    assert codes.shape == (len(images), 2)
    with torch.no_grad():
        pixels = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
        expected = model.vae.decode(model.vae.encode(pixels).expected().z).permute(0, 2, 3, 1).numpy()
    assert np.allclose(model.decode(codes), expected, atol=1e-5)
    assert np.allclose(model.reconstruct(images), expected, atol=1e-5)
    assert model.posterior(images).shape[:2] == codes.shape
    if model.is_discrete:
        categories = model.categories(images)
        assert np.allclose(model.decode(categories), expected, atol=1e-5)


def test_a_traversal_changes_one_latent(model, images):
    values = model.values_of(1)
    pictures = model.traverse(images[0], 1)
    code = model.represent(images[:1])
    for value, picture in zip(values, pictures, strict=True):
        code[0, 1] = value
        assert np.allclose(model.decode(code)[0], picture, atol=1e-6)
    assert np.ptp(pictures, axis=0).max() > 1e-4


def test_it_is_saved_loaded_and_scored(model, images, tmp_path):
    model.save(tmp_path)
    assert np.array_equal(lddr.Trained.load(tmp_path).represent(images), model.represent(images))
    few = {"mig": {"samples": 300}, "elbo": {"batches": 2}, "gap": {"batches": 2}, "pipe": {"train": 64, "test": 64}}
    wanted = [name for name in few if model.is_discrete or name != "gap"]
    settings = {name: few[name] for name in wanted}
    scores = lddr.evaluate(load_dataset("circles", 16), model, wanted, settings=settings, quiet=True)
    assert all(math.isfinite(scores[name]["score"]) for name in wanted)


def test_the_explorer_opens_it(model, images):
    shown = open_model(model.folder, "cpu")
    about = shown.description()["latents"]
    seen = shown.encode({"index": 7})
    assert np.array_equal(shown.decode(seen["values"]), shown.decode(list(map(float, seen["values"]))))
    for latent in about:
        assert shown.traverse(seen["values"], latent["number"]).shape[1] == 16 * len(latent["values"])
        if not model.is_discrete:
            assert latent["range"] == [-math.pi, math.pi]
    assert len(shown.latent_space()["codes"]) > 2


@pytest.mark.parametrize(
    "model", ["vector_quantised", *(pytest.param(name, marks=LONG) for name in LATENTS[:2])], indirect=True
)
def test_its_card_shows_it(model, tmp_path):
    page, missing = write_card(read_run(model.folder), tmp_path)
    drawn = {path.stem for path in (page.parent / "figures").iterdir()}
    assert {"traversals", "reconstructions"} <= drawn
    assert ("posterior" in drawn) == model.is_discrete
    assert "Traversals" not in missing


@pytest.mark.parametrize(
    "objective",
    [pytest.param(name, marks=() if name in ("factor", "tc", "tripod") else LONG) for name in objectives],
)
@pytest.mark.parametrize("latent", LATENTS)
def test_every_objective_trains_it_and_a_restored_trainer_goes_on_alike(latent, objective):
    if objectives[objective].needs_densities and not latents[latent].has_densities:
        pytest.skip("it has no densities")
    if objectives[objective].needs_pairs and not latents[latent].can_share:
        pytest.skip("its posteriors cannot be shared")
    config = configure(latent=latent, objective=objective, dataset="circles", steps=9, **SMALL)
    dataset = load_dataset("circles", 16)
    whole, resumed = (Trainer(config, dataset, torch.device("cpu")) for _ in range(2))
    batches = Batches(whole, dataset)
    terms = [whole.step(batches.batch(step)) for step in range(2)][-1]
    assert all(value.isfinite() for value in terms.values())
    resumed.restore({name: tensor.clone() for name, tensor in whole.tensors().items()})
    for trainer in (whole, resumed):
        trainer.step(batches.batch(2))
    ours, theirs = whole.tensors(), resumed.tensors()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


@pytest.mark.parametrize(
    ("latent", "loss"),
    [("von_mises", "cosine"), ("one_hot", "masked"), pytest.param("one_hot", "cross-entropy", marks=LONG)],
)
def test_labels_can_supervise_it(latent, loss):
    model = lddr.train("circles", latent=latent, supervision=loss, labels=100, steps=5, machine=QUIET, **SMALL)
    assert model.config.supervision.loss == loss


@pytest.mark.parametrize("name", ["vq-vae", "one-hot-vae", "von-mises-vae"])
def test_it_has_a_name(name):
    assert models[name].latent in LATENTS
    assert configure(name, "circles").model == name


def test_multi_information_of_latents_with_two_numbers_by_loops():
    z = torch.randn(30, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z[:, 1] = z[:, 0] + 0.1 * z[:, 1]
    deviation, width = losses.deviation(z).numpy(), (4 / 6 / 30) ** (1 / 8)
    total = 0.0
    for point in z.numpy():
        apart = ((z.numpy() - point) / deviation) ** 2
        joint = np.exp(-apart.sum(1) / 2 / width**2).mean() / width**4
        marginals = [np.exp(-apart[:, pair].sum(1) / 2).mean() for pair in ([0, 1], [2, 3])]
        total += math.log(joint / math.prod(marginals)) / 30
    assert losses.multi_information(z, losses.deviation(z), latents=2).item() == pytest.approx(total)
    assert losses.multi_information(z, losses.deviation(z)).item() > total + 0.1  # as if each number were a latent


def test_the_hessian_penalty_does_not_count_second_derivatives_inside_a_latent():
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(3_000, 4, generator=generator, dtype=torch.float64)
    directions = losses.directions((3_000, 4), generator, numbers=2).double()
    around = losses.neighbours(z, torch.ones(4, dtype=torch.float64), directions)
    inside = losses.hessian_ratio((around[:, 0] * around[:, 1] + around[:, 2] ** 2).unsqueeze(1))
    across = losses.hessian_ratio((around[:, 0] * around[:, 2]).unsqueeze(1))
    assert inside == pytest.approx(0, abs=1e-9)
    assert across == pytest.approx(1, abs=0.1)
