"""Encoder, decoders and discriminator of the paper's tables, and how weights are initialised.

Images are (batch, channels, height, width), channels last in memory, so that a flattened image is in the order height,
width, channel. `width` scales all channels and the FC layers; the paper's is 32.

The paper's images are squares of 64 pixels. For other sizes `levels_of` chooses the number of levels. If a side is not
a multiple of 2**levels, the encoder pads the image at the bottom and at the right by repeating its edge, and the
decoder crops its output there.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import log2, prod, sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from lddr.errors import UserError
from lddr.networks.layers import (
    BroadcastConvolution,
    Convolution,
    Deconvolution,
    ImageConvolution,
    ImageDeconvolution,
    ZeroConvolution,
)
from lddr.parts import decoders, encoders

ImageShape = tuple[int, int, int]  # height, width, channels
SMALLEST_SIDE, LARGEST_SIDE = 8, 512  # of an image
SMALLEST_MAP = 4  # about the longer side of the smallest feature map
Layer = nn.Linear | nn.Conv2d | nn.ConvTranspose2d  # those with random weights
Constant = ZeroConvolution | nn.GroupNorm | nn.LayerNorm | nn.BatchNorm1d | nn.BatchNorm2d  # those without


class Levels(NamedTuple):
    """How often a network halves or doubles the feature maps, and the size of the smallest one."""

    halvings: int
    height: int
    width: int

    @property
    def padded(self) -> tuple[int, int]:
        """Height and width of the image, rounded up to a multiple of 2**halvings."""
        return self.height << self.halvings, self.width << self.halvings


def levels_of(image_shape: ImageShape) -> Levels:
    """Return levels that bring the longer side nearest to 4: 2 for 16 pixels, 4 for 64, and 5 for 96 (96 → 3)."""
    check_image_shape(image_shape)
    height, width, _ = image_shape
    halvings = round(log2(max(height, width) / SMALLEST_MAP))
    return Levels(halvings, -(-height >> halvings), -(-width >> halvings))


def check_image_shape(image_shape: ImageShape) -> None:
    """Raise an error unless the networks accept images of this shape."""
    height, width, channels = image_shape
    if not all(SMALLEST_SIDE <= side <= LARGEST_SIDE for side in (height, width)):
        raise UserError(
            f"no network for images of {height}x{width} pixels; "
            f"resize them so that each side has {SMALLEST_SIDE} to {LARGEST_SIDE} pixels"
        )
    if channels < 1:
        raise UserError(f"no network for images of {channels} channels; give images of at least 1 channel")


@encoders.register("convolution")
class Encoder(nn.Module):
    """Stride-2 convolutions down to about 4x4, FC, FC: images → (batch, outputs); the paper's table of architectures.

    The last kernels belong to the last levels; levels before all of them take the first.
    """

    def __init__(
        self, image_shape: ImageShape, outputs: int, width: int = 32, kernels: Sequence[int] = (4, 4, 4, 4)
    ) -> None:
        super().__init__()
        levels = levels_of(image_shape)
        self.padded = levels.padded
        channels = [image_shape[2], *_level_channels(levels.halvings, width)]
        kernels = _level_kernels(kernels, len(channels) - 1)
        pairs = zip(pairwise(channels), kernels, strict=True)
        self.convolutions = nn.Sequential(*(Convolution(*pair, k, padding=(k - 2) // 2) for pair, k in pairs))
        features = levels.height * levels.width * channels[-1]
        self.head = nn.Sequential(nn.Linear(features, 8 * width), nn.ReLU(inplace=True), nn.Linear(8 * width, outputs))

    def forward(self, images: Tensor) -> Tensor:
        features = self.convolutions(pad_to(images, self.padded))
        return self.head(features.permute(0, 2, 3, 1).flatten(1))  # a view: the channels are last in memory already


@decoders.register("deconvolution")
class Decoder(nn.Module):
    """FC, FC, transposed convolutions up from about 4x4: latents → logits of the image; the paper's table."""

    def __init__(self, inputs: int, image_shape: ImageShape, width: int = 32) -> None:
        super().__init__()
        levels = levels_of(image_shape)
        channels = _level_channels(levels.halvings, width)[::-1]
        self.size = (image_shape[0], image_shape[1])
        self.smallest = (levels.height, levels.width, channels[0])
        self.stem = nn.Sequential(
            nn.Linear(inputs, 8 * width),
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
        return crop_to(self.last(self.hidden(latents)[-1]), self.size)

    def hidden(self, latents: Tensor) -> list[Tensor]:
        """Return the feature maps (batch, channels, height, width) of the FC layers and of each level but the last."""
        features = self.stem(latents).unflatten(1, self.smallest)
        images = [features.permute(0, 3, 1, 2)]  # channels last in memory: no copy
        for deconvolution in list(self.deconvolutions)[:-1]:
            images.append(deconvolution(images[-1]))
        return images


@decoders.register("broadcast")
class BroadcastDecoder(nn.Module):
    """The spatial broadcast decoder of the paper's Circles table: latents → logits of the image."""

    def __init__(self, inputs: int, image_shape: ImageShape, width: int = 32) -> None:
        super().__init__()
        check_image_shape(image_shape)
        self.convolutions = nn.Sequential(
            BroadcastConvolution(inputs, 2 * width, size=(image_shape[0], image_shape[1])),
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
        """Return the feature maps (batch, channels, height, width) before the last layer, the first with its border."""
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

    They depend on the generator alone, whatever the device and the memory format. Normalisation layers start with
    weight 1 and bias 0, and convolutions that close a residual block with 0.
    """
    for layer in module.modules():
        if isinstance(layer, Constant):
            layer.reset_parameters()
        elif isinstance(layer, Layer):
            INITIALISERS[initialiser](layer, generator)


def _truncated(layer: Layer, generator: torch.Generator) -> None:
    """Use the authors': a normal with σ = 1/√fan_in, cut at ±2σ; biases are zero."""
    drawn, sigma = torch.empty(layer.weight.shape), 1 / sqrt(_fan_in(layer))
    nn.init.trunc_normal_(drawn, std=sigma, a=-2 * sigma, b=2 * sigma, generator=generator)
    layer.weight.copy_(drawn)
    if layer.bias is not None:
        layer.bias.zero_()


def _uniform(layer: Layer, generator: torch.Generator) -> None:
    """Use torch's: weights and biases within ±1/√fan_in, where a transposed convolution counts its output channels."""
    bound = 1 / sqrt(layer.weight[0].numel())
    for parameter in layer.parameters():
        parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=generator))


def _kaiming(layer: Layer, generator: torch.Generator) -> None:
    """Use He's: a normal with σ = √(2/fan_in), which ReLU layers neither shrink nor grow; biases are zero.

    Only the taps of a transposed convolution that meet in one pixel count.
    """
    fan_in = _fan_in(layer) // (prod(layer.stride) if isinstance(layer, nn.ConvTranspose2d) else 1)
    layer.weight.copy_(torch.empty(layer.weight.shape).normal_(0, sqrt(2 / fan_in), generator=generator))
    if layer.bias is not None:
        layer.bias.zero_()


def _fan_in(layer: Layer) -> int:
    """Return inputs per output; a transposed convolution counts kernel area x in_channels, as Haiku does.

    At stride 2 only a quarter of these taps meet in one pixel: the count is that of the forward map's kernel.
    """
    return layer.in_features if isinstance(layer, nn.Linear) else prod(layer.kernel_size) * layer.in_channels


INITIALISERS = {"truncated": _truncated, "uniform": _uniform, "kaiming": _kaiming}


def pad_to(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Repeat the last row and column until images (batch, channels, height, width) have this height and width."""
    bottom, right = (wanted - side for wanted, side in zip(size, images.shape[2:], strict=True))
    if not bottom and not right:
        return images
    padded = functional.pad(images, (0, right, 0, bottom), mode="replicate")
    return padded.contiguous(memory_format=torch.channels_last)


def crop_to(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Drop the last rows and columns until images (batch, channels, height, width) have this height and width."""
    height, width = size
    if images.shape[2:] == size:
        return images
    return images[:, :, :height, :width].contiguous(memory_format=torch.channels_last)


def _level_channels(levels: int, width: int) -> list[int]:
    """Return channels after each level of the encoder: the last two have 2·width, those before them width."""
    return [width if level < levels - 2 else 2 * width for level in range(levels)]


def _level_kernels(kernels: Sequence[int], levels: int) -> list[int]:
    if not kernels or any(kernel < 2 or kernel % 2 for kernel in kernels):
        raise UserError(f"kernels are {tuple(kernels)}; give at least one, and even sizes only, such as 4, 4, 2, 2")
    return (levels * [kernels[0]] + list(kernels))[-levels:]
