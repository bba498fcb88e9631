import numpy as np
import pytest
import torch

from lddr import losses
from lddr.config import configure
from lddr.data.in_memory import ArrayDataset
from lddr.data.load import load_dataset
from lddr.latents import latents
from lddr.latents.latent import usual_supervision
from lddr.likelihoods import likelihoods
from lddr.models import models
from lddr.objectives import objectives
from lddr.training.accelerator import AsynchronousTrainer, capture
from lddr.training.batches import Batches, torch_stream
from lddr.training.trainer import LOG_EVERY, LossAverages, Trainer, initialise_output_bias, log_interval

CPU = torch.device("cpu")
CIRCLES = load_dataset("circles", 16)
SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16, "mean_bias": False}
PLAIN = {"reconstruction_weight": 1.0, "schedule": "constant", "initialiser": "truncated"}  # whatever is quick
WITH_DISCRIMINATOR = ["factor-vae", "factor-dvae", "factor-qvae"]


def trainer_of(model, **settings):
    if model in WITH_DISCRIMINATOR:
        settings = {"discriminator_width": 20} | settings
    config = configure(model, "circles", "quick", **(SMALL | PLAIN | settings))
    return Trainer(config, CIRCLES, CPU)


def batch_of(trainer, step=0):
    return Batches(trainer, CIRCLES).batch(step)


def weights(module):
    return [parameter.detach().clone() for parameter in module.parameters()]


@pytest.mark.parametrize("model", WITH_DISCRIMINATOR)
def test_the_discriminators_loss_leaves_the_vae_alone_and_the_factor_term_the_discriminator(model):
    trainer = trainer_of(model, gamma=5.0)
    loss = trainer.loss(batch_of(trainer))
    loss.discriminator.backward()
    own = weights_gradients(trainer.discriminator)
    assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in own)
    assert all(gradient is None for gradient in weights_gradients(trainer.vae))
    loss.backward()
    for before, after in zip(own, weights_gradients(trainer.discriminator), strict=True):
        assert torch.equal(before, after)  # the VAE's loss has added nothing


@pytest.mark.parametrize("model", WITH_DISCRIMINATOR)
def test_the_encoders_gradient_is_that_of_the_plain_formula(model):
    trainer = trainer_of(model, gamma=5.0)
    batch = batch_of(trainer, 3)
    loss = trainer.loss(batch)
    loss.backward()
    ours = weights_gradients(trainer.vae)
    trainer.vae.zero_grad()
    latent = trainer.vae.latent
    output = trainer.vae(batch.images, latent.noise(16, torch_stream(0, "noise", 3)), latent.noise_scale(3, 50))
    samples = latent.discriminator_input(output.sample).flatten(1)
    ratio = losses.density_ratio(trainer.discriminator(samples))
    reconstruction = losses.bernoulli_reconstruction(output.reconstruction, batch.images)
    plain = reconstruction + output.posterior.mean_kl + 5.0 * ratio
    plain.backward()
    assert torch.isclose(plain, loss.total, rtol=1e-5)
    assert torch.isclose(loss.terms["total_correlation"], 5 * ratio, rtol=1e-4, atol=1e-6)
    for one, other in zip(ours, weights_gradients(trainer.vae), strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-5)


def weights_gradients(module):
    return [None if parameter.grad is None else parameter.grad.clone() for parameter in module.parameters()]


def some(cases, fast):
    """All cases, of which only the fast ones do not wait for `make test-long`."""
    return [pytest.param(case, marks=() if case in fast else pytest.mark.long) for case in cases]


EVERY_PART = {"annealed-dvae", "dip-dvae-i", "dip-vae-ii", "factor-qvae", "fsq-ae", "one-hot-vae", "qlae", "tc-dvae"}
EVERY_PART |= {"tripod", "vae", "von-mises-vae", "vq-vae"}


@pytest.mark.parametrize("model", some(models, EVERY_PART))
def test_a_step_depends_on_the_seed_the_step_and_the_weights_alone(model):
    one, two = trainer_of(model), trainer_of(model)
    for step in range(2):
        torch.manual_seed(step)  # the global generator must not matter
        for trainer in (one, two):
            trainer.step(batch_of(trainer, step))
            torch.rand(3)
    for a, b in zip(weights(one.vae), weights(two.vae), strict=True):
        assert torch.equal(a, b)
    other = trainer_of(model, seed=1)
    assert not torch.equal(weights(one.vae)[0], weights(other.vae)[0])


TRICKS = {"schedule": "cosine", "weight_decay": 0.1, "clip": 0.01}


@pytest.mark.parametrize(
    ("model", "settings"),
    [("vae", {}), ("factor-dvae", {}), ("categorical+tripod", TRICKS), ("qlae", {}), ("factor-qvae", TRICKS)],
)
def test_a_restored_trainer_resumes_to_the_same_weights(model, settings):
    whole = trainer_of(model, **settings)
    for step in range(4):
        whole.step(batch_of(whole, step))
        if step == 1:
            kept = {name: tensor.clone() for name, tensor in whole.tensors().items()}
    resumed = trainer_of(model, **settings)
    resumed.restore(kept)
    for step in range(2, 4):
        resumed.step(batch_of(resumed, step))
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, resumed.tensors()[name]), name


@pytest.mark.parametrize("latent", list(latents))
def test_an_autoencoder_learns_from_the_reconstruction_alone(latent):
    trainer = trainer_of(f"{latent}+autoencoder")
    loss = trainer.loss(batch_of(trainer))
    terms = loss.terms
    own = [terms[name] for name in terms if name not in ("loss", "elbo", "reconstruction", "kl")]  # of the latent
    assert torch.isclose(loss.total, sum(own, terms["reconstruction"]), rtol=1e-6)
    assert bool(own) == (latent in ("quantised", "vector_quantised"))
    assert terms["kl"].isfinite()  # reported, though it is not in the loss
    loss.backward()
    assert all(gradient.abs().sum() > 0 for gradient in weights_gradients(trainer.vae))


def test_terms_add_up():
    trainer = trainer_of("tc-dvae", beta=3.0)
    loss = trainer.loss(batch_of(trainer))
    terms = loss.terms
    assert torch.isclose(terms["elbo"], -terms["reconstruction"] - terms["kl"])
    assert torch.isclose(loss.total, terms["reconstruction"] + terms["kl"] + terms["total_correlation"])
    assert not any(term.requires_grad for term in terms.values())


LOSSES = [
    ("vae", "bce"),
    ("vae", "l2"),
    ("dvae", "cross-entropy"),
    ("dvae", "masked"),
    ("fsq-ae", "l2"),
    ("qlae", "l2"),
]


@pytest.mark.parametrize(("model", "loss"), LOSSES)
def test_supervision_pulls_the_risk_down(model, loss):
    trainer = trainer_of(model, supervision=loss, labels=50, omega=10.0, learning_rate=3e-3)
    batches = Batches(trainer, CIRCLES)
    risks = [trainer.step(batches.batch(step))["supervision"].item() for step in range(30)]
    share = 0.97 if loss == "bce" else 0.9  # with targets between 0 and 1 even a perfect guess has a cross-entropy
    assert np.mean(risks[-5:]) < share * np.mean(risks[:5])


def test_the_risk_is_that_of_an_image_or_of_the_batch():
    weights = {}
    for kind in ("image", "batch"):
        trainer = trainer_of("vae", supervision="l2", labels=50, omega=3.0, risk_of=kind)
        batch, latent = batch_of(trainer), trainer.vae.latent
        risk = latent.risk("l2", trainer.vae.encode(batch.labelled.images), batch.labelled.targets)
        weights[kind] = (trainer.loss(batch).terms["supervision"] / risk).item()
    assert weights["image"] == pytest.approx(3.0)
    assert weights["batch"] == pytest.approx(3.0 * 16)


@pytest.mark.parametrize("model", ["dvae", "vae"])
def test_the_penalty_on_free_latents_is_that_of_numpy_and_moves_only_them(model):
    loss = usual_supervision(latents[models[model].latent])
    trainer = trainer_of(model, supervision=loss, labels=50, num_latents=5, free_penalty=3.0)
    found = trainer.loss(batch_of(trainer))
    mean = found.output.posterior.mean
    table = np.cov(mean.detach().double().numpy().T, bias=True)
    pairs = [
        table[tied, free] ** 2 / (table[tied, tied] * table[free, free] + 1e-8) for tied in (0, 1) for free in (2, 3, 4)
    ]
    assert found.terms["free_penalty"].item() == pytest.approx(3.0 * sum(pairs), rel=1e-3)
    (slope,) = torch.autograd.grad(found.penalties["free_penalty"], mean)
    assert (slope[:, :2] == 0).all()
    assert (slope[:, 2:] != 0).any()


def test_without_a_weight_there_is_no_penalty_on_free_latents():
    trainer = trainer_of("dvae", supervision="masked", labels=50, num_latents=5)
    assert "free_penalty" not in trainer.loss(batch_of(trainer)).terms


def test_the_penalty_makes_free_latents_independent_of_tied_ones():
    def repeated(weight):
        trainer = trainer_of(
            "vae", supervision="bce", labels=50, num_latents=5, free_penalty=weight, learning_rate=3e-3
        )
        batches = Batches(trainer, CIRCLES)
        for step in range(40):
            trainer.step(batches.batch(step))
        means = trainer.vae.encode(batches.batch(99).images).mean
        return losses.squared_correlations(means[:, :2], means[:, 2:]).sum().item()

    assert repeated(1000.0) < 0.5 * repeated(0.0)


@pytest.mark.parametrize("model", ["dvae", "categorical+nhp"])  # a curvature of rounded numbers would be far off
def test_bf16_is_near_fp32(model):
    trainers = [trainer_of(model, precision=precision) for precision in ("fp32", "bf16")]
    fp32, bf16 = (trainer.loss(batch_of(trainer)).item() for trainer in trainers)
    assert abs(fp32 - bf16) < 0.02 * abs(fp32)
    assert fp32 != bf16


class InFloat32(torch.nn.Module):
    """A network whose outputs are those of float32 under autocast, too."""

    def __init__(self, network):
        super().__init__()
        self.network, self.hidden = network, getattr(network, "hidden", None)

    def forward(self, inputs):
        with torch.autocast("cpu", enabled=False):
            return self.network(inputs.float())


PAIRS = [
    f"{latent}+{objective}"
    for latent in latents
    for objective in objectives
    if latents[latent].has_densities or not objectives[objective].needs_densities
    if latents[latent].can_share or not objectives[objective].needs_pairs
]
FAST = [pair for pair in PAIRS if pair.endswith("+elbo")]
FAST += [f"categorical+{objective}" for objective in ("ada_gvae", "dip-ii", "factor", "tc", "tripod")]


@pytest.mark.parametrize("model", some(PAIRS, FAST))
def test_in_bf16_the_terms_of_equal_network_outputs_are_those_of_float32(model):
    settings = {"discriminator_width": 20} if model.endswith("+factor") else {}
    if model.endswith("+elbo") and (loss := usual_supervision(latents[model.removesuffix("+elbo")])):
        settings |= {"supervision": loss, "labels": 50}
    trainer = trainer_of(model, learning_rate=3e-3, **settings)
    for step in range(3):  # away from the initial weights, where many terms are almost 0
        trainer.step(batch_of(trainer, step))
    trainer.vae.encoder, trainer.vae.decoder = map(InFloat32, (trainer.vae.encoder, trainer.vae.decoder))
    if trainer.objective.discriminator is not None:
        trainer.objective.discriminator = InFloat32(trainer.objective.discriminator)
    found = []
    for precision in (None, torch.bfloat16):
        trainer.precision = precision
        trainer.vae.zero_grad()
        loss = trainer.loss(batch_of(trainer, 5))
        loss.backward()
        found.append(
            (loss.terms, torch.cat([each.flatten() for each in weights_gradients(trainer.vae) if each is not None]))
        )
    (terms, slope), (terms_in_bf16, slope_in_bf16) = found
    for name, term in terms.items():
        assert terms_in_bf16[name].dtype == torch.float32
        assert terms_in_bf16[name].item() == pytest.approx(term.item(), rel=1e-5), name
    assert torch.allclose(slope, slope_in_bf16, rtol=1e-4)


@pytest.mark.parametrize("model", ["tc-dvae", "factor-vae"])
def test_in_bf16_the_networks_compute_in_bfloat16(model):
    trainer, seen = trainer_of(model, precision="bf16"), {}
    networks = {"encoder": trainer.vae.encoder, "decoder": trainer.vae.decoder}
    if trainer.objective.discriminator is not None:
        networks["discriminator"] = trainer.objective.discriminator
    for name, network in networks.items():
        network.register_forward_hook(lambda *given, name=name: seen.update({name: given[2].dtype}))
    trainer.loss(batch_of(trainer))
    assert seen == dict.fromkeys(networks, torch.bfloat16)


def test_capturing_compiles_every_network(monkeypatch):
    trainer, compiled = trainer_of("factor-dvae"), []
    monkeypatch.setattr(torch.nn.Module, "compile", lambda module: compiled.append(module))
    capture(trainer)
    assert compiled == [trainer.vae.encoder, trainer.vae.decoder, trainer.discriminator]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:The .grad attribute", "ignore::DeprecationWarning")  # of torch's own tracing
def test_capturing_the_networks_changes_nothing_but_rounding(monkeypatch):
    plain, captured = trainer_of("factor-dvae"), trainer_of("factor-dvae")
    original = torch.nn.Module.compile  # the logic without a C++ compiler, which not every machine has
    monkeypatch.setattr(torch.nn.Module, "compile", lambda module: original(module, backend="eager"))
    capture(captured)
    for step in range(2):
        one, other = (trainer.step(batch_of(trainer, step))["loss"].item() for trainer in (plain, captured))
        assert abs(one - other) < 1e-3 * abs(one)
    assert list(captured.tensors()) == list(plain.tensors())


def test_the_weight_of_the_reconstruction_is_in_the_loss_and_not_in_what_is_reported():
    one, four = (trainer_of("dvae", reconstruction_weight=weight) for weight in (1.0, 4.0))
    loss, heavier = (trainer.loss(batch_of(trainer)) for trainer in (one, four))
    assert torch.isclose(heavier.total, loss.total + 3 * loss.terms["reconstruction"])
    assert torch.equal(heavier.terms["elbo"], loss.terms["elbo"])
    assert torch.equal(heavier.terms["reconstruction"], loss.terms["reconstruction"])


def test_the_learning_rate_follows_its_schedule():
    trainer = trainer_of("dvae", schedule="cosine", learning_rate=0.01, steps=4)
    for step, rate in enumerate([1.0, (2 + 2**0.5) / 4, 0.5, (2 - 2**0.5) / 4]):
        trainer.step(batch_of(trainer, step))
        assert trainer.optimizer.learning_rate == pytest.approx(0.01 * rate)


class Spoiled:
    """Makes the loss NaN at the third step."""

    calls = 0

    def loss(self, batch):
        self.calls += 1
        loss = super().loss(batch)
        return loss.plus(spoiled=torch.tensor(float("nan"))) if self.calls == 3 else loss


class SpoiledTrainer(Spoiled, Trainer):
    pass


class SpoiledAsynchronousTrainer(Spoiled, AsynchronousTrainer):
    pass


@pytest.mark.parametrize("kind", [SpoiledTrainer, SpoiledAsynchronousTrainer])
@pytest.mark.parametrize("model", ["dvae", "factor-vae"])
def test_a_loss_that_is_not_finite_and_all_after_it_leave_the_weights_alone(model, kind):
    """The loop stops at the first one; on an accelerator, it learns of it only later."""
    settings = {"weight_decay": 0.1} | ({"discriminator_width": 20} if model in WITH_DISCRIMINATOR else {})
    config = configure(model, "circles", "quick", **SMALL | settings)
    trainer = kind(config, CIRCLES, CPU)
    for step in range(2):
        trainer.step(batch_of(trainer, step))
    good = {name: tensor.clone() for name, tensor in trainer.tensors().items()}
    for step in range(2, 3 if trainer.checks_every_step else 5):
        trainer.step(batch_of(trainer, step))
    assert trainer.calls == (3 if trainer.checks_every_step else 5)
    assert all(torch.equal(tensor, good[name]) for name, tensor in trainer.tensors().items())


@pytest.mark.parametrize("model", ["dvae", "factor-vae"])
def test_a_trainer_that_never_waits_takes_the_same_steps(model):
    waiting = trainer_of(model, clip=1.0)
    blind = AsynchronousTrainer(waiting.config, CIRCLES, CPU)
    before = weights(blind.vae)
    for step in range(3):
        for trainer in (waiting, blind):
            trainer.step(batch_of(trainer, step))
    assert not torch.equal(before[0], weights(blind.vae)[0])
    assert all(torch.equal(tensor, blind.tensors()[name]) for name, tensor in waiting.tensors().items())


@pytest.mark.parametrize("decoder", ["deconvolution", "broadcast"])
def test_the_output_bias_may_be_initialised_to_the_mean_brightness(decoder):
    usual, bright = (trainer_of("dvae", decoder=decoder, mean_bias=on).vae for on in (False, True))
    brightness = CIRCLES.images(np.arange(1600)).mean() / 255
    assert torch.sigmoid(bright.decoder.last.bias).item() == pytest.approx(brightness, rel=0.05)
    assert not usual.decoder.last.bias.any()  # the authors' way
    with torch.no_grad():
        bright.decoder.last.bias.zero_()
    assert all(torch.equal(one, other) for one, other in zip(weights(usual), weights(bright), strict=True))


@pytest.mark.parametrize(("brightness", "bias"), [(0, 0.001), (255, 0.999)])
def test_the_output_bias_of_black_and_white_channels_is_finite(brightness, bias):
    vae = trainer_of("dvae").vae
    initialise_output_bias(vae, ArrayDataset(np.full((5, 16, 16, 1), brightness, np.uint8)))
    assert torch.sigmoid(vae.decoder.last.bias).item() == pytest.approx(bias, rel=1e-3)


@pytest.mark.parametrize("likelihood", list(likelihoods))
def test_every_likelihood_trains_and_its_output_bias_is_the_mean_brightness(likelihood):
    trainer = trainer_of("dvae", likelihood=likelihood, mean_bias=True, learning_rate=1e-3)
    brightness = CIRCLES.images(np.arange(1600)).mean() / 255
    assert trainer.vae.likelihood.mean(trainer.vae.decoder.last.bias).item() == pytest.approx(brightness, rel=0.05)
    learned = [weight.detach().clone() for weight in trainer.vae.likelihood.parameters()]
    batches = Batches(trainer, CIRCLES)
    found = [trainer.step(batches.batch(step))["loss"].item() for step in range(20)]
    assert np.mean(found[-5:]) < np.mean(found[:5])
    assert not any(map(torch.equal, learned, trainer.vae.likelihood.parameters()))


@pytest.mark.long
def test_latents_saturate_on_dark_images_unless_the_output_bias_is_their_brightness():
    kl = {}
    for mean_bias in (False, True):
        config = configure("dvae", "dsprites", "quick", mean_bias=mean_bias)
        dataset = load_dataset("dsprites", 32)
        trainer = Trainer(config, dataset, CPU)
        batches = Batches(trainer, dataset)
        for step in range(100):
            terms = trainer.step(batches.batch(step))
        kl[mean_bias] = terms["kl"].item()
    largest = config.latent.num_latents * np.log(config.latent.num_categories)
    assert kl[False] > 0.7 * largest
    assert kl[True] < 0.4 * largest


VALUES = np.random.default_rng(0).normal(size=(LOG_EVERY, 2)).astype(np.float32) * 100


def filled(averages, rows):
    for one, other in rows:
        averages.add({"loss": torch.tensor(one), "kl": torch.tensor(other)})
    return averages


def test_a_line_is_the_mean_whenever_its_steps_are_read():
    total = np.zeros(2)
    for row in VALUES:
        total += row.astype(np.float64)  # in order: the log of a run that was interrupted has the same bytes
    for often in (1, 7, LOG_EVERY):
        averages = LossAverages(0, None)
        for first in range(0, LOG_EVERY, often):
            filled(averages, VALUES[first : first + often]).read()
        assert list(averages.line(LOG_EVERY).values()) == (total / LOG_EVERY).tolist()
        assert averages.sums is None


def test_sums_resume_from_a_checkpoint():
    whole = filled(LossAverages(0, None), VALUES)
    whole.read()
    half = filled(LossAverages(0, None), VALUES[:30])
    half.read()
    resumed = filled(LossAverages(30, half.sums), VALUES[30:])
    assert list(resumed.read()) == list(range(30, LOG_EVERY))
    assert resumed.line(LOG_EVERY) == whole.line(LOG_EVERY)


def test_terms_are_reported_by_step():
    averages = filled(LossAverages(5, None), VALUES[:3])
    read = averages.read()
    assert list(read) == [5, 6, 7]
    assert averages.latest == read[7] == {"loss": float(VALUES[2, 0]), "kl": float(VALUES[2, 1])}
    assert list(filled(averages, VALUES[:1]).read()) == [8]


def test_a_partial_line_is_the_mean_of_its_steps():
    averages = filled(LossAverages(200, None), VALUES[:50])
    averages.read()
    assert list(averages.line(50).values()) == (VALUES[:50].astype(np.float64).cumsum(0)[-1] / 50).tolist()


@pytest.mark.parametrize(("steps", "interval"), [(1, 1), (9, 1), (30, 3), (999, 99), (1000, 100), (300_000, 100)])
def test_short_runs_log_ten_lines(steps, interval):
    assert log_interval(steps) == interval
