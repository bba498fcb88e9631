import torch
from scipy import stats
from torch import nn

from lddr.models.nets import BroadcastDecoder, Decoder, Discriminator, Encoder, initialise


def all_networks():
    return nn.ModuleList(
        [
            Encoder((32, 32, 3), 6, 16),
            Decoder(3, (32, 32, 3), 16),
            BroadcastDecoder(3, (16, 16, 1)),
            Discriminator(3, 50),
        ]
    )


def test_weights_are_a_normal_of_one_over_the_root_of_fan_in_cut_at_two_sigma():
    networks = all_networks()
    initialise(networks, torch.Generator().manual_seed(0))
    scaled = []
    for layer in networks.modules():
        if isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            transposed = isinstance(layer, nn.ConvTranspose2d)
            fan_in = layer.weight.transpose(0, 1)[0].numel() if transposed else layer.weight[0].numel()
            scaled.append(layer.weight.detach().flatten() * fan_in**0.5)
            assert not layer.bias.any()
    assert all(weights.abs().max() <= 2 + 1e-5 for weights in scaled)
    for weights in (weights for weights in scaled if len(weights) > 1000):
        assert stats.kstest(weights, stats.truncnorm(-2, 2).cdf).pvalue > 1e-4


def test_weights_depend_on_the_seed_alone():
    first, second, third = all_networks(), all_networks(), all_networks()
    for parameter in second.parameters():
        parameter.data = parameter.data.contiguous()
    initialise(first, torch.Generator().manual_seed(5))
    torch.manual_seed(99)
    initialise(second, torch.Generator().manual_seed(5))
    initialise(third, torch.Generator().manual_seed(6))
    for one, other, stranger in zip(first.parameters(), second.parameters(), third.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one.dim() == 1 or not torch.equal(one, stranger)
