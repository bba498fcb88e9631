import pytest
import torch
from scipy import stats
from torch import nn

from lddr.networks.coders import INITIALISERS, BroadcastDecoder, Decoder, Discriminator, Encoder, initialise
from lddr.networks.layers import ZeroConvolution
from lddr.networks.residual import ResidualDecoder, ResidualEncoder


def all_networks():
    return nn.ModuleList(
        [
            Encoder((32, 32, 3), 6, 16),
            Decoder(3, (32, 32, 3), 16),
            BroadcastDecoder(3, (16, 16, 1)),
            Discriminator(3, 50),
            ResidualEncoder((16, 12, 3), 6, 4),
            ResidualDecoder(3, (16, 12, 3), 4),
        ]
    )


def test_weights_are_a_normal_of_one_over_the_root_of_fan_in_cut_at_two_sigma():
    networks = all_networks()
    initialise(networks, torch.Generator().manual_seed(0))
    scaled = []
    for layer in networks.modules():
        if isinstance(layer, ZeroConvolution):
            assert not layer.weight.any()
            assert not layer.bias.any()
        elif isinstance(layer, nn.Linear | nn.Conv2d | nn.ConvTranspose2d):
            transposed = isinstance(layer, nn.ConvTranspose2d)
            fan_in = layer.weight.transpose(0, 1)[0].numel() if transposed else layer.weight[0].numel()
            scaled.append(layer.weight.detach().flatten() * fan_in**0.5)
            assert not layer.bias.any()
    assert all(weights.abs().max() <= 2 + 1e-5 for weights in scaled)
    for weights in (weights for weights in scaled if len(weights) > 1000):
        assert stats.kstest(weights, stats.truncnorm(-2, 2).cdf).pvalue > 1e-4


def test_uniform_weights_are_distributed_as_those_that_torch_draws_itself():
    torch.manual_seed(1)  # of what torch draws when the layers are made
    ours, torchs = all_networks(), all_networks()
    initialise(ours, torch.Generator().manual_seed(0), "uniform")
    for (name, drawn), expected in zip(ours.named_parameters(), torchs.parameters(), strict=True):
        assert drawn.abs().max() <= 1.5 * expected.abs().max() or drawn.numel() < 10, name
        assert stats.ks_2samp(drawn.detach().flatten(), expected.detach().flatten()).pvalue > 1e-4, name


@pytest.mark.parametrize("initialiser", INITIALISERS)
def test_weights_depend_on_the_seed_alone(initialiser):
    first, second, third = all_networks(), all_networks(), all_networks()
    for parameter in second.parameters():
        parameter.data = parameter.data.contiguous()
    initialise(first, torch.Generator().manual_seed(5), initialiser)
    torch.manual_seed(99)
    initialise(second, torch.Generator().manual_seed(5), initialiser)
    initialise(third, torch.Generator().manual_seed(6), initialiser)
    for one, other, stranger in zip(first.parameters(), second.parameters(), third.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one.dim() == 1 or not torch.equal(one, stranger) or not one.any()


@pytest.mark.parametrize("initialiser", INITIALISERS)
def test_constants_of_a_used_network_are_restored_and_draw_nothing(initialiser):
    constants = [ZeroConvolution(2, 4), nn.GroupNorm(2, 4), nn.BatchNorm2d(4), nn.LayerNorm(5)]
    network = nn.Sequential(*constants, nn.Conv2d(1, 3, 2, bias=False))
    for parameter in network.parameters():
        nn.init.normal_(parameter)
    alone = nn.Conv2d(1, 3, 2, bias=False)
    initialise(network, torch.Generator().manual_seed(5), initialiser)
    initialise(alone, torch.Generator().manual_seed(5), initialiser)
    assert torch.equal(network[-1].weight, alone.weight)
    for layer, value in zip(constants, (0, 1, 1, 1), strict=True):
        assert (layer.weight == value).all()
        assert not layer.bias.any()
