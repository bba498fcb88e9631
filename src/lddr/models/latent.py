"""What every latent family is and gives: one return shape for all of them."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lddr.registry import Registry


@dataclass(frozen=True)
class Latent:
    """The latents of a batch: posterior, sample, and how far the posterior is from the prior."""

    z: Tensor  # (batch, latents): the sample, one number per latent, that the decoder sees
    mean: Tensor  # (batch, latents): the representation, which is the posterior's expected value
    variance: Tensor  # (batch, latents): of the posterior
    kl: Tensor  # (batch, latents): KL(posterior || prior)
    parameters: Tensor  # Gaussian: (batch, latents, 2), mean and log variance; categorical: (batch, latents, m) log q
    sample: Tensor  # Gaussian: z itself; categorical: (batch, latents, m), on the simplex


class LatentFamily(nn.Module, ABC):
    """A family of posteriors with its prior. It has no weights: the encoder gives the parameters of the posterior."""

    num_latents: int
    outputs_per_latent: int
    prior_variance: float

    @abstractmethod
    def noise(self, batch: int, generator: torch.Generator) -> Tensor:
        """The noise a sample of this many posteriors is made of, from the generator alone."""

    @abstractmethod
    def noise_scale(self, step: int, steps: int) -> float:
        """How much of the noise is used at this step of the training."""

    @abstractmethod
    def forward(self, outputs: Tensor, noise: Tensor | None = None, scale: float = 0.0, hard: bool = False) -> Latent:
        """From the encoder's outputs (batch, latents * outputs_per_latent) to the latents.

        Without noise, z is the representation; `hard` rounds it to the nearest value the prior knows, where it is
        discrete, and lets gradients pass straight through.
        """

    @abstractmethod
    def cross_log_density(self, latent: Latent) -> Tensor:
        """For every pair of images, log q(z_i of image b | image c): (batch, batch, latents)."""


latents: Registry[type] = Registry("latent", homes=("lddr.models",))  # the settings of each family, by its name
