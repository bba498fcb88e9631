import pytest
import torch

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.training.feed import Feed
from lddr.training.learner import Learner
from lddr.training.replay import WARM_UP

STEPS = WARM_UP + 4
CIRCLES = load_dataset("circles", 16)
CASES = [
    ("annealed-vae", {"capacity_steps": 5, "schedule": "cosine"}),
    ("factor-dvae", {"discriminator_width": 20, "weight_decay": 0.1}),
    ("dvae", {"supervision": "masked", "labels": 20, "omega": 5.0}),
    ("gaussian+tripod", {}),
]


def learner_of(model, settings):
    small = {"resolution": 16, "width": 4, "batch_size": 8, "steps": STEPS}
    learner = Learner(configure(model, "circles", "quick", **small | settings), CIRCLES, torch.device("cpu"))
    learner.waits = False
    return learner


class Recorder:
    """Stands in for a CUDA graph: recording changes nothing, replaying writes where the recorded step wrote."""

    def __init__(self, learner):
        self.learner, self.replays = learner, 0

    def __call__(self, body):
        before = {name: tensor.clone() for name, tensor in self.learner.tensors().items()}
        assert all(weight.grad is None for weight in self.learner.vae.parameters())
        parts = body()
        self.learner.restore(before)

        def replay():
            self.replays += 1
            for name, value in body().items():
                parts[name].copy_(value)

        return parts, replay


@pytest.mark.parametrize(("model", "settings"), CASES)
def test_a_replayed_step_is_the_same_step(model, settings):
    plain, replayed = learner_of(model, settings), learner_of(model, settings)
    recorder = Recorder(replayed)
    replayed.replay(lambda step: step, recorder)
    for step in range(STEPS):
        expected, found = (each.step(Feed(each, CIRCLES, ahead=True).inputs(step)) for each in (plain, replayed))
        assert list(found) == list(expected)
        assert all(torch.equal(found[name], expected[name]) for name in expected), step
    assert recorder.replays == STEPS - WARM_UP
    assert all(torch.equal(tensor, plain.tensors()[name]) for name, tensor in replayed.tensors().items())


def test_what_a_replayed_step_gives_stays_in_its_place():
    learner = learner_of("vae", {})
    learner.replay(lambda step: step, Recorder(learner))
    feed = Feed(learner, CIRCLES, ahead=True)
    given = [learner.step(feed.inputs(step))["loss"].data_ptr() for step in range(STEPS)]
    assert len(set(given[WARM_UP:])) == 1
