"""What every likelihood is: a module from the outputs of a decoder and images to nats."""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

DARKEST = 1e-3  # smallest mean of a pixel that an output bias is initialised to: its logit is finite


class Likelihood(nn.Module, ABC):
    """p(x | z) of pixels in [0, 1] that are independent given z; a decoder gives one number for each of them."""

    title = ""  # "Bernoulli", say
    name: str  # in the registry

    @abstractmethod
    def pixels(self, outputs: Tensor, images: Tensor) -> Tensor:
        """-log p of every pixel, in nats, of the shape of the images."""

    @abstractmethod
    def mean(self, outputs: Tensor) -> Tensor:
        """The expected pixels, in [0, 1], of the shape of the outputs."""

    @abstractmethod
    def outputs_of(self, pixels: Tensor) -> Tensor:
        """The outputs whose mean is closest to these pixels; the inverse of `mean`, for the decoder's output bias."""

    def per_image(self, outputs: Tensor, images: Tensor) -> Tensor:
        """-log p(x | z) of every image: (batch,)."""
        return self.pixels(outputs, images).flatten(1).sum(1)

    def forward(self, outputs: Tensor, images: Tensor) -> Tensor:
        """-log p(x | z) in nats per image, mean over the batch: ()."""
        return self.per_image(outputs, images).mean()

    @torch.no_grad()
    def of_copies(self, images: Tensor) -> Tensor:
        """What perfect copies of images cost: (batch,)."""
        return self.per_image(self.outputs_of(images), images)

    @torch.no_grad()
    def of_mean(self, images: Tensor) -> float:
        """What the mean of these images costs as the reconstruction of each, in nats per image."""
        outputs = self.outputs_of(images.mean(0, keepdim=True)).expand_as(images)
        return float(self.per_image(outputs, images).mean())

    def contrast(self, images: Tensor) -> float:
        """How many nats per image the mean image costs more than a perfect copy: all that latents can gain."""
        copies = torch.cat([self.of_copies(part.double()) for part in images.split(64)])  # in little memory
        return self.of_mean(images) - float(copies.mean())
