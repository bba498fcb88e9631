import math
from itertools import pairwise, product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import nn

from lddr.errors import UserError
from lddr.networks.coders import (
    INITIALISERS,
    BroadcastDecoder,
    Decoder,
    Discriminator,
    Encoder,
    crop_to,
    initialise,
    levels_of,
    pad_to,
)
from lddr.networks.layers import ZeroConvolution
from lddr.networks.residual import ResidualDecoder, ResidualEncoder

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
    """(batch, height x width x channels) → (batch, channels, height, width)."""

    def __init__(self, size=(4, 4)):
        super().__init__()
        self.size = size

    def forward(self, features):
        return features.view(len(features), *self.size, -1).permute(0, 3, 1, 2).contiguous()


class Crop(nn.Module):
    """The top left corner."""

    def __init__(self, height, width):
        super().__init__()
        self.height, self.width = height, width

    def forward(self, images):
        return images[:, :, : self.height, : self.width]


class Tile(nn.Module):
    """(batch, latents) → (batch, latents + 2, height, width): the latents over all pixels, and the coordinates."""

    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, latents):
        lines = [torch.linspace(-1, 1, side) for side in self.size]
        coordinates = torch.stack(torch.meshgrid(*lines, indexing="ij")).expand(len(latents), -1, -1, -1)
        tiles = latents[:, :, None, None].expand(-1, -1, *self.size)
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
    layers = [Tile(shape[:2])]
    for inputs, channels in pairwise((num_latents + 2, 8, 8, shape[2])):
        layers += [nn.ZeroPad2d((1, 2, 1, 2)), nn.Conv2d(inputs, channels, 4), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def assert_same_network(ours, plain, inputs):
    """Same outputs, and same gradients of inputs and weights, once they have the same weights."""
    drawn(ours)
    plain.load_state_dict(dict(zip(plain.state_dict(), ours.state_dict().values(), strict=True)))
    found = []
    for network, sent in ((ours, inputs), (plain, inputs.contiguous())):
        sent = sent.detach().requires_grad_()
        outputs = network(sent)
        projection = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(2))
        found.append((outputs, *torch.autograd.grad(outputs, (sent, *network.parameters()), projection)))
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


OTHER_SIZES = [  # the image, the smallest feature map, and the channels of the levels at width 4
    ((8, 8, 1), (4, 4), (8,)),
    ((9, 13, 2), (3, 4), (8, 8)),
    ((28, 28, 1), (4, 4), (4, 8, 8)),
    ((31, 64, 3), (2, 4), (4, 4, 8, 8)),
    ((48, 96, 4), (2, 3), (4, 4, 4, 8, 8)),
    ((100, 20, 3), (4, 1), (4, 4, 4, 8, 8)),
    ((11, 8, 1), (6, 4), (8,)),
    ((96, 96, 3), (3, 3), (4, 4, 4, 8, 8)),
    ((256, 256, 1), (4, 4), (4, 4, 4, 4, 8, 8)),
]
other_sizes = pytest.mark.parametrize(("shape", "smallest", "channels"), OTHER_SIZES, ids=str)


@other_sizes
def test_encoder_of_other_sizes_is_the_plain_network_of_the_padded_image(shape, smallest, channels):
    layers = []
    for inputs, outputs in pairwise((shape[2], *channels)):
        layers += [nn.Conv2d(inputs, outputs, 4, 2, 1), nn.ReLU()]
    bottom, right = (least * 2 ** len(channels) - side for least, side in zip(smallest, shape, strict=False))
    head = [nn.Linear(smallest[0] * smallest[1] * 8, 32), nn.ReLU(), nn.Linear(32, 6)]
    plain = nn.Sequential(nn.ReplicationPad2d((0, right, 0, bottom)), *layers, ChannelsLast(), *head)
    assert_same_network(Encoder(shape, 6, 4), plain, images_of(shape))


@other_sizes
def test_decoder_of_other_sizes_is_the_cropped_plain_network(shape, smallest, channels):
    layers = [
        nn.Linear(3, 32),
        nn.ReLU(),
        nn.Linear(32, smallest[0] * smallest[1] * 8),
        nn.ReLU(),
        ChannelsFirst(smallest),
    ]
    for inputs, outputs in pairwise((*channels[::-1], shape[2])):
        layers += [nn.ConvTranspose2d(inputs, outputs, 4, 2, 1), nn.ReLU()]
    assert_same_network(Decoder(3, shape, 4), nn.Sequential(*layers[:-1], Crop(*shape[:2])), latents_of())


@pytest.mark.parametrize("shape", [(8, 8, 1), (9, 13, 2), (31, 20, 3)], ids=str)
def test_broadcast_decoder_of_other_sizes_is_the_plain_network(shape):
    assert_same_network(BroadcastDecoder(2, shape, 4), plain_broadcast_decoder(2, shape), latents_of(2))


@pytest.mark.parametrize("size", [16, 32, 64, 128])
def test_nothing_is_padded_or_cropped_in_squares_of_a_power_of_two(size):
    images = images_of((size, size, 3))
    assert pad_to(images, Encoder((size, size, 3), 6, 4).padded) is images
    assert crop_to(images, Decoder(3, (size, size, 3), 4).size) is images


@shapes
def test_initial_weights_of_squares_of_a_power_of_two_are_drawn_layer_by_layer_from_the_input_to_the_output(shape):
    size, _, image = shape
    encoder = [(o, i, 4, 4) for i, o in pairwise((image, *CHANNELS[size]))]
    decoder = [(i, o, 4, 4) for i, o in pairwise((*CHANNELS[size][::-1], image))]
    for network, name, wanted in (
        (Encoder(shape, 6, 4), "convolutions", {"head.0": (32, 128), "head.2": (6, 32)}),
        (Decoder(3, shape, 4), "deconvolutions", {"stem.0": (32, 3), "stem.2": (128, 32)}),
    ):
        images = {f"{name}.{number}": of for number, of in enumerate(encoder if name == "convolutions" else decoder)}
        wanted = images | wanted if name == "convolutions" else wanted | images
        generator = torch.Generator().manual_seed(3)
        initialise(network, torch.Generator().manual_seed(3), "uniform")
        state = network.state_dict()
        assert list(state) == [f"{layer}.{part}" for layer in wanted for part in ("weight", "bias")]
        for layer, of in wanted.items():
            bound = 1 / math.prod(of[1:]) ** 0.5
            assert torch.equal(state[f"{layer}.weight"], torch.empty(of).uniform_(-bound, bound, generator=generator))
            bias = torch.empty(state[f"{layer}.bias"].shape).uniform_(-bound, bound, generator=generator)
            assert torch.equal(state[f"{layer}.bias"], bias)


def test_padding_repeats_the_edge_at_the_bottom_and_at_the_right():
    images = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    padded = torch.tensor([[[[1.0, 2.0, 2.0, 2.0], [3.0, 4.0, 4.0, 4.0], [3.0, 4.0, 4.0, 4.0]]]])
    assert torch.equal(pad_to(images, (3, 4)), padded)
    assert torch.equal(crop_to(padded, (2, 2)), images)
    cropped = crop_to(images_of((9, 13, 3)), (5, 6))
    assert cropped.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("build", [lambda s: Encoder(s, 6), lambda s: Decoder(3, s), lambda s: BroadcastDecoder(3, s)])
def test_sizes_out_of_range_are_refused(build):
    with pytest.raises(UserError, match="images of 7x64 pixels; resize them so that each side has 8 to 512 pixels"):
        build((7, 64, 1))


@pytest.mark.parametrize("kernels", [(), (4, 3), (0,)])
def test_odd_kernels_are_refused(kernels):
    with pytest.raises(UserError, match="even sizes only"):
        Encoder((64, 64, 1), 6, kernels=kernels)


sides = st.integers(8, 512)


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((8, 8), (1, 4, 4)),
        ((16, 16), (2, 4, 4)),
        ((32, 32), (3, 4, 4)),
        ((64, 64), (4, 4, 4)),
        ((128, 128), (5, 4, 4)),
        ((512, 512), (7, 4, 4)),
        ((9, 13), (2, 3, 4)),  # 13 → 6.5 → 3.25
        ((11, 11), (1, 6, 6)),  # 5.5 is nearer to 4 than 2.75 is, as ratios
        ((12, 12), (2, 3, 3)),
        ((96, 48), (5, 3, 2)),
        ((100, 20), (5, 4, 1)),
        ((512, 8), (7, 4, 1)),
    ],
)
def test_levels_worked_out_by_hand(size, expected):
    assert levels_of((*size, 1)) == expected


@given(sides, sides)
def test_the_longer_side_ends_near_4_and_padding_is_less_than_one_step_of_the_smallest_map(height, width):
    levels = levels_of((height, width, 3))
    assert 3 <= max(levels.height, levels.width) <= 6
    for side, padded in zip((height, width), levels.padded, strict=True):
        assert padded % 2**levels.halvings == 0
        assert side <= padded < side + 2**levels.halvings


@pytest.mark.parametrize("size", [s for s in product((7, 64, 513), repeat=2) if s != (64, 64)], ids=str)
def test_sides_out_of_range_are_refused(size):
    with pytest.raises(
        UserError, match=f"{size[0]}x{size[1]} pixels; resize them so that each side has 8 to 512 pixels"
    ):
        levels_of((*size, 1))


def test_images_without_channels_are_refused():
    with pytest.raises(UserError, match="images of 0 channels; give images of at least 1 channel"):
        levels_of((64, 64, 0))


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


def test_kaiming_weights_are_those_of_torch_where_torch_counts_the_inputs_of_an_output():
    torch.manual_seed(1)
    for layer in (nn.Linear(300, 40), nn.Conv2d(8, 30, 4)):
        initialise(layer, torch.Generator().manual_seed(0), "kaiming")
        expected = nn.init.kaiming_normal_(torch.empty_like(layer.weight), nonlinearity="relu")
        assert stats.ks_2samp(layer.weight.detach().flatten(), expected.flatten()).pvalue > 1e-4
        assert not layer.bias.any()


def test_kaiming_weights_keep_the_size_of_features_from_layer_to_layer():
    decoder, sizes = Decoder(20, (64, 64, 1), 32), {}
    for initialiser in ("kaiming", "truncated"):
        initialise(decoder, torch.Generator().manual_seed(0), initialiser)
        with torch.no_grad():
            features = decoder.hidden(torch.randn(64, 20, generator=torch.Generator().manual_seed(1)))
        sizes[initialiser] = [
            float(each[..., 2:-2, 2:-2].square().mean()) for each in features[1:]
        ]  # borders have less
    assert all(0.5 < size < 2 for size in sizes["kaiming"])  # E[ReLU(x)²] = Var(x) / 2, and the weights double it again
    assert sizes["truncated"][-1] < 1e-3


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
