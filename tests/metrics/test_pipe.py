from types import SimpleNamespace

import pytest
import torch

from lddr.data.load import load_dataset
from lddr.metrics.pipe import judge_network, pipe
from lddr.runs.run import Machine
from lddr.trained import Trained

SHAPE = (16, 16, 1)
FEW = {"train": 3_000, "test": 600, "batch_size": 32, "learning_rate": 3e-3}


def halves(z):
    """The left half of a picture is as bright as the first latent says, the right half as the second."""
    return (4 * z)[:, None, None, :].repeat_interleave(8, dim=3).expand(-1, 1, 16, 16)


def model(code):
    """A model that puts images to codes by a function of where the circle is."""

    def encode(images):
        weight = images.clamp(min=1e-6)[:, 0]
        line = torch.linspace(-1, 1, 16)
        total = weight.sum((1, 2))
        x, y = ((weight * along).sum((1, 2)) / total for along in (line, line[:, None]))
        return SimpleNamespace(mean=code(x, y))

    latent = SimpleNamespace(embed=lambda codes: codes)
    vae = SimpleNamespace(encode=encode, decode=lambda z: halves(z).sigmoid(), latent=latent)
    return SimpleNamespace(vae=vae, image_shape=SHAPE, device=torch.device("cpu"))


@pytest.fixture(scope="module")
def circles():
    return load_dataset("circles", resolution=16)


@pytest.mark.parametrize("apart", ["uniform", pytest.param("marginals", marks=pytest.mark.long)])
def test_latents_that_always_go_together_give_themselves_away(circles, apart):
    result = pipe(model(lambda x, y: torch.stack([x, x], 1)), circles, 0, apart=apart, **FEW)
    assert result.accuracy > 0.85
    assert result.score == pytest.approx(2 * (1 - result.accuracy))


def test_independent_latents_pass_for_reconstructions(circles):
    result = pipe(model(lambda x, y: torch.stack([x, y], 1)), circles, 0, apart="marginals", **FEW)
    assert result.score > 0.8


@pytest.mark.parametrize(("side", "left"), [(64, 4), (128, 8), (32, 2), (16, 1)])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_judge_is_that_of_the_authors_code(side, left, channels):
    """Convolutions 32, 32, 64, 64 and 512, each with a bias and batch normalisation (scale and shift), and a logit."""
    network = judge_network(SimpleNamespace(image_shape=(side, side, channels), device=torch.device("cpu")), 0)
    count = 16 * channels * 32 + 16 * 32 * 32 + 16 * 32 * 64 + 16 * 64 * 64 + left**2 * 64 * 512 + 512 + 1
    assert sum(each.numel() for each in network.parameters()) == count + 3 * (32 + 32 + 64 + 64 + 512)
    assert network(torch.rand(5, channels, side, side)).shape == (5,)
    assert sum(isinstance(layer, torch.nn.BatchNorm2d) for layer in network) == 5


@pytest.mark.long
def test_the_judge_finds_what_a_small_network_does_not():
    """A network of width 8 is right about 52 % of these images after as many, about 54 % after all 50,000."""
    trained = Trained.load("circles-dvae")
    result = pipe(trained, load_dataset("circles", 32), 0, train=6_000, test=1_000)
    assert result.accuracy > 0.6
    assert result.settings["judge"] == "published"


def test_pictures_that_show_nothing_cannot_be_told_apart(circles):
    result = pipe(model(lambda x, y: torch.zeros(len(x), 2)), circles, 0, **FEW | {"train": 64})
    assert (result.score, result.accuracy) == (1.0, 0.5)


def test_a_real_model_gets_the_same_score_again_and_tells_how_far_it_is(circles):
    import lddr

    machine = Machine(device="cpu", threads=1, quiet=True)
    trained = lddr.train(circles, "dvae", num_latents=2, width=4, steps=3, machine=machine)
    assert isinstance(trained, Trained)
    first, again = (pipe(trained, circles, 0, train=320, test=320) for _ in range(2))
    assert first == again
    assert 0 <= first.score <= 1
    shares = []
    pipe(trained, circles, 0, train=64, test=64, progress=shares.append)
    assert sum(shares) == pytest.approx(1)
