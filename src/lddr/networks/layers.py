"""Convolutions in channels-last memory that are fast on the CPU: the same maps as torch.nn's, computed differently.

- The bias gradient is a sum of its own: inside oneDNN's weight gradient it adds up to half of that again.
- ReLU works in place on the fresh output.
- Towards an image (1 or 3 channels) a convolution has too few outputs to fill a vector register: there one matmul gives
  what every pixel sends to its neighbours, and shifted additions collect it (five times as fast for one channel).
- Latents tiled over all pixels are constant, so that their convolution is a matmul with the taps inside the image.
Other devices take torch's own way.
"""

from functools import cache
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

KERNEL = 4  # of all layers but the encoder's, which may choose
Convolving = TypeVar("Convolving", nn.Conv2d, nn.ConvTranspose2d)
SAME = (1, 2, 1, 2)  # what a 4x4 kernel of stride 1 wants around the image: left, right, top, bottom


class Geometry(NamedTuple):
    """Where the taps of a convolution fall."""

    stride: int
    padding: int
    transposed: bool


class Convolution(nn.Conv2d):
    """ReLU of a convolution, (batch, in, height, width) → (batch, out, height / stride, width / stride)."""

    def __init__(self, inputs: int, outputs: int, kernel: int = KERNEL, stride: int = 2, padding: int = 1) -> None:
        super().__init__(inputs, outputs, kernel, stride, padding)
        channels_last(self)

    def forward(self, images: Tensor) -> Tensor:
        if images.device.type != "cpu":
            return super().forward(images).relu_()
        return _Rectified.apply(*_operands(images, self), Geometry(self.stride[0], int(self.padding[0]), False))


class Deconvolution(nn.ConvTranspose2d):
    """ReLU of a transposed convolution, (batch, in, height, width) → (batch, out, 2 height, 2 width)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, KERNEL, stride=2, padding=1)
        channels_last(self)

    def forward(self, images: Tensor) -> Tensor:  # type: ignore[override]
        if images.device.type != "cpu":
            return super().forward(images).relu_()
        return _Rectified.apply(*_operands(images, self), Geometry(stride=2, padding=1, transposed=True))


class ImageDeconvolution(nn.ConvTranspose2d):
    """Transposed convolution to the few channels of an image, (batch, in, h, w) → (batch, channels, 2 h, 2 w)."""

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__(inputs, channels, KERNEL, stride=2, padding=1)
        channels_last(self)

    def forward(self, images: Tensor) -> Tensor:  # type: ignore[override]
        if images.device.type != "cpu":
            return super().forward(images)
        return _OverlapAdd.apply(*_operands(images, self), 2)


class ImageConvolution(nn.Conv2d):
    """SAME convolution of stride 1 to the few channels of an image, (batch, in, h, w) → (batch, channels, h, w)."""

    def __init__(self, inputs: int, channels: int) -> None:
        super().__init__(inputs, channels, KERNEL)
        channels_last(self)

    def forward(self, images: Tensor) -> Tensor:
        if images.device.type != "cpu":
            return super().forward(functional.pad(images, SAME))
        images, weight, bias = _operands(images, self)
        return _OverlapAdd.apply(images, weight.flip(2, 3).transpose(0, 1), bias, 1)  # seen from the sending pixel


class UpsampleConvolution(nn.Conv2d):
    """Nearest-neighbour upsampling and a 3x3 convolution, (batch, in, h, w) → (batch, out, 2 h, 2 w).

    Computed as one transposed 4x4 convolution of stride 2 whose kernel is the 3x3 one summed over the 2x2 pixels that
    share a value: less than half the multiplications, and the upsampled image is never stored.
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3, padding=1)
        channels_last(self)

    def forward(self, images: Tensor) -> Tensor:
        sums = functional.avg_pool2d(functional.pad(self.weight, (1, 1, 1, 1)), 2, stride=1, divisor_override=1)
        kernel = sums.flip(2, 3).transpose(0, 1).contiguous(memory_format=torch.channels_last)  # as the pixels send
        return functional.conv_transpose2d(images, kernel, self.bias, stride=2, padding=1)


class ZeroConvolution(nn.Conv2d):
    """3x3 convolution whose initial weights are zero, so that a residual block that ends with it starts as identity."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 3, padding=1)
        channels_last(self)

    def reset_parameters(self) -> None:
        for parameter in self.parameters():
            nn.init.zeros_(parameter)


class BroadcastConvolution(nn.Conv2d):
    """ReLU of a SAME convolution of tiled latents and two coordinate channels, with a border of zeros for the next one.

    (batch, latents) → (batch, out, height + 3, width + 3); the coordinates run over [-1, 1], y first.
    """

    taps: Tensor  # (pixels, 16): 1 where the tap falls inside the image
    fixed: Tensor  # (pixels, 33): the coordinates under each tap, and 1 for the bias

    def __init__(self, num_latents: int, outputs: int, size: tuple[int, int]) -> None:
        super().__init__(num_latents + 2, outputs, KERNEL)
        channels_last(self)
        self.num_latents, self.size = num_latents, size
        taps, fixed = _broadcast_features(size, torch.get_default_device(), torch.get_default_dtype())
        self.register_buffer("taps", taps, persistent=False)
        self.register_buffer("fixed", fixed, persistent=False)

    def forward(self, latents: Tensor) -> Tensor:
        assert self.bias is not None
        outputs, batch = self.out_channels, len(latents)
        height, width = (side + SAME[0] + SAME[1] for side in self.size)
        weight = self.weight.permute(1, 2, 3, 0)  # (latents + 2, 4, 4, out)
        sent = latents @ weight[: self.num_latents].reshape(self.num_latents, -1)  # (batch, 16 x out)
        constant = self.fixed @ torch.cat([weight[self.num_latents :].reshape(-1, outputs), self.bias[None]])
        pixels = torch.baddbmm(constant, self.taps.expand(batch, -1, -1), sent.view(batch, KERNEL**2, outputs))
        return pixels.relu_().view(batch, height, width, outputs).permute(0, 3, 1, 2)


@cache
def _broadcast_features(size: tuple[int, int], _device: torch.device, _dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return what the taps of each output pixel cover: the inside of the image and coordinates; zeros in the border."""
    lines = [torch.linspace(-1, 1, side) for side in size]
    seen = torch.stack([torch.ones(size), *torch.meshgrid(*lines, indexing="ij")])  # (3, height, width)
    patches = functional.unfold(functional.pad(seen, SAME)[None], KERNEL).view(3, KERNEL**2, *size)
    inside, height, width, bias = functional.pad(torch.cat([patches, torch.ones_like(patches[:1])]), SAME).flatten(2)
    return inside.T.contiguous(), torch.cat([height, width, bias[:1]]).T.contiguous()


def channels_last(layer: Convolving) -> Convolving:
    """Store the weight of a layer channels-last, and so the outputs that it computes; return the layer."""
    layer.weight.data = layer.weight.data.to(memory_format=torch.channels_last)
    return layer


def _operands(images: Tensor, layer: nn.Conv2d | nn.ConvTranspose2d) -> tuple[Tensor, Tensor, Tensor]:
    """Return images, weight and bias in the precision of autocast, which does not cast for custom functions."""
    assert layer.bias is not None
    if not torch.is_autocast_enabled("cpu"):
        return images, layer.weight, layer.bias
    dtype = torch.get_autocast_dtype("cpu")
    return images.to(dtype), layer.weight.to(dtype), layer.bias.to(dtype)


class _Rectified(torch.autograd.Function):
    """ReLU(convolution(images, weight) + bias)."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, geometry: Geometry) -> Tensor:
        stride, padding, transposed = geometry
        result = torch.convolution(images, weight, bias, [stride] * 2, [padding] * 2, [1, 1], transposed, [0, 0], 1)
        ctx.geometry = geometry
        ctx.save_for_backward(images, weight, result.relu_())
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        images, weight, result = ctx.saved_tensors
        gradient = torch.ops.aten.threshold_backward(gradient, result, 0)
        return (*_gradients(gradient, images, weight, ctx.geometry, ctx.needs_input_grad), None)


class _OverlapAdd(torch.autograd.Function):
    """Transposed 4x4 convolution to few channels: stride 2 doubles the image, stride 1 is SAME."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor, bias: Tensor, stride: int) -> Tensor:
        ctx.stride = stride
        ctx.save_for_backward(images, weight)
        return _collect(_spread(images, weight), bias, stride)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        images, weight = ctx.saved_tensors
        lead = _crop(ctx.stride) - 1  # the crop is even on both sides for torch, so that SAME lacks one line
        gradient = functional.pad(gradient, (lead, 0, lead, 0)) if lead else gradient
        geometry = Geometry(ctx.stride, padding=1, transposed=True)
        return (*_gradients(gradient, images, weight, geometry, ctx.needs_input_grad), None)


def _gradients(
    gradient: Tensor, images: Tensor, weight: Tensor, geometry: Geometry, needed: tuple[bool, ...]
) -> tuple[Tensor | None, ...]:
    """Return the gradients of the images and the weight, where needed, and of the bias."""
    stride, padding, transposed = geometry
    gradient = gradient.contiguous(memory_format=torch.channels_last)
    of_images, of_weight, _ = torch.ops.aten.convolution_backward(
        gradient, images, weight, None, [stride] * 2, [padding] * 2, [1, 1], transposed, [0, 0], 1, [*needed[:2], False]
    )
    return of_images, of_weight, gradient.sum((0, 2, 3))


def _crop(stride: int) -> int:
    """Return how many lines to drop at the top and at the left of the full transposed convolution."""
    return 1 if stride == 2 else 2  # stride 1: SAME puts one line before the image, of the three that 4 taps need


def _spread(images: Tensor, weight: Tensor) -> Tensor:
    """Return what each pixel sends through each tap, (batch, channels, 4, 4, height, width)."""
    batch, inputs, height, width = images.shape
    senders = images.permute(0, 2, 3, 1).flatten(1, 2)
    taps = weight.permute(1, 2, 3, 0).reshape(-1, inputs)
    sent = torch.bmm(taps.expand(batch, -1, -1), senders.transpose(1, 2))
    return sent.view(batch, weight.shape[1], KERNEL, KERNEL, height, width)


def _collect(sent: Tensor, bias: Tensor, stride: int) -> Tensor:
    """Return what each pixel receives, (batch, channels, stride x height, stride x width); overwrites `sent`."""
    batch, channels, _, _, height, width = sent.shape
    result = sent.new_empty(batch, height, stride, width, stride, channels)
    for row in range(stride):
        rows = _sum_taps(sent, row, stride, dim=-2)  # (batch, channels, 4, height, width)
        for column in range(stride):
            pixels = _sum_taps(rows, column, stride, dim=-1)  # (batch, channels, height, width)
            torch.add(pixels.permute(0, 2, 3, 1), bias, out=result[:, :, row, :, column])
    return result.view(batch, stride * height, stride * width, channels).permute(0, 3, 1, 2)


def _sum_taps(sent: Tensor, phase: int, stride: int, dim: int) -> Tensor:
    """Return line stride·i + phase of the result, Σ_s of tap phase + crop - stride·s of pixel i + s."""
    first = phase + _crop(stride)
    total = sent[:, :, first]
    for shift in (-1, 1, 2):
        tap = first - stride * shift
        if 0 <= tap < KERNEL:
            length = total.shape[dim] - abs(shift)
            target = total.narrow(dim, max(-shift, 0), length)
            target += sent[:, :, tap].narrow(dim, max(shift, 0), length)
    return total
