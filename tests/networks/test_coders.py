from itertools import pairwise

import pytest
import torch
from torch import nn

from lddr.errors import UserError
from lddr.networks.coders import BroadcastDecoder, Decoder, Discriminator, Encoder, initialise

CHANNELS = {16: (8, 8), 32: (4, 8, 8), 64: (4, 4, 8, 8), 128: (4, 4, 4, 8, 8)}  # of the levels, at width 4
shapes = pytest.mark.parametrize("shape", [(size, size, channels) for size in CHANNELS for channels in (1, 3)], ids=str)


def drawn(module, seed=0):
    initialise(module, torch.Generator().manual_seed(seed))
    for name, parameter in module.named_parameters():
        if name.endswith("bias"):  # zero biases would hide mistakes
            nn.init.normal_(parameter, std=0.1, generator=torch.Generator().manual_seed(seed))
    return module


def images_of(shape, batch=2):
    height, width, channels = shape
    images = torch.rand(batch, channels, height, width, generator=torch.Generator().manual_seed(1))
    return images.to(memory_format=torch.channels_last)


def latents_of(number=3, batch=2):
    return torch.randn(batch, number, generator=torch.Generator().manual_seed(1))


class ChannelsLast(nn.Module):
    """(batch, channels, height, width) → (batch, height x width x channels)."""

    def forward(self, images):
        return images.permute(0, 2, 3, 1).reshape(len(images), -1)


class ChannelsFirst(nn.Module):
    """(batch, 4 x 4 x channels) → (batch, channels, 4, 4)."""

    def forward(self, features):
        return features.view(len(features), 4, 4, -1).permute(0, 3, 1, 2).contiguous()


class Tile(nn.Module):
    """(batch, latents) → (batch, latents + 2, size, size), padded as SAME wants it."""

    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, latents):
        line = torch.linspace(-1, 1, self.size)
        coordinates = torch.stack(torch.meshgrid(line, line, indexing="ij")).expand(len(latents), -1, -1, -1)
        tiles = latents[:, :, None, None].expand(-1, -1, self.size, self.size)
        return torch.cat([tiles, coordinates], 1)


def plain_encoder(shape, outputs, kernels):
    layers = []
    for (inputs, channels), kernel in zip(pairwise((shape[2], *CHANNELS[shape[0]])), kernels, strict=True):
        layers += [nn.Conv2d(inputs, channels, kernel, 2, padding={2: 0, 4: 1}[kernel]), nn.ReLU()]
    return nn.Sequential(*layers, ChannelsLast(), nn.Linear(4 * 4 * 8, 32), nn.ReLU(), nn.Linear(32, outputs))


def plain_decoder(num_latents, shape):
    layers = [nn.Linear(num_latents, 32), nn.ReLU(), nn.Linear(32, 4 * 4 * 8), nn.ReLU(), ChannelsFirst()]
    for inputs, channels in pairwise((*CHANNELS[shape[0]][::-1], shape[2])):
        layers += [nn.ConvTranspose2d(inputs, channels, 4, 2, 1), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def plain_broadcast_decoder(num_latents, shape):
    layers = [Tile(shape[0])]
    for inputs, channels in pairwise((num_latents + 2, 8, 8, shape[2])):
        layers += [nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(inputs, channels, 4), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def assert_same_network(ours, plain, inputs):
    """Same outputs, and same gradients of inputs and weights, once they have the same weights."""
    drawn(ours)
    plain.load_state_dict(dict(zip(plain.state_dict(), ours.state_dict().values(), strict=True)))
    found = []
    for network, given in ((ours, inputs), (plain, inputs.contiguous())):
        given = given.detach().requires_grad_()
        outputs = network(given)
        projection = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(2))
        found.append((outputs, *torch.autograd.grad(outputs, (given, *network.parameters()), projection)))
    for our, their in zip(*found, strict=True):
        torch.testing.assert_close(our, their, rtol=1e-3, atol=1e-4 * their.abs().max().item())


@shapes
@pytest.mark.parametrize("kernels", [(4, 4, 4, 4), (4, 4, 2, 2)], ids=str)
def test_encoder_is_the_plain_network(shape, kernels):
    per_level = (4, *kernels)[-len(CHANNELS[shape[0]]) :]
    assert_same_network(Encoder(shape, 6, 4, kernels), plain_encoder(shape, 6, per_level), images_of(shape))


@shapes
def test_decoder_is_the_plain_network(shape):
    assert_same_network(Decoder(3, shape, 4), plain_decoder(3, shape), latents_of())


@pytest.mark.parametrize("shape", [(16, 16, 1), (16, 16, 3), (32, 32, 1)], ids=str)
def test_broadcast_decoder_is_the_plain_network(shape):
    assert_same_network(BroadcastDecoder(2, shape, 4), plain_broadcast_decoder(2, shape), latents_of(2))


@pytest.mark.parametrize(
    ("decoder", "shapes"),
    [
        (Decoder(3, (64, 64, 1), 4), [(8, 4, 4), (8, 8, 8), (4, 16, 16), (4, 32, 32)]),
        (BroadcastDecoder(3, (16, 16, 1), 4), [(8, 19, 19), (8, 16, 16)]),  # padded for the next
    ],
    ids=["deconvolution", "broadcast"],
)
def test_hidden_layers_lead_to_the_image_and_have_gradients(decoder, shapes):
    latents = latents_of().requires_grad_()
    hidden = drawn(decoder).hidden(latents)
    assert [each.shape[1:] for each in hidden] == shapes
    assert all((each >= 0).all() and each.is_contiguous(memory_format=torch.channels_last) for each in hidden)
    last = list(decoder.children())[-1][-1]
    assert torch.equal(last(hidden[-1]), decoder(latents))
    sum(each.sum() for each in hidden).backward()
    assert latents.grad.abs().sum() > 0
    assert all(
        (weight.grad is None) == (weight is last.weight or weight is last.bias) for weight in decoder.parameters()
    )


def test_discriminator_is_the_plain_network():
    layers = [nn.Linear(3, 7), nn.LeakyReLU(0.2), nn.Linear(7, 7), nn.LeakyReLU(0.2), nn.Linear(7, 2)]
    assert_same_network(Discriminator(3, hidden=7, layers=2, slope=0.2), nn.Sequential(*layers), latents_of(batch=9))


@pytest.mark.parametrize(
    ("network", "count"),
    [
        # 1·32·16 + 32, 32·32·16 + 32, 32·64·16 + 64, 64·64·16 + 64, then 1024·256 + 256, then the outputs
        (lambda: Encoder((64, 64, 1), 10 * 64), 544 + 16_416 + 32_832 + 65_600 + 262_400 + 256 * 640 + 640),
        (lambda: Encoder((64, 64, 3), 2 * 10), 1_568 + 16_416 + 32_832 + 65_600 + 262_400 + 256 * 20 + 20),
        # 10·256 + 256, 256·1024 + 1024, 64·64·16 + 64, 64·32·16 + 32, 32·32·16 + 32, 32·C·16 + C
        (lambda: Decoder(10, (64, 64, 1)), 2_816 + 263_168 + 65_600 + 32_800 + 16_416 + 513),
        (lambda: Decoder(10, (64, 64, 3)), 2_816 + 263_168 + 65_600 + 32_800 + 16_416 + 1_539),
        # (2 + 2)·64·16 + 64, 64·64·16 + 64, 64·1·16 + 1
        (lambda: BroadcastDecoder(2, (64, 64, 1)), 4_160 + 65_600 + 1_025),
        # 10·1000 + 1000, five times 1000·1000 + 1000, 1000·2 + 2
        (lambda: Discriminator(10), 11_000 + 5 * 1_001_000 + 2_002),
    ],
)
def test_parameter_counts_are_those_of_the_papers_tables(network, count):
    assert sum(parameter.numel() for parameter in network().parameters()) == count


@shapes
def test_every_level_halves_or_doubles_the_image(shape):
    sizes = [4 * 2**level for level in range(len(CHANNELS[shape[0]]) + 1)]
    encoder, decoder = Encoder(shape, 6, 4, (4, 4, 2, 2)), Decoder(3, shape, 4)
    for network, layers, inputs, expected in (
        (encoder, encoder.convolutions, images_of(shape), sizes[::-1]),
        (decoder, decoder.deconvolutions, latents_of(), sizes),
    ):
        seen = []
        for layer in layers:
            layer.register_forward_hook(lambda _, given, result, seen=seen: seen.append((given[0].shape, result.shape)))
        network(inputs)
        assert [(given[2:], result[2:]) for given, result in seen] == [((a, a), (b, b)) for a, b in pairwise(expected)]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("contiguous", [False, True])
def test_memory_stays_channels_last_forward_and_backward(channels, contiguous):
    shape = (32, 32, channels)
    networks = [Encoder(shape, 6, 4), Decoder(3, shape, 4), BroadcastDecoder(3, shape, 4)]
    seen = []

    def remember(_, given, result):
        seen.append(result)
        result.register_hook(seen.append)

    for network in networks:
        for layer in network.modules():
            if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
                layer.register_forward_hook(remember)
    images = images_of(shape)
    given = (images.contiguous() if contiguous else images, latents_of(), latents_of())
    for network, inputs in zip(networks, given, strict=True):
        network(inputs).square().sum().backward()
    assert len(seen) == 2 * 3 * 3  # forward and backward, networks, layers
    assert all(tensor.is_contiguous(memory_format=torch.channels_last) for tensor in seen)


def test_nothing_is_copied_between_convolutions_and_full_layers():
    places = []
    encoder, decoder = Encoder((16, 16, 1), 6, 4), Decoder(3, (16, 16, 1), 4)
    encoder.convolutions.register_forward_hook(lambda _, given, result: places.append(result.data_ptr()))
    encoder.head.register_forward_pre_hook(lambda _, given: places.append(given[0].data_ptr()))
    decoder.stem.register_forward_hook(lambda _, given, result: places.append(result.data_ptr()))
    decoder.deconvolutions[0].register_forward_pre_hook(lambda _, given: places.append(given[0].data_ptr()))
    encoder(images_of((16, 16, 1)))
    decoder(latents_of())
    assert places[0] == places[1]
    assert places[2] == places[3]


def test_state_has_the_shapes_of_torch_and_loads_from_any_memory_format():
    encoder, decoder = drawn(Encoder((64, 64, 3), 6)), drawn(Decoder(3, (64, 64, 3)))
    assert encoder.state_dict()["convolutions.2.weight"].shape == (64, 32, 4, 4)
    assert decoder.state_dict()["deconvolutions.1.weight"].shape == (64, 32, 4, 4)
    copy = Decoder(3, (64, 64, 3))
    copy.load_state_dict({name: tensor.contiguous() for name, tensor in decoder.state_dict().items()})
    assert torch.equal(copy(latents_of()), decoder(latents_of()))
    assert set(BroadcastDecoder(3, (16, 16, 1)).state_dict()) == {
        f"convolutions.{layer}.{name}" for layer in range(3) for name in ("weight", "bias")
    }


def test_fused_adam_moves_channels_last_weights_as_the_default_does():
    decoders = [drawn(Decoder(3, (16, 16, 3), 4)) for _ in range(2)]
    for decoder, fused in zip(decoders, (False, True), strict=True):
        optimizer = torch.optim.Adam(decoder.parameters(), fused=fused)
        for _ in range(3):
            optimizer.zero_grad()
            decoder(latents_of()).square().sum().backward()
            optimizer.step()
    for default, fused in zip(decoders[0].parameters(), decoders[1].parameters(), strict=True):
        torch.testing.assert_close(default, fused)


def test_bfloat16_autocast_is_near_float32():
    shape = (16, 16, 3)
    for network, inputs in (
        (Encoder(shape, 6, 8), images_of(shape)),
        (Decoder(3, shape, 8), latents_of()),
        (BroadcastDecoder(3, shape, 4), latents_of()),
        (Discriminator(3, 50), latents_of()),
    ):
        exact = drawn(network)(inputs)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = network(inputs)
        assert rounded.dtype == torch.bfloat16
        assert (rounded.float() - exact).norm() < 0.02 * exact.norm()
        rounded.float().square().sum().backward()
        assert all(parameter.grad.isfinite().all() for parameter in network.parameters())


def test_no_images_give_no_results():
    shape = (16, 16, 3)
    assert Encoder(shape, 6, 4)(images_of(shape, batch=0)).shape == (0, 6)
    for decoder in (Decoder(3, shape, 4), BroadcastDecoder(3, shape, 4)):
        assert decoder(latents_of(batch=0)).shape == (0, 3, 16, 16)


@pytest.mark.parametrize("shape", [(48, 48, 1), (64, 32, 1), (8, 8, 3), (256, 256, 3)], ids=str)
@pytest.mark.parametrize("build", [lambda s: Encoder(s, 6), lambda s: Decoder(3, s), lambda s: BroadcastDecoder(3, s)])
def test_other_resolutions_are_refused(build, shape):
    with pytest.raises(UserError, match=f"images of {shape[0]}x{shape[1]} pixels; resize them to one of 16x16, 32x32"):
        build(shape)


@pytest.mark.parametrize("kernels", [(), (4, 3), (0,)])
def test_odd_kernels_are_refused(kernels):
    with pytest.raises(UserError, match="even sizes only"):
        Encoder((64, 64, 1), 6, kernels=kernels)
