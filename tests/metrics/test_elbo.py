import math
import shutil

import numpy as np
import pytest
import torch

from lddr.config import configure
from lddr.data.dataset import as_floats, stream
from lddr.data.load import load_dataset
from lddr.errors import UserError
from lddr.latents import latents
from lddr.metrics.elbo import bounds, elbo
from lddr.runs.evaluate import evaluate_run
from lddr.runs.folder import PRETRAINED, RunFolder
from lddr.runs.index import read_run
from lddr.selection.ranking import select
from lddr.trained import Trained
from lddr.training.batches import as_tensor, torch_stream
from lddr.training.trainer import Trainer

SMALL = {"resolution": 16, "width": 4, "steps": 20, "batch_size": 8}


class Enumerated:
    """All there is to know of the shipped model of 2 x 64 categories and 64 images, by sums over its 4,096 codes."""

    def __init__(self):
        self.trained = Trained.load("circles-dvae")
        self.dataset = RunFolder(PRETRAINED / "circles-dvae").dataset
        vae, drawn = self.trained.vae, self.dataset.draw(stream(0, "evaluation", 0), 64)
        self.images = as_tensor(as_floats(drawn), torch.device("cpu"))
        codes = torch.cartesian_prod(*vae.latent.values())  # (4096, 2)
        with torch.no_grad():
            logits = torch.cat([vae.decoder(some) for some in codes.split(512)]).double().flatten(1)
            found = vae.encode(self.images)
        pixels = self.images.double().flatten(1)
        likelihood = pixels @ logits.T + torch.nn.functional.logsigmoid(-logits).sum(1)  # log p(x | z), (64, 4096)
        posterior = found.parameters.double()
        joint = (posterior[:, 0, :, None] * posterior[:, 1, None, :]).flatten(1)
        self.log_evidence = likelihood.logsumexp(1) - math.log(len(codes))
        self.kl = found.kl.double().sum(1)
        expected = (joint * likelihood).sum(1)
        self.elbo = expected - self.kl
        self.deviation = (joint * (likelihood - expected[:, None]).square()).sum(1).sqrt()  # of one sample's

    def sampled(self, scale, hard, draws=32):
        """The ELBO of every image, from samples."""
        latent = self.trained.vae.latent
        noise = torch.stack([latent.noise(64, torch_stream(1, "test", draw)) for draw in range(draws)])
        with torch.no_grad():
            posterior = self.trained.vae.encode(self.images)
            outputs = [self.trained.vae.decoder(posterior.rsample(each, scale, hard)) for each in noise]
            errors = torch.stack([self.trained.vae.likelihood.per_image(each, self.images) for each in outputs])
        return -errors.double().mean(0) - self.kl


@pytest.fixture(scope="module")
def enumerated():
    return Enumerated()


def test_the_elbo_of_samples_lies_below_log_p_of_x(enumerated):
    for scale, hard in ((2.0, None), (1.0, True)):
        found = enumerated.sampled(scale, hard)
        assert found.mean() < enumerated.log_evidence.mean() - 5
        assert (found < enumerated.log_evidence + enumerated.deviation / math.sqrt(32)).all()


def test_without_noise_it_is_no_bound(enumerated):
    with torch.no_grad():
        logits = enumerated.trained.vae(enumerated.images).reconstruction
    pixels = torch.nn.functional.binary_cross_entropy_with_logits(logits, enumerated.images, reduction="none")
    noiseless = -pixels.double().sum((1, 2, 3)) - enumerated.kl
    assert (noiseless > enumerated.log_evidence).sum() >= 3
    found = elbo(enumerated.trained, enumerated.dataset, 0, batches=1, draws=1)
    assert found.noiseless == pytest.approx(noiseless.mean().item(), rel=1e-5)


def test_samples_of_the_posterior_have_the_exact_elbo(enumerated):
    assert (enumerated.elbo < enumerated.log_evidence).all()
    away = (enumerated.sampled(1.0, True) - enumerated.elbo) / (enumerated.deviation / math.sqrt(32))
    assert away.abs().max() < 5  # in standard errors
    assert away.mean().abs() < 3 / math.sqrt(len(away))
    many = elbo(enumerated.trained, enumerated.dataset, 0, batches=1, draws=32, sampling="posterior")
    assert many.score == pytest.approx(enumerated.elbo.mean().item(), abs=0.5)
    assert many.score == pytest.approx(-many.reconstruction - many.kl)


def test_it_goes_on_where_the_training_log_ends(enumerated):
    last = RunFolder(PRETRAINED / "circles-dvae").log[-1]
    found = elbo(enumerated.trained, enumerated.dataset, 0, batches=4)
    assert found.score == pytest.approx(last["elbo"], abs=0.5)
    assert found.noiseless > last["elbo"] + 3


def trainer_of(latent, **settings):
    config = configure(latent=latent, objective="elbo", dataset="circles", preset="quick", **SMALL | settings)
    return Trainer(config, load_dataset("circles", 16), torch.device("cpu"))


@pytest.mark.parametrize("latent", list(latents))
def test_every_family_has_both(latent):
    vae, dataset = trainer_of(latent).vae, load_dataset("circles", 16)
    found = bounds(vae, 20, dataset, batches=2)
    assert found == bounds(vae, 20, load_dataset("circles", 16), batches=2)  # the same images and noise for every run
    assert found["elbo_noiseless"] == -found["reconstruction"] - found["kl"]
    assert np.isfinite([value for name, value in found.items() if name != "codes"]).all()
    exact = bounds(vae, 20, dataset, batches=2, sampling="posterior")
    if latent == "gaussian":
        assert exact == found
    if latent in ("fsq", "quantised"):  # nothing is sampled
        assert found["elbo"] == exact["elbo"] == pytest.approx(found["elbo_noiseless"], rel=1e-6)


def test_the_mean_picture_is_measured_as_by_hand():
    vae, dataset = trainer_of("gaussian").vae, load_dataset("circles", 16)
    images = np.concatenate([dataset.draw(stream(0, "evaluation", number), 64) / 255 for number in range(16)])
    mean = np.clip(images.mean(0), 1e-300, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        nats = -np.nan_to_num(images * np.log(mean)) - np.nan_to_num((1 - images) * np.log1p(-mean))
    found, by_mean = bounds(vae, 20, dataset), nats.sum((1, 2, 3)).mean()
    assert found["mean_picture"] == pytest.approx(by_mean, rel=1e-6)
    assert found["explained"] == pytest.approx(1 - found["reconstruction"] / by_mean, rel=1e-5)  # a copy costs nothing


def test_the_noise_has_the_scale_at_the_end_of_the_training():
    still, noisy = (trainer_of("categorical", noise_end=end).vae for end in (0.0, 2.0))
    with torch.no_grad():
        for vae in (still, noisy):
            vae.encoder.head[-1].weight.mul_(50)
    dataset = load_dataset("circles", 16)
    found = bounds(still, 20, dataset, batches=2)
    assert found["elbo"] == pytest.approx(found["elbo_noiseless"], rel=1e-6)
    assert bounds(noisy, 20, dataset, batches=2)["elbo"] != pytest.approx(found["elbo"], rel=1e-6)


def test_a_run_of_an_older_version_gets_it_by_evaluation(tmp_path):
    older = tmp_path / "older"
    shutil.copytree(PRETRAINED / "circles-dvae", older)
    scores = RunFolder(older).scores
    known, noiseless = scores["training"].pop("elbo"), scores["training"].pop("elbo_noiseless")
    RunFolder(older).write_scores(scores["training"] | {"elbo": noiseless})
    run = read_run(older)
    assert "elbo" not in run.scores
    assert run.scores["elbo_noiseless"] == noiseless
    with pytest.raises(UserError, match="has no elbo; get it with: lddr evaluate RUN --metrics elbo"):
        select([run], "elbo")
    assert select([run], "elbo_noiseless").value == noiseless
    evaluate_run(older, ["elbo"], quiet=True, device="cpu")
    run = read_run(older)
    assert run.scores["elbo"] == pytest.approx(known, abs=0.01)  # the one of the same images and noise
    assert run.scores["elbo_noiseless"] == noiseless
    assert select([run], "elbo").value == run.scores["elbo"]
