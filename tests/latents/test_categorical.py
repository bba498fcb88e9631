"""What `hard` and `learn_positions` change of a categorical latent, and what they do not."""

import pytest
import torch

from lddr.config import Config, configure
from lddr.data.load import load_dataset
from lddr.latents.categorical import Categorical
from lddr.networks.latent_layer import LatentLayer
from lddr.training.feed import Feed
from lddr.training.learner import Learner

SMALL = {"resolution": 16, "width": 4, "steps": 50, "batch_size": 16}
CIRCLES = load_dataset("circles", 16)


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def learner_of(**settings):
    return Learner(configure("dvae", "circles", "quick", **SMALL | settings), CIRCLES, torch.device("cpu"))


def test_hard_samples_are_categories_drawn_with_their_probabilities():
    layer = LatentLayer(Categorical(num_latents=1, num_categories=4, hard=True))
    logits = numbers(1, 4)
    noise = layer.family.noise(20_000, torch.Generator().manual_seed(0))
    latent = layer(logits.expand(20_000, -1), noise, 1.0)
    assert torch.isin(latent.z, layer.positions).all()
    assert torch.allclose(latent.sample.mean((0, 1)), logits.softmax(1)[0], atol=0.02)
    assert (latent.mean == layer.positions[logits.argmax()]).all()


def test_hard_changes_what_the_decoder_sees_and_not_the_posterior():
    soft, hard = (LatentLayer(Categorical(num_latents=3, hard=hard)) for hard in (False, True))
    outputs, noise = numbers(5, 192), soft.family.noise(5, torch.Generator().manual_seed(0))
    one, other = soft(outputs, noise, 1.0), hard(outputs, noise, 1.0)
    assert torch.equal(one.parameters, other.parameters)
    assert torch.equal(one.kl, other.kl)
    assert torch.equal(one.variance, other.variance)
    assert torch.equal(soft(outputs, noise, 1.0, hard=True).z, other.z)  # what the gap calls hard
    assert torch.equal(other.unrounded, one.z)


def test_positions_that_do_not_move_give_the_bits_of_fixed_ones():
    fixed, learned = learner_of(), learner_of(learn_positions=True)
    begun = learned.vae.family.positions.detach().clone()
    for step in range(4):
        parts = [learner.step(Feed(learner, CIRCLES).inputs(step)) for learner in (fixed, learned)]
        assert all(torch.equal(parts[0][name], parts[1][name]) for name in parts[0])
        assert not torch.equal(learned.vae.family.positions, begun)
        with torch.no_grad():
            learned.vae.family.positions.copy_(begun)  # as a learning rate of 0 would leave them
    tensors = learned.vae.state_dict()
    assert all(torch.equal(tensor, tensors[name]) for name, tensor in fixed.vae.state_dict().items())


def test_learned_positions_are_read_in_order():
    layer = LatentLayer(Categorical(num_latents=2, num_categories=3, learn_positions=True))
    with torch.no_grad():
        layer.positions.copy_(torch.tensor([0.5, -2.0, 0.1]))
    assert layer.values_of(1).tolist() == pytest.approx([-2.0, 0.1, 0.5])
    sure = torch.tensor([[0.0, 0.0, 100.0, 100.0, 0.0, 0.0]])
    assert layer(sure).z.tolist() == [pytest.approx([0.5, -2.0])]
    assert layer.positions.tolist() == pytest.approx([0.5, -2.0, 0.1])  # kept as they were learned


def test_a_run_without_them_is_called_as_ever_and_old_settings_open():
    config = configure("dvae", "circles")
    assert configure("dvae", "circles", hard=False, learn_positions=False).run_name == config.run_name
    assert configure("dvae", "circles", hard=True).run_name != config.run_name
    settings = config.as_dict()
    for new in ("hard", "learn_positions"):
        del settings["latent"][new]
    assert Config.from_dict(settings) == config
    assert config.run_name.endswith("_seed=0_8411419a")
