import pytest
import torch

from lddr.config import configure
from lddr.data.load import load_dataset
from lddr.training.batches import Batches
from lddr.training.trainer import Trainer
from lddr.training.replay import WARM_UP

STEPS = WARM_UP + 4
CIRCLES = load_dataset("circles", 16)
CASES = [
    ("annealed-vae", {"capacity_steps": 5, "schedule": "cosine"}),
    ("factor-dvae", {"discriminator_width": 20, "weight_decay": 0.1}),
    ("dvae", {"supervision": "masked", "labels": 20, "omega": 5.0}),
    ("gaussian+tripod", {}),
]


def trainer_of(model, settings):
    small = {"resolution": 16, "width": 4, "batch_size": 8, "steps": STEPS}
    trainer = Trainer(configure(model, "circles", "quick", **small | settings), CIRCLES, torch.device("cpu"))
    trainer.waits = False
    return trainer


class Recorder:
    """Stands in for a CUDA graph: recording changes nothing, replaying writes where the recorded step wrote."""

    def __init__(self, trainer):
        self.trainer, self.replays = trainer, 0

    def __call__(self, body):
        before = {name: tensor.clone() for name, tensor in self.trainer.tensors().items()}
        assert all(weight.grad is None for weight in self.trainer.vae.parameters())
        parts = body()
        self.trainer.restore(before)

        def replay():
            self.replays += 1
            for name, value in body().items():
                parts[name].copy_(value)

        return parts, replay


@pytest.mark.parametrize(("model", "settings"), CASES)
def test_a_replayed_step_is_the_same_step(model, settings):
    plain, replayed = trainer_of(model, settings), trainer_of(model, settings)
    recorder = Recorder(replayed)
    replayed.replay(lambda step: step, recorder)
    for step in range(STEPS):
        expected, found = (each.step(Batches(each, CIRCLES, ahead=True).batch(step)) for each in (plain, replayed))
        assert list(found) == list(expected)
        assert all(torch.equal(found[name], expected[name]) for name in expected), step
    assert recorder.replays == STEPS - WARM_UP
    assert all(torch.equal(tensor, plain.tensors()[name]) for name, tensor in replayed.tensors().items())


def test_what_a_replayed_step_gives_stays_in_its_place():
    trainer = trainer_of("vae", {})
    trainer.replay(lambda step: step, Recorder(trainer))
    batches = Batches(trainer, CIRCLES, ahead=True)
    given = [trainer.step(batches.batch(step))["loss"].data_ptr() for step in range(STEPS)]
    assert len(set(given[WARM_UP:])) == 1
