import subprocess
import sys

import pytest
import torch
from torch import nn

from lddr.training.adam import Adam


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("betas", [(0.9, 0.999), (0.5, 0.9)])
def test_the_steps_are_those_of_torch_bit_by_bit(memory_format, betas):
    nets = [nn.Sequential(nn.Conv2d(3, 7, 3), nn.Conv2d(7, 5, 3)).to(memory_format=memory_format) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    unused = [nn.Parameter(torch.ones(3)) for _ in nets]  # without a gradient nothing moves
    ours = Adam([*nets[0].parameters(), unused[0]], 3e-3, betas)
    torchs = torch.optim.Adam([*nets[1].parameters(), unused[1]], 3e-3, betas=betas, fused=True)
    for step in range(5):
        images = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(step))
        ours.zero_grad()
        torchs.zero_grad()
        for net in nets:
            net(images).square().sum().backward()
        ours.step()
        torchs.step()
    assert all(torch.equal(a, b) for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True))
    moments = [tensor for state in torchs.state.values() for tensor in state.values()]
    assert all(any(torch.equal(kept, tensor) for kept in ours.tensors("a").values()) for tensor in moments)
    assert torch.equal(unused[0], torch.ones(3))


def test_a_step_does_not_import_the_compiler():
    code = (
        "import sys, torch\nfrom lddr.config import configure\nfrom lddr.data.load import load_dataset\n"
        "from lddr.training.batches import Batches\nfrom lddr.training.trainer import Trainer\n"
        "config, images = configure('factor-dvae', 'circles', 'quick'), load_dataset('circles', 16)\n"
        "device = torch.device('cpu')\ntrainer = Trainer(config, images, device)\n"
        "trainer.step(Batches(trainer, images).batch(0))\n"
        "print([name for name in ('torch._dynamo', 'torch._inductor') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_weights_decay_as_in_adamw_and_biases_do_not():
    nets = [nn.Linear(4, 3) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    ours = Adam(nets[0].parameters(), 1e-2, (0.9, 0.999), decay=0.1)
    groups = [{"params": [nets[1].weight]}, {"params": [nets[1].bias], "weight_decay": 0.0}]
    torchs = torch.optim.AdamW(groups, 1e-2, weight_decay=0.1)
    for step in range(20):
        inputs = torch.randn(8, 4, generator=torch.Generator().manual_seed(step))
        for net, optimizer in zip(nets, (ours, torchs), strict=True):
            net.zero_grad()
            net(inputs).square().sum().backward()
            optimizer.step()
    for a, b in zip(nets[0].parameters(), nets[1].parameters(), strict=True):
        assert torch.allclose(a, b, rtol=1e-5, atol=1e-7)


def test_gradients_are_clipped_by_element():
    weight = nn.Parameter(torch.zeros(3))
    weight.grad = torch.tensor([-5.0, 0.25, 7.0])
    Adam([weight], 1e-2, (0.9, 0.999), clip=1.0).step()
    assert weight.grad.tolist() == [-1.0, 0.25, 1.0]


@pytest.mark.parametrize(("clip_of", "clipped"), [("all", [True, True, True]), ("weights", [True, False, False])])
def test_biases_and_values_are_clipped_unless_weights_alone_are(clip_of, clipped):
    weight, bias, values = (nn.Parameter(torch.zeros(shape)) for shape in ((2, 3), (3,), (4, 5)))
    for parameter in (weight, bias, values):
        parameter.grad = torch.full_like(parameter, 7.0)
    Adam([weight, bias, values], 1e-2, (0.9, 0.999), clip=1.0, no_decay=[values], clip_of=clip_of).step()
    assert [parameter.grad.max().item() == 1.0 for parameter in (weight, bias, values)] == clipped


@pytest.mark.parametrize("tensor_rate", [False, True])
def test_a_step_with_found_inf_changes_nothing_and_one_that_goes_on_is_the_same(tensor_rate):
    def after(*found, steps=2):
        weight = nn.Parameter(torch.ones(2, 3))
        adam = Adam([weight], torch.tensor(0.125) if tensor_rate else 0.125, (0.9, 0.999), decay=0.5)
        for found_inf in found or [None] * steps:
            weight.grad = torch.full((2, 3), torch.nan if found_inf else 0.3)
            adam.step(None if found_inf is None else torch.tensor(float(found_inf)))
        return [weight.detach(), *adam.tensors("a").values()]

    assert all(map(torch.equal, after(0, 0), after()))
    assert all(map(torch.equal, after(0, 0, 1, 1), after()))
    assert not torch.equal(after(0, 0)[0], after(0)[0])
