import pytest
import torch
from torch import nn
from torch.nn import functional

from lddr.errors import UserError
from lddr.networks.coders import initialise
from lddr.networks.residual import ResidualBlock, ResidualDecoder, ResidualEncoder

SHAPES = [(8, 8, 1), (9, 13, 2), (28, 28, 1), (31, 64, 3), (48, 96, 4), (96, 96, 3), (100, 20, 3), (256, 256, 1)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)
CHANNELS_LAST = torch.channels_last


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def images_of(shape, batch=2):
    return torch.rand(batch, shape[2], *shape[:2]).to(memory_format=CHANNELS_LAST)


def trained(network):
    """With weights that are all different from zero, as after some steps."""
    for parameter in network.parameters():
        nn.init.normal_(parameter, std=0.2)
    return network


def plain_block(weights, prefix, features):
    """A residual block in plain torch: pre-activation, two 3x3 convolutions, and the sum."""
    change = features
    for name in ("first", "second"):
        weight, bias = (weights[f"{prefix}.{name}.{part}"] for part in ("weight", "bias"))
        change = functional.conv2d(change.relu(), weight, bias, padding=1)
    return features + change


def plain_head(weights, name, features):
    hidden = functional.linear(features, weights[f"{name}.0.weight"], weights[f"{name}.0.bias"]).relu()
    return functional.linear(hidden, weights[f"{name}.2.weight"], weights[f"{name}.2.bias"])


def plain_encoder(weights, images, levels, depth):
    for level in range(levels):
        weight, bias = (weights[f"levels.{level}.0.{part}"] for part in ("weight", "bias"))
        images = functional.conv2d(images, weight, bias, stride=2, padding=1)
        for block in range(depth):
            images = plain_block(weights, f"levels.{level}.{block + 1}", images)
    return plain_head(weights, "head", images.relu().permute(0, 2, 3, 1).flatten(1))


def plain_decoder(weights, latents, smallest, levels, depth):
    images = plain_head(weights, "stem", latents).unflatten(1, (*smallest, -1)).permute(0, 3, 1, 2)
    for level in range(levels):
        for block in range(depth):
            images = plain_block(weights, f"levels.{level}.{block}", images)
        weight, bias = (weights[f"levels.{level}.{depth}.{part}"] for part in ("weight", "bias"))
        images = functional.conv2d(functional.interpolate(images, scale_factor=2), weight, bias, padding=1)
    return functional.conv2d(functional.pad(images.relu(), (1, 2, 1, 2)), weights["last.weight"], weights["last.bias"])


def assert_same(network, plain, inputs):
    """Same outputs, and same gradients of inputs and weights."""
    found = []
    for function in (network, lambda given: plain(dict(network.named_parameters()), given)):
        given = inputs.detach().requires_grad_()
        outputs = function(given)
        projection = torch.randn(outputs.shape, generator=torch.Generator().manual_seed(2), dtype=outputs.dtype)
        found.append((outputs, *torch.autograd.grad(outputs, (given, *network.parameters()), projection)))
    for our, their in zip(*found, strict=True):
        torch.testing.assert_close(our, their)


@pytest.mark.parametrize("depth", [1, 2])
def test_encoder_is_the_plain_network(depth):
    network = trained(ResidualEncoder((12, 9, 3), 6, 2, depth)).double()  # padded to 12x12
    padded = nn.ReplicationPad2d((0, 3, 0, 0))
    assert_same(network, lambda weights, x: plain_encoder(weights, padded(x), 2, depth), images_of((12, 9, 3)).double())


@pytest.mark.parametrize("depth", [1, 2])
def test_decoder_is_the_plain_network(depth):
    network = trained(ResidualDecoder(5, (12, 9, 3), 2, depth)).double()
    latents = torch.randn(2, 5, dtype=torch.double)
    assert_same(network, lambda weights, z: plain_decoder(weights, z, (3, 3), 2, depth)[..., :9], latents)


@every_shape
def test_every_size_gives_its_shape_and_gradients_reach_every_weight(shape):
    encoder, decoder = trained(ResidualEncoder(shape, 6, 2)), trained(ResidualDecoder(3, shape, 2))
    images, latents = images_of(shape), torch.randn(2, 3, requires_grad=True)
    codes, logits = encoder(images), decoder(latents)
    assert codes.shape == (2, 6)
    assert logits.shape == images.shape
    assert logits.is_contiguous(memory_format=CHANNELS_LAST)
    codes.square().sum().backward()
    logits.square().sum().backward()
    assert latents.grad.all()
    assert all(weight.grad.any() for network in (encoder, decoder) for weight in network.parameters())


def test_channels_double_to_8_times_the_width_and_no_more():
    encoder, decoder = ResidualEncoder((256, 256, 3), 6, 2), ResidualDecoder(3, (256, 256, 3), 2)
    assert [level[0].out_channels for level in encoder.levels] == [2, 4, 8, 16, 16, 16]
    assert [level[-1].in_channels for level in decoder.levels] == [16, 16, 16, 8, 4, 2]
    assert decoder.last.in_channels == 1


def test_blocks_start_as_the_identity():
    block = ResidualBlock(4)
    features = torch.randn(2, 4, 5, 6)
    assert torch.equal(block(features), features)
    initialise(trained(block), torch.Generator().manual_seed(0))
    assert torch.equal(block(features), features)
    assert block.first.weight.any()


def test_initial_outputs_keep_their_scale_however_many_levels_and_blocks_there_are():
    scales = []
    for size, depth in ((16, 1), (128, 3)):
        encoder = ResidualEncoder((size, size, 3), 100, 4, depth)
        initialise(encoder, torch.Generator().manual_seed(0))
        scales.append(encoder(torch.randn(20, 3, size, size)).square().mean().sqrt())
    assert 0.4 < scales[1] / scales[0] < 2.5  # a factor of 2 in each of the 3 levels more would be 8


@pytest.mark.parametrize("shape", [(16, 16, 3), (9, 13, 1)], ids=str)
def test_hidden_maps_lead_to_the_pixels(shape):
    decoder = trained(ResidualDecoder(3, shape, 4))
    latents = torch.randn(2, 3)
    hidden = decoder.hidden(latents)
    height, width = (-(-side // 4) for side in shape[:2])
    assert [tuple(each.shape[1:]) for each in hidden] == [
        (8, height, width),
        (4, 2 * height, 2 * width),
        (2, 4 * height, 4 * width),
    ]
    assert all(each.is_contiguous(memory_format=CHANNELS_LAST) for each in hidden)
    assert torch.equal(decoder.last(hidden[-1])[:, :, : shape[0], : shape[1]], decoder(latents))
    assert decoder.last.bias.shape == (shape[2],)


@pytest.mark.parametrize("contiguous", [False, True])
def test_memory_stays_channels_last_forward_and_backward(contiguous):
    shape, seen = (16, 16, 3), []

    def remember(_, given, result):
        seen.append(result)
        result.register_hook(seen.append)

    encoder, decoder = trained(ResidualEncoder(shape, 6, 4)), trained(ResidualDecoder(3, shape, 4))
    for layer in (*encoder.modules(), *decoder.modules()):
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(remember)
    images = images_of(shape)
    encoder(images.contiguous() if contiguous else images).square().sum().backward()
    decoder(torch.randn(2, 3)).square().sum().backward()
    assert len(seen) == 2 * (2 * 3 + 2 * 3 + 1)  # forward and backward, levels, layers, and the last
    assert all(tensor.is_contiguous(memory_format=CHANNELS_LAST) for tensor in seen)


def test_an_image_of_a_batch_is_encoded_as_it_is_alone():
    encoder, images = trained(ResidualEncoder((9, 13, 3), 6, 4)), images_of((9, 13, 3), batch=5)
    torch.testing.assert_close(encoder(images)[:1], encoder(images[:1]))


def test_bfloat16_autocast_is_near_float32():
    shape = (12, 9, 3)
    networks = ((ResidualEncoder(shape, 6, 8), images_of(shape)), (ResidualDecoder(3, shape, 8), torch.randn(2, 3)))
    for network, inputs in networks:
        initialise(network, torch.Generator().manual_seed(0))
        exact = network(inputs)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            rounded = network(inputs)
        assert rounded.dtype == torch.bfloat16
        assert (rounded.float() - exact).norm() < 0.02 * exact.norm()
        rounded.float().square().sum().backward()
        assert all(parameter.grad.isfinite().all() for parameter in network.parameters())


def test_other_devices_give_the_same_shapes():
    shape = (9, 13, 3)
    with torch.device("meta"):
        encoder, decoder = ResidualEncoder(shape, 6, 4), ResidualDecoder(3, shape, 4)
        assert encoder(torch.zeros(2, 3, 9, 13)).shape == (2, 6)
        assert decoder(torch.zeros(2, 3)).shape == (2, 3, 9, 13)


def test_no_images_give_no_results():
    shape = (9, 13, 3)
    assert ResidualEncoder(shape, 6, 4)(images_of(shape, batch=0)).shape == (0, 6)
    assert ResidualDecoder(3, shape, 4)(torch.zeros(0, 3)).shape == (0, 3, 9, 13)


@pytest.mark.parametrize("build", [lambda s, d: ResidualEncoder(s, 6, 4, d), lambda s, d: ResidualDecoder(3, s, 4, d)])
def test_wrong_depths_and_sizes_are_refused(build):
    with pytest.raises(UserError, match="depth is 0; give at least 1"):
        build((16, 16, 3), 0)
    with pytest.raises(UserError, match="each side has 8 to 512 pixels"):
        build((16, 600, 3), 1)
