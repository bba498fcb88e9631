"""Encoder, decoders and discriminator of the paper's tables, and how their weights are drawn.

Images are (batch, channels, height, width), channels last in memory, so that a flattened image is in the order height,
width, channel. `width` scales all channels and the FC layers beside them; the paper's is 32.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import prod, sqrt

import torch
from torch import Tensor, nn

from lddr.errors import UserError
from lddr.networks.layers import (
    BroadcastConvolution,
    Convolution,
    Deconvolution,
    ImageConvolution,
    ImageDeconvolution,
)

ImageShape = tuple[int, int, int]  # height, width, channels
Layer = nn.Linear | nn.Conv2d | nn.ConvTranspose2d  # those with weights
SIDES = (16, 32, 64, 128)
SMALLEST = 4  # side of the encoder's last and the decoder's first image


class Encoder(nn.Module):
    """Stride-2 convolutions down to 4x4, FC, FC: images → (batch, outputs); the paper's table of architectures.

    The last kernels belong to the last levels; levels before all of them take the first.
    """

    def __init__(
        self, image_shape: ImageShape, outputs: int, width: int = 32, kernels: Sequence[int] = (4, 4, 4, 4)
    ) -> None:
        super().__init__()
        channels = [image_shape[2], *_level_channels(image_shape, width)]
        kernels = _level_kernels(kernels, len(channels) - 1)
        levels = zip(pairwise(channels), kernels, strict=True)
        self.convolutions = nn.Sequential(*(Convolution(*pair, k, padding=(k - 2) // 2) for pair, k in levels))
        self.head = nn.Sequential(
            nn.Linear(SMALLEST**2 * channels[-1], 8 * width), nn.ReLU(inplace=True), nn.Linear(8 * width, outputs)
        )

    def forward(self, images: Tensor) -> Tensor:
        features = self.convolutions(images)
        return self.head(features.permute(0, 2, 3, 1).flatten(1))  # a view: the channels are last in memory already


class Decoder(nn.Module):
    """FC, FC, transposed convolutions up from 4x4: latents → logits of the image; the paper's table."""

    def __init__(self, num_latents: int, image_shape: ImageShape, width: int = 32) -> None:
        super().__init__()
        channels = _level_channels(image_shape, width)[::-1]
        self.smallest = (SMALLEST, SMALLEST, channels[0])
        self.stem = nn.Sequential(
            nn.Linear(num_latents, 8 * width),
            nn.ReLU(inplace=True),
            nn.Linear(8 * width, prod(self.smallest)),
            nn.ReLU(inplace=True),
        )
        self.deconvolutions = nn.Sequential(
            *(Deconvolution(*pair) for pair in pairwise(channels)), ImageDeconvolution(channels[-1], image_shape[2])
        )

    @property
    def last(self) -> nn.Module:
        """The layer whose outputs are the pixels."""
        return self.deconvolutions[-1]

    def forward(self, latents: Tensor) -> Tensor:
        return self.last(self.hidden(latents)[-1])

    def hidden(self, latents: Tensor) -> list[Tensor]:
        """What the FC layers give and every image on the way, (batch, channels, height, width), before the last."""
        features = self.stem(latents).unflatten(1, self.smallest)
        images = [features.permute(0, 3, 1, 2)]  # channels last in memory: no copy
        for deconvolution in list(self.deconvolutions)[:-1]:
            images.append(deconvolution(images[-1]))
        return images


class BroadcastDecoder(nn.Module):
    """The spatial broadcast decoder of the paper's Circles table: latents → logits of the image."""

    def __init__(self, num_latents: int, image_shape: ImageShape, width: int = 32) -> None:
        super().__init__()
        _check_resolution(image_shape)
        self.convolutions = nn.Sequential(
            BroadcastConvolution(num_latents, 2 * width, size=image_shape[0]),
            Convolution(2 * width, 2 * width, stride=1, padding=0),  # the layer before has padded
            ImageConvolution(2 * width, image_shape[2]),
        )

    @property
    def last(self) -> nn.Module:
        """The layer whose outputs are the pixels."""
        return self.convolutions[-1]

    def forward(self, latents: Tensor) -> Tensor:
        return self.last(self.hidden(latents)[-1])

    def hidden(self, latents: Tensor) -> list[Tensor]:
        """Every image before the last, (batch, channels, height, width), the first with its border."""
        first = self.convolutions[0](latents)
        return [first, self.convolutions[1](first)]


class Discriminator(nn.Module):
    """Latents of the batch or permuted ones? FC layers with leaky ReLU, (batch, latents) → logits (batch, 2)."""

    def __init__(self, num_latents: int, hidden: int = 1000, layers: int = 6, slope: float = 0.01) -> None:
        super().__init__()
        self.layers = nn.Sequential()
        for inputs, outputs in pairwise([num_latents] + layers * [hidden]):
            self.layers.extend([nn.Linear(inputs, outputs), nn.LeakyReLU(slope, inplace=True)])
        self.layers.append(nn.Linear(hidden, 2))

    def forward(self, latents: Tensor) -> Tensor:
        return self.layers(latents)


@torch.no_grad()
def initialise(module: nn.Module, generator: torch.Generator, initialiser: str = "truncated") -> None:
    """Draw all weights anew, in a fixed order of layers and indices.

    They depend on the generator alone, whatever the device and the memory format.
    """
    for layer in module.modules():
        if isinstance(layer, Layer):
            INITIALISERS[initialiser](layer, generator)


def _truncated(layer: Layer, generator: torch.Generator) -> None:
    """The authors': a normal with σ = 1/√fan_in, cut at ±2σ; biases are zero."""
    drawn = torch.empty(layer.weight.shape)
    sigma = 1 / sqrt(_fan_in(layer))
    nn.init.trunc_normal_(drawn, std=sigma, a=-2 * sigma, b=2 * sigma, generator=generator)
    layer.weight.copy_(drawn)
    assert layer.bias is not None
    layer.bias.zero_()


def _uniform(layer: Layer, generator: torch.Generator) -> None:
    """Torch's: weights and biases within ±1/√fan_in, where a transposed convolution counts the channels it gives."""
    bound = 1 / sqrt(layer.weight[0].numel())
    for parameter in layer.parameters():
        parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))


INITIALISERS = {"truncated": _truncated, "uniform": _uniform}


def _fan_in(layer: Layer) -> int:
    """Inputs per output; a transposed convolution counts kernel area x in_channels, as Haiku does.

    At stride 2 only a quarter of these taps meet in one pixel: the count is that of the forward map's kernel.
    """
    return layer.in_features if isinstance(layer, nn.Linear) else prod(layer.kernel_size) * layer.in_channels


def _level_channels(image_shape: ImageShape, width: int) -> list[int]:
    """Channels after each level down to 4x4: the last two have 2·width, those before them width."""
    _check_resolution(image_shape)
    levels = (image_shape[0] // SMALLEST).bit_length() - 1
    return (levels - 2) * [width] + 2 * [2 * width]


def _level_kernels(kernels: Sequence[int], levels: int) -> list[int]:
    if not kernels or any(kernel < 2 or kernel % 2 for kernel in kernels):
        raise UserError(f"kernels are {tuple(kernels)}; give at least one, and even sizes only, such as 4, 4, 2, 2")
    return (levels * [kernels[0]] + list(kernels))[-levels:]


def _check_resolution(image_shape: ImageShape) -> None:
    height, width, _ = image_shape
    if height != width or height not in SIDES:
        known = ", ".join(f"{size}x{size}" for size in SIDES)
        raise UserError(f"no network for images of {height}x{width} pixels; resize them to one of {known}")
