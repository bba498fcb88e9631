"""What `hard` and `learn_positions` change of a categorical latent, and what they do not."""

import pytest
import torch

from lddr.config import Config, configure
from lddr.data.load import load_dataset
from lddr.latents.categorical import Categorical
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer

SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16}
CIRCLES = load_dataset("circles", 16)


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def trainer_of(**settings):
    return Trainer(configure("dvae", "circles", "quick", **SMALL | settings), CIRCLES, torch.device("cpu"))


def test_hard_samples_are_categories_drawn_with_their_probabilities():
    latent = Categorical(num_latents=1, num_categories=4, hard=True)
    logits = numbers(1, 4)
    noise = latent.noise(20_000, torch.Generator().manual_seed(0))
    posterior = latent(logits.expand(20_000, -1))
    sample = posterior.sample(noise, 1.0)
    assert torch.isin(sample.z, latent.positions).all()
    assert torch.allclose(sample.weights.mean((0, 1)), logits.softmax(1)[0], atol=0.02)
    assert (posterior.mean == latent.positions[logits.argmax()]).all()


def test_hard_changes_what_the_decoder_sees_and_not_the_posterior():
    soft, hard = (Categorical(num_latents=3, hard=hard) for hard in (False, True))
    outputs, noise = numbers(5, 192), soft.noise(5, torch.Generator().manual_seed(0))
    one, other = soft(outputs), hard(outputs)
    assert torch.equal(one.parameters, other.parameters)
    assert torch.equal(one.kl, other.kl)
    assert torch.equal(one.variance, other.variance)
    assert torch.equal(one.rsample(noise, 1.0, hard=True), other.rsample(noise, 1.0))  # what the gap calls hard
    assert torch.equal(other.sample(noise, 1.0).unrounded, one.rsample(noise, 1.0))


def test_positions_that_do_not_move_give_the_bits_of_fixed_ones():
    fixed, learned = trainer_of(), trainer_of(learn_positions=True)
    begun = learned.vae.latent.positions.detach().clone()
    for step in range(4):
        parts = [trainer.step(Batches(trainer, CIRCLES).batch(step)) for trainer in (fixed, learned)]
        assert all(torch.equal(parts[0][name], parts[1][name]) for name in parts[0])
        assert not torch.equal(learned.vae.latent.positions, begun)
        with torch.no_grad():
            learned.vae.latent.positions.copy_(begun)  # as a learning rate of 0 would leave them
    tensors = learned.vae.state_dict()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in fixed.vae.state_dict().items())


def test_learned_positions_are_read_in_order():
    latent = Categorical(num_latents=2, num_categories=3, learn_positions=True)
    with torch.no_grad():
        latent.positions.copy_(torch.tensor([0.5, -2.0, 0.1]))
    assert latent.values_of(1).tolist() == pytest.approx([-2.0, 0.1, 0.5])
    sure = torch.tensor([[0.0, 0.0, 100.0, 100.0, 0.0, 0.0]])
    assert latent(sure).expected().z.tolist() == [pytest.approx([0.5, -2.0])]
    assert latent.positions.tolist() == pytest.approx([0.5, -2.0, 0.1])  # kept as they were learned


def test_a_run_without_them_is_called_as_ever_and_old_settings_open():
    config = configure("dvae", "circles")
    assert configure("dvae", "circles", hard=False, learn_positions=False).run_name == config.run_name
    assert configure("dvae", "circles", hard=True).run_name != config.run_name
    settings = config.as_dict()
    for new in ("hard", "learn_positions"):
        del settings["latent"][new]
    assert Config.from_dict(settings) == config
    assert config.run_name.endswith("_seed=0_8411419a")
