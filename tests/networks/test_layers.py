import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from lddr.networks.layers import (
    BroadcastConvolution,
    Convolution,
    Deconvolution,
    ImageConvolution,
    ImageDeconvolution,
    UpsampleConvolution,
    ZeroConvolution,
    channels_last,
)

LAYERS = {
    "convolution": lambda: Convolution(3, 8),
    "one channel": lambda: Convolution(1, 8),
    "2x2": lambda: Convolution(3, 8, kernel=2, padding=0),
    "3x3, stride 1": lambda: Convolution(3, 8, kernel=3, stride=1),
    "unpadded": lambda: Convolution(3, 8, stride=1, padding=0),
    "deconvolution": lambda: Deconvolution(3, 8),
    "grey image": lambda: ImageDeconvolution(3, 1),
    "colour image": lambda: ImageDeconvolution(3, 3),
    "image of four channels": lambda: ImageDeconvolution(3, 4),
    "downsampling": lambda: channels_last(nn.Conv2d(3, 8, 4, stride=2, padding=1)),
    "upsampling": lambda: UpsampleConvolution(3, 8),
    "grey image, stride 1": lambda: ImageConvolution(3, 1),
    "colour image, stride 1": lambda: ImageConvolution(3, 3),
}
every_layer = pytest.mark.parametrize("build", LAYERS.values(), ids=LAYERS)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def plain(layer, images):
    """The map of the layer, the way torch.nn computes it in NCHW."""
    weight = layer.weight.contiguous()
    if isinstance(layer, ImageDeconvolution):
        return functional.conv_transpose2d(images, weight, layer.bias, 2, 1)
    if isinstance(layer, Deconvolution):
        return functional.conv_transpose2d(images, weight, layer.bias, 2, 1).relu()
    if isinstance(layer, ImageConvolution):
        return functional.conv2d(functional.pad(images, (1, 2, 1, 2)), weight, layer.bias)
    if isinstance(layer, UpsampleConvolution):
        return functional.conv2d(functional.interpolate(images, scale_factor=2), weight, layer.bias, padding=1)
    result = functional.conv2d(images, weight, layer.bias, layer.stride, layer.padding)
    return result.relu() if isinstance(layer, Convolution) else result


def images_for(layer, size=(8, 8), batch=3):
    return torch.randn(batch, layer.in_channels, *size).to(memory_format=torch.channels_last)


def value_and_gradients(function, images, parameters):
    images = images.detach().requires_grad_()
    result = function(images)
    projection = torch.randn(result.shape, generator=torch.Generator().manual_seed(1)).to(result.dtype)
    return result, *torch.autograd.grad(result, (images, *parameters), projection)


@every_layer
@pytest.mark.parametrize("size", [(4, 4), (10, 10), (4, 6), (14, 4)], ids=str)
def test_layers_are_the_same_map_as_plain_ones_with_the_same_gradients(build, size):
    layer = build()
    images = images_for(layer, size)
    ours = value_and_gradients(layer, images, layer.parameters())
    theirs = value_and_gradients(lambda x: plain(layer, x), images.contiguous(), layer.parameters())
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [(4, 1), (2, 5), (1, 3)], ids=str)  # the smallest maps of long and of odd images
@pytest.mark.parametrize("name", ["deconvolution", "grey image", "colour image", "3x3, stride 1", "upsampling"])
def test_layers_are_the_same_map_on_maps_of_a_few_pixels(name, size):
    layer = LAYERS[name]()
    images = images_for(layer, size)
    ours = value_and_gradients(layer, images, layer.parameters())
    theirs = value_and_gradients(lambda x: plain(layer, x), images.contiguous(), layer.parameters())
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, rtol=1e-4, atol=1e-5)


@every_layer
def test_gradients_are_those_of_finite_differences(build):
    layer = build().double()
    images = images_for(layer, (4, 5), batch=1).double().requires_grad_()

    def map_of(images, weight, bias):
        return torch.func.functional_call(layer, {"weight": weight, "bias": bias}, images)

    assert torch.autograd.gradcheck(map_of, (images, layer.weight, layer.bias))


@every_layer
@pytest.mark.parametrize("frozen", ["weight", "bias", "both"])
def test_frozen_parameters_get_no_gradient_and_change_no_other(build, frozen):
    layer = build()
    images = images_for(layer).requires_grad_()
    layer(images).square().sum().backward()
    wanted = {name: parameter.grad for name, parameter in layer.named_parameters()} | {"images": images.grad}
    images.grad = None
    for name, parameter in layer.named_parameters():
        parameter.grad = None
        parameter.requires_grad_(frozen not in (name, "both"))
    layer(images).square().sum().backward()
    torch.testing.assert_close(images.grad, wanted["images"])
    for name, parameter in layer.named_parameters():
        if parameter.requires_grad:
            torch.testing.assert_close(parameter.grad, wanted[name])
        else:
            assert parameter.grad is None


@every_layer
def test_images_of_either_memory_format_give_channels_last(build):
    layer = build()
    images = images_for(layer)
    for given_images in (images, images.contiguous()):
        assert layer(given_images).stride()[1] == 1


@every_layer
def test_other_devices_take_the_plain_way_to_the_same_shape(build):
    layer = build()
    images = images_for(layer)
    wanted = layer(images).shape
    assert layer.to("meta")(images.to("meta")).shape == wanted


@every_layer
def test_bfloat16_autocast_is_near_float32(build):
    layer = build()
    images = images_for(layer)
    exact = value_and_gradients(layer, images, layer.parameters())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = value_and_gradients(layer, images, layer.parameters())
    assert rounded[0].dtype == torch.bfloat16
    for near, true in zip(rounded, exact, strict=True):
        assert (near.float() - true).norm() < 0.05 * true.norm()  # a few outputs change sides at ReLU's kink
    assert all(gradient.dtype == torch.float32 for gradient in rounded[1:])


def tiled(latents, size):
    """Latents over all pixels and the two coordinates, (batch, latents + 2, height, width)."""
    lines = [torch.linspace(-1, 1, side).to(latents.dtype) for side in size]
    coordinates = torch.stack(torch.meshgrid(*lines, indexing="ij")).expand(len(latents), -1, -1, -1)
    return torch.cat([latents[:, :, None, None].expand(-1, -1, *size), coordinates], 1)


def plain_broadcast(layer, latents):
    images = functional.pad(tiled(latents, layer.size), (1, 2, 1, 2))
    return functional.conv2d(images, layer.weight.contiguous(), layer.bias).relu()


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 5), st.integers(1, 6), st.tuples(st.integers(3, 12), st.integers(3, 12)), st.integers(1, 4))
def test_broadcast_convolution_is_the_convolution_of_the_tiled_latents(num_latents, outputs, size, batch):
    torch.manual_seed(0)
    layer = BroadcastConvolution(num_latents, outputs, size).double()
    latents = torch.randn(batch, num_latents, dtype=torch.double)
    ours = value_and_gradients(lambda z: layer(z)[:, :, 1:-2, 1:-2], latents, layer.parameters())
    theirs = value_and_gradients(lambda z: plain_broadcast(layer, z), latents, layer.parameters())
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their)
    result = layer(latents)
    assert result.shape == (batch, outputs, size[0] + 3, size[1] + 3)
    assert result.stride()[1] == 1
    assert result.count_nonzero() == theirs[0].count_nonzero()  # so that the border is zero


def test_what_a_broadcast_layer_keeps_has_the_precision_and_the_device_of_its_making():
    single = BroadcastConvolution(2, 4, (8, 9))
    torch.set_default_dtype(torch.float64)
    try:
        double = BroadcastConvolution(2, 4, (8, 9))
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        elsewhere = BroadcastConvolution(2, 4, (8, 9))
    assert (single.taps.dtype, double.taps.dtype) == (torch.float32, torch.float64)
    assert (single.fixed.device.type, elsewhere.fixed.device.type) == ("cpu", "meta")
    assert double(torch.zeros(1, 2, dtype=torch.float64)).dtype == torch.float64


def test_zero_convolutions_start_at_zero_with_gradients():
    layer = ZeroConvolution(3, 5)
    images = images_for(layer, (4, 6))
    assert not layer(images).any()
    layer(images).sum().backward()
    torch.testing.assert_close(layer.bias.grad, torch.full((5,), 3.0 * 4 * 6))
    assert layer.weight.grad.all()
