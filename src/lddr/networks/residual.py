"""A residual encoder and decoder for colour images: about 12 times the multiplications of the paper's, at equal width.

Blocks are pre-activation (He et al., 2016). There is no normalisation. Batch norm would make the code of an image
depend on the other images of its batch, and group norm would restrict `width` to multiples of the number of groups.
Neither is needed to keep the scale of the features: initially every block is the identity, and the layers between the
levels are linear, with weights whose variance is about 1/fan_in.
"""

from itertools import pairwise
from math import prod

from torch import Tensor, nn

from lddr.errors import UserError
from lddr.networks.coders import ImageShape, crop_to, levels_of, pad_to
from lddr.networks.layers import (
    Convolution,
    ImageConvolution,
    UpsampleConvolution,
    ZeroConvolution,
    channels_last,
)
from lddr.parts import decoders, encoders

MOST = 8  # times `width`: channels stop doubling there


class ResidualBlock(nn.Module):
    """x + convolution(ReLU(convolution(ReLU(x)))), which is x until the last convolution has learned something."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = Convolution(channels, channels, kernel=3, stride=1)
        self.second = ZeroConvolution(channels, channels)

    def forward(self, features: Tensor) -> Tensor:
        return features + self.second(self.first(features.relu()))


@encoders.register("residual")
class ResidualEncoder(nn.Module):
    """Stride-2 convolutions down to about 4x4, `depth` residual blocks after each, FC, FC: images → (batch, outputs).

    Channels double with every level, from `width` to 8·`width`.
    """

    def __init__(self, image_shape: ImageShape, outputs: int, width: int = 32, depth: int = 1) -> None:
        super().__init__()
        levels = levels_of(image_shape)
        self.padded = levels.padded
        channels = _level_channels(levels.halvings, width)
        self.levels = nn.Sequential()
        for before, after in pairwise([image_shape[2], *channels]):
            downsampling = channels_last(nn.Conv2d(before, after, 4, stride=2, padding=1))
            self.levels.append(nn.Sequential(downsampling, *_blocks(after, depth)))
        features = levels.height * levels.width * channels[-1]
        self.head = nn.Sequential(nn.Linear(features, 8 * width), nn.ReLU(inplace=True), nn.Linear(8 * width, outputs))

    def forward(self, images: Tensor) -> Tensor:
        features = self.levels(pad_to(images, self.padded)).relu()
        return self.head(features.permute(0, 2, 3, 1).flatten(1))  # a view: the channels are last in memory already


@decoders.register("residual")
class ResidualDecoder(nn.Module):
    """FC, FC, then `depth` residual blocks and nearest-neighbour upsampling per level: latents → logits of the image.

    Channels halve with every level, from at most 8·`width` to `width`, and to half of `width` in full resolution.
    """

    def __init__(self, inputs: int, image_shape: ImageShape, width: int = 32, depth: int = 1) -> None:
        super().__init__()
        levels = levels_of(image_shape)
        channels = _level_channels(levels.halvings, width)[::-1]
        self.size = (image_shape[0], image_shape[1])
        self.smallest = (levels.height, levels.width, channels[0])
        self.stem = nn.Sequential(
            nn.Linear(inputs, 8 * width), nn.ReLU(inplace=True), nn.Linear(8 * width, prod(self.smallest))
        )
        self.levels = nn.Sequential()
        for before, after in pairwise([*channels, max(width // 2, 1)]):
            self.levels.append(nn.Sequential(*_blocks(before, depth), UpsampleConvolution(before, after)))
        self.last = ImageConvolution(max(width // 2, 1), image_shape[2])  # its outputs are the pixels

    def forward(self, latents: Tensor) -> Tensor:
        return crop_to(self.last(self.hidden(latents)[-1]), self.size)

    def hidden(self, latents: Tensor) -> list[Tensor]:
        """Return the feature maps (batch, channels, height, width) of FC layers and levels, the last rectified."""
        maps = [self.stem(latents).unflatten(1, self.smallest).permute(0, 3, 1, 2)]  # channels last in memory: no copy
        for level in self.levels:
            maps.append(level(maps[-1]))
        return [*maps[:-1], maps[-1].relu()]


def _blocks(channels: int, depth: int) -> list[ResidualBlock]:
    if depth < 1:
        raise UserError(f"depth is {depth}; give at least 1 residual block per level")
    return [ResidualBlock(channels) for _ in range(depth)]


def _level_channels(levels: int, width: int) -> list[int]:
    return [width * min(2**level, MOST) for level in range(levels)]
