from dataclasses import replace

import numpy as np
import pytest
import torch

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.latents import latents
from lddr.models import models
from lddr.objectives import objectives
from lddr.losses import squared_correlations
from lddr.training.batches import torch_stream
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer

CPU = torch.device("cpu")
SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16}
PLAIN = {"reconstruction_weight": 1.0, "schedule": "constant", "initialiser": "truncated"}  # whatever is quick
WITH_DISCRIMINATOR = ["factor-vae", "factor-dvae", "factor-qvae"]


def trainer_of(model, **settings):
    if model in WITH_DISCRIMINATOR:
        settings = {"discriminator_width": 20} | settings
    config = configure(model, "circles", "quick", **(SMALL | PLAIN | settings))
    return Trainer(config, load_dataset("circles", 16), CPU)


def batch_of(trainer, step=0):
    return Batches(trainer, load_dataset("circles", 16)).batch(step)


def weights(module):
    return [parameter.detach().clone() for parameter in module.parameters()]


@pytest.mark.parametrize("model", WITH_DISCRIMINATOR)
def test_the_discriminators_loss_leaves_the_vae_alone_and_the_factor_term_the_discriminator(model):
    trainer = trainer_of(model, gamma=5.0)
    loss, _ = trainer.losses(batch_of(trainer))
    own = weights_gradients(trainer.adversary.network)
    assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in own)
    assert all(gradient is None for gradient in weights_gradients(trainer.vae))
    loss.backward()
    for before, after in zip(own, weights_gradients(trainer.adversary.network), strict=True):
        assert torch.equal(before, after)  # the VAE's loss has added nothing


@pytest.mark.parametrize("model", WITH_DISCRIMINATOR)
def test_the_encoders_gradient_is_that_of_the_plain_formula(model):
    from lddr import losses
    from lddr.objectives.objective import mean_kl

    trainer = trainer_of(model, gamma=5.0)
    inputs = batch_of(trainer, 3)
    loss, parts = trainer.losses(inputs)
    loss.backward()
    ours = weights_gradients(trainer.vae)
    trainer.vae.zero_grad()
    noise = trainer.config.latent.noise(16, torch_stream(0, "noise", 3))
    logits, latent = trainer.vae(inputs.images, noise, trainer.config.latent.noise_scale(3, 50))
    shown = trainer.config.latent.shown(latent).flatten(1)
    ratio = losses.density_ratio(trainer.adversary.network(shown))
    plain = losses.bernoulli_reconstruction(logits, inputs.images) + mean_kl(latent) + 5.0 * ratio
    plain.backward()
    assert torch.isclose(plain, loss, rtol=1e-5)
    assert torch.isclose(parts["total_correlation"], 5 * ratio, rtol=1e-4, atol=1e-6)
    for one, other in zip(ours, weights_gradients(trainer.vae), strict=True):
        assert torch.allclose(one, other, rtol=1e-3, atol=1e-5)


def weights_gradients(module):
    return [None if parameter.grad is None else parameter.grad.clone() for parameter in module.parameters()]


@pytest.mark.parametrize("model", list(models))
def test_a_step_depends_on_the_seed_the_step_and_the_weights_alone(model):
    one, two = trainer_of(model), trainer_of(model)
    for step in range(3):
        torch.manual_seed(step)  # the global generator must not matter
        for trainer in (one, two):
            trainer.step(batch_of(trainer, step))
            torch.rand(3)
    for a, b in zip(weights(one.vae), weights(two.vae), strict=True):
        assert torch.equal(a, b)
    other = trainer_of(model, seed=1)
    assert not torch.equal(weights(one.vae)[0], weights(other.vae)[0])


@pytest.mark.parametrize("settings", [{}, {"schedule": "cosine", "weight_decay": 0.1, "clip": 0.01}])
@pytest.mark.parametrize("model", ["vae", "factor-dvae", "categorical+tripod", "qlae", "factor-qvae"])
def test_a_restored_learner_goes_on_as_if_nothing_had_happened(model, settings):
    whole = trainer_of(model, **settings)
    for step in range(6):
        whole.step(batch_of(whole, step))
        if step == 2:
            kept = {name: tensor.clone() for name, tensor in whole.tensors().items()}
    resumed = trainer_of(model, **settings)
    resumed.restore(kept)
    for step in range(3, 6):
        resumed.step(batch_of(resumed, step))
    for name, tensor in whole.tensors().items():
        assert torch.equal(tensor, resumed.tensors()[name]), name


@pytest.mark.parametrize("latent", list(latents))
def test_an_autoencoder_learns_from_the_reconstruction_alone(latent):
    trainer = trainer_of(f"{latent}+autoencoder")
    loss, parts = trainer.losses(batch_of(trainer))
    own = [parts[name] for name in parts if name not in ("loss", "elbo", "reconstruction", "kl")]  # of the family
    assert torch.isclose(loss, sum(own, parts["reconstruction"]), rtol=1e-6)
    assert bool(own) == (latent == "quantised")
    assert parts["kl"].isfinite()  # told, though nobody is punished for it
    loss.backward()
    assert all(gradient.abs().sum() > 0 for gradient in weights_gradients(trainer.vae))


def test_parts_add_up():
    trainer = trainer_of("tc-dvae", beta=3.0)
    loss, parts = trainer.losses(batch_of(trainer))
    assert torch.isclose(parts["elbo"], -parts["reconstruction"] - parts["kl"])
    assert torch.isclose(loss, parts["reconstruction"] + parts["kl"] + parts["total_correlation"])
    assert not any(part.requires_grad for part in parts.values())


@pytest.mark.parametrize(
    ("model", "loss"),
    [("vae", "bce"), ("vae", "l2"), ("dvae", "cross-entropy"), ("dvae", "masked"), ("fsq-ae", "l2"), ("qlae", "l2")],
)
def test_supervision_pulls_the_risk_down(model, loss):
    trainer = trainer_of(model, supervision=loss, labels=50, omega=10.0, learning_rate=3e-3)
    risks = [trainer.step(batch_of(trainer, step))["supervision"].item() for step in range(40)]
    share = 0.97 if loss == "bce" else 0.9  # with targets between 0 and 1 even a perfect guess has a cross-entropy
    assert np.mean(risks[-5:]) < share * np.mean(risks[:5])


def test_the_risk_is_that_of_an_image_or_of_the_batch():
    weights = {}
    for kind in ("image", "batch"):
        trainer = trainer_of("vae", supervision="l2", labels=50, omega=3.0, risk_of=kind)
        inputs = batch_of(trainer)
        weights[kind] = (trainer.losses(inputs)[1]["supervision"] / trainer.risk(inputs.labelled)).item()
    assert weights["image"] == pytest.approx(3.0)
    assert weights["batch"] == pytest.approx(3.0 * 16)


@pytest.mark.parametrize("model", ["dvae", "vae"])
def test_the_penalty_on_free_latents_is_that_of_numpy_and_moves_only_them(model):
    loss = latents[models[model].latent].usual_supervision()
    trainer = trainer_of(model, supervision=loss, labels=50, num_latents=5, free_penalty=3.0)
    inputs = batch_of(trainer)
    latent = trainer.vae.encode(inputs.images)  # the means are the same with noise
    table = np.cov(latent.mean.detach().double().numpy().T, bias=True)
    pairs = [
        table[tied, free] ** 2 / (table[tied, tied] * table[free, free] + 1e-8) for tied in (0, 1) for free in (2, 3, 4)
    ]
    assert trainer.losses(inputs)[1]["free_penalty"].item() == pytest.approx(3.0 * sum(pairs), rel=1e-3)
    latent.mean.retain_grad()
    trainer._repeated(latent, 2).backward()
    assert (latent.mean.grad[:, :2] == 0).all()
    assert (latent.mean.grad[:, 2:] != 0).any()


def test_without_a_weight_there_is_no_penalty_on_free_latents():
    trainer = trainer_of("dvae", supervision="masked", labels=50, num_latents=5)
    assert "free_penalty" not in trainer.losses(batch_of(trainer))[1]


def test_the_penalty_makes_free_latents_independent_of_tied_ones():
    def repeated(weight):
        trainer = trainer_of(
            "vae", supervision="bce", labels=50, num_latents=5, free_penalty=weight, learning_rate=3e-3
        )
        batches = Batches(trainer, load_dataset("circles", 16))
        for step in range(60):
            trainer.step(batches.batch(step))
        means = trainer.vae.encode(batches.batch(99).images).mean
        return squared_correlations(means[:, :2], means[:, 2:]).sum().item()

    assert repeated(1000.0) < 0.5 * repeated(0.0)


@pytest.mark.parametrize("model", ["dvae", "categorical+nhp"])  # a curvature of rounded numbers would be far off
def test_bf16_is_near_fp32(model):
    trainers = [trainer_of(model, precision=precision) for precision in ("fp32", "bf16")]
    losses = [trainer.losses(batch_of(trainer))[0].item() for trainer in trainers]
    assert abs(losses[0] - losses[1]) < 0.02 * abs(losses[0])
    assert losses[0] != losses[1]


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
]
SUPERVISED = [(f"{latent}+elbo", loss) for latent in latents for loss in latents[latent].supervisions]


@pytest.mark.parametrize(("model", "supervision"), [*((pair, None) for pair in PAIRS), *SUPERVISED])
def test_in_bf16_the_terms_of_equal_network_outputs_are_those_of_float32(model, supervision):
    settings = {"discriminator_width": 20} if model.endswith("+factor") else {}
    settings |= {"supervision": supervision, "labels": 50} if supervision else {}
    trainer = trainer_of(model, learning_rate=3e-3, **settings)
    for step in range(10):  # away from the initial weights, where many terms are almost 0
        trainer.step(batch_of(trainer, step))
    trainer.vae.encoder, trainer.vae.decoder = map(InFloat32, (trainer.vae.encoder, trainer.vae.decoder))
    if trainer.adversary is not None:
        trainer.adversary.network = InFloat32(trainer.adversary.network)
    found = []
    for precision in ("fp32", "bf16"):
        trainer.config = replace(trainer.config, training=replace(trainer.config.training, precision=precision))
        trainer.vae.zero_grad()
        loss, parts = trainer.losses(batch_of(trainer, 10))
        loss.backward()
        found.append(
            (parts, torch.cat([each.flatten() for each in weights_gradients(trainer.vae) if each is not None]))
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
    if trainer.adversary is not None:
        networks["discriminator"] = trainer.adversary.network
    for name, network in networks.items():
        network.register_forward_hook(lambda *given, name=name: seen.update({name: given[2].dtype}))
    trainer.losses(batch_of(trainer))
    assert seen == dict.fromkeys(networks, torch.bfloat16)


@pytest.mark.filterwarnings("ignore:The .grad attribute", "ignore::DeprecationWarning")  # of torch's own tracing
def test_capturing_the_networks_changes_nothing_but_rounding(monkeypatch):
    plain, captured = trainer_of("factor-dvae"), trainer_of("factor-dvae")
    compiled = []
    original = torch.nn.Module.compile
    monkeypatch.setattr(  # the logic without a C++ compiler, which not every machine has
        torch.nn.Module,
        "compile",
        lambda module, mode=None: compiled.append(module) or original(module, backend="eager"),
    )
    captured.capture()
    assert len(compiled) == 3
    for step in range(2):
        losses = []
        for trainer in (plain, captured):
            terms.append(trainer.step(batch_of(trainer, step))["loss"].item())
        assert abs(losses[0] - losses[1]) < 1e-3 * abs(losses[0])
    assert list(captured.tensors()) == list(plain.tensors())


def test_the_weight_of_the_reconstruction_is_in_the_loss_and_not_in_what_is_reported():
    one, four = (trainer_of("dvae", reconstruction_weight=weight) for weight in (1.0, 4.0))
    (loss, parts), (heavier, same) = (trainer.losses(batch_of(trainer)) for trainer in (one, four))
    assert torch.isclose(heavier, loss + 3 * parts["reconstruction"])
    assert torch.equal(same["elbo"], parts["elbo"])
    assert torch.equal(same["reconstruction"], parts["reconstruction"])


def test_the_learning_rate_follows_its_schedule():
    trainer = trainer_of("dvae", schedule="cosine", learning_rate=0.01, steps=4)
    for step, rate in enumerate([1.0, (2 + 2**0.5) / 4, 0.5, (2 - 2**0.5) / 4]):
        trainer.step(batch_of(trainer, step))
        assert trainer.optimizer.learning_rate == pytest.approx(0.01 * rate)


class Spoiled(Trainer):
    """One whose loss is no number at the third step."""

    def losses(self, inputs):
        loss, parts = super().losses(inputs)
        self.calls = getattr(self, "calls", 0) + 1
        return (loss * float("nan") if self.calls == 3 else loss), parts


@pytest.mark.parametrize("waits", [True, False], ids=["looks at every step", "as on a GPU"])
@pytest.mark.parametrize("model", ["dvae", "factor-vae"])
def test_a_loss_that_is_no_number_and_all_after_it_leave_the_weights_alone(model, waits):
    settings = {"weight_decay": 0.1} | ({"discriminator_width": 20} if model in WITH_DISCRIMINATOR else {})
    config = configure(model, "circles", "quick", **SMALL | settings)
    trainer = Spoiled(config, load_dataset("circles", 16), CPU)
    trainer.waits = waits
    for step in range(2):
        trainer.step(batch_of(trainer, step))
    good = {name: tensor.clone() for name, tensor in trainer.tensors().items()}
    for step in range(2, 5):
        trainer.step(batch_of(trainer, step))
    assert trainer.calls == 5
    assert all(torch.equal(tensor, good[name]) for name, tensor in trainer.tensors().items())


@pytest.mark.parametrize("model", ["dvae", "factor-vae"])
def test_a_learner_that_never_looks_takes_the_same_steps(model):
    looking, blind = trainer_of(model, clip=1.0), trainer_of(model, clip=1.0)
    blind.waits = False
    before = weights(blind.vae)
    for step in range(3):
        for trainer in (looking, blind):
            trainer.step(batch_of(trainer, step))
    assert not torch.equal(before[0], weights(blind.vae)[0])
    assert all(torch.equal(tensor, blind.tensors()[name]) for name, tensor in looking.tensors().items())


@pytest.mark.parametrize("decoder", ["deconvolution", "broadcast"])
def test_a_decoder_may_begin_at_the_mean_brightness(decoder):
    usual, bright = (trainer_of("dvae", decoder=decoder, mean_bias=on).vae for on in (False, True))
    brightness = load_dataset("circles", 16).images(np.arange(1600)).mean() / 255
    assert torch.sigmoid(bright.decoder.last.bias).item() == pytest.approx(brightness, rel=0.05)
    assert not usual.decoder.last.bias.any()  # the authors' way
    with torch.no_grad():
        bright.decoder.last.bias.zero_()
    assert all(torch.equal(one, other) for one, other in zip(weights(usual), weights(bright), strict=True))


def test_black_and_white_channels_begin_at_a_finite_bias():
    vae = trainer_of("dvae").vae
    vae.begin_at(torch.zeros(1))
    assert torch.sigmoid(vae.decoder.last.bias).item() == pytest.approx(0.001, rel=1e-3)
    vae.begin_at(torch.ones(1))
    assert torch.sigmoid(vae.decoder.last.bias).item() == pytest.approx(0.999, rel=1e-3)


def test_latents_freeze_on_dark_pictures_unless_the_decoder_begins_dark():
    kl = {}
    for mean_bias in (False, True):
        config = configure("dvae", "dsprites", "quick", mean_bias=mean_bias)
        dataset = load_dataset("dsprites", 32)
        trainer = Trainer(config, dataset, CPU)
        batches = Batches(trainer, dataset)
        for step in range(100):
            parts = trainer.step(batches.batch(step))
        kl[mean_bias] = parts["kl"].item()
    largest = config.latent.num_latents * np.log(config.latent.num_categories)
    assert kl[False] > 0.7 * largest
    assert kl[True] < 0.4 * largest
