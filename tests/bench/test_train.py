import pytest
import torch

from lddr.bench import train
from lddr.bench.plain import PlainTraining, plain_discriminator, plain_networks
from lddr.bench.timing import Worker
from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.hardware import chosen_device, matmul_peak
from lddr.training.learner import Learner


def test_the_operations_of_a_step_by_hand():
    encoder = (
        32**2 * 16 * 32 + 16**2 * 16 * 32 * 32 + 8**2 * 16 * 32 * 64 + 4**2 * 16 * 64 * 64 + 1024 * 256 + 256 * 640
    )
    decoder = 10 * 256 + 256 * 1024 + 16 * (4**2 * 64 * 64 + 8**2 * 64 * 32 + 16**2 * 32 * 32 + 32**2 * 32)
    first = 32**2 * 16 * 32  # nobody asks for the gradient of the images
    expected = 2 * 64 * (3 * (encoder + decoder) - first)
    assert abs(train.operations("dvae", "dsprites") / expected - 1) < 0.01


@pytest.mark.parametrize("factor", [False, True])
def test_a_plain_step_trains_every_network(factor):
    training = PlainTraining(load_dataset("dsprites"), factor)
    networks = [training.encoder, training.decoder, *([training.discriminator] if factor else [])]
    before = [weight.detach().clone() for network in networks for weight in network.parameters()]
    training.step()
    after = [weight for network in networks for weight in network.parameters()]
    assert all(not torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.mark.parametrize("side", ["usual", "fp32"])
def test_a_worker_repeats_in_a_process_of_its_own(side):
    with Worker("lddr.bench.train:prepared", side, "factor-dvae", "dsprites", "1") as worker:
        assert worker.run(2) == 2
        assert worker.peak_megabytes() > 50


def test_a_worker_that_fails_says_so():
    with Worker("lddr.bench.train:prepared", "usual", "dvae", "nonsense", "1") as worker:
        with pytest.raises(RuntimeError, match="ended early"):
            worker.run(1)


def test_both_sides_train_models_of_the_same_size():
    learner = Learner(configure("factor-dvae", "dsprites"), load_dataset("dsprites"), torch.device("cpu"))
    plain = [*plain_networks(1), plain_discriminator()]
    ours = [learner.vae.encoder, learner.vae.decoder, learner.adversary.network]
    for one, other in zip(ours, plain, strict=True):
        assert sum(w.numel() for w in one.parameters()) == sum(w.numel() for w in other.parameters())


def test_the_peak_is_positive_and_the_cpu_is_always_there():
    assert matmul_peak(torch.float32, 64, 2) > 0
    assert chosen_device("cpu").type == "cpu"
    assert chosen_device("auto").type in ("cpu", "cuda", "mps")
