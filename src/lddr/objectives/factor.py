"""FactorVAE and FactorDVAE: the total correlation, estimated by a discriminator (paper, Eq. 4)."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor

from lddr import losses
from lddr.latents.latent import Latent
from lddr.networks.coders import Discriminator
from lddr.objectives import objectives
from lddr.objectives.objective import AdversarialObjective
from lddr.settings import Setting
from lddr.vae import Output


@objectives.register("factor")
class AdversarialCorrelation(AdversarialObjective):
    """KL + γ · TC, by the density ratio of samples and samples whose latents are permuted over the batch."""

    grid = {"gamma": (10, 20, 30, 40, 50, 100)}  # noqa: RUF012

    def __init__(
        self,
        gamma: Annotated[float, Setting("Weight of the total correlation.", at_least=0)] = 10.0,
        discriminator_width: Annotated[
            int, Setting("Units in each of the discriminator's hidden layers.", at_least=1)
        ] = 1000,
        discriminator_layers: Annotated[int, Setting("Hidden layers of the discriminator.", at_least=1)] = 6,
        discriminator_slope: Annotated[
            float, Setting("Negative slope of the discriminator's leaky ReLU.", at_least=0)
        ] = 0.01,
        discriminator_learning_rate: Annotated[float, Setting("Adam's, for the discriminator.", above=0)] = 1e-4,
        discriminator_schedule: Annotated[
            Literal["constant", "model"],
            Setting("Of the discriminator's learning rate: constant, or in proportion to the model's."),
        ] = "constant",
        discriminator_beta1: Annotated[
            float, Setting("Adam's first β, for the discriminator.", at_least=0, at_most=0.9999)
        ] = 0.5,
        discriminator_beta2: Annotated[
            float, Setting("Adam's second β, for the discriminator.", at_least=0, at_most=0.9999)
        ] = 0.9,
    ) -> None:
        super().__init__()
        self.gamma = gamma
        self.discriminator_shape = discriminator_width, discriminator_layers, discriminator_slope
        self.discriminator_learning_rate = discriminator_learning_rate
        self.discriminator_schedule = discriminator_schedule
        self.discriminator_betas = discriminator_beta1, discriminator_beta2

    def build_discriminator(self, inputs: int) -> Discriminator:
        return Discriminator(inputs, *self.discriminator_shape)

    def draw(self, latent: Latent, batch: int, generator: torch.Generator | None = None) -> Tensor:
        return losses.permutations((batch, latent.num_latents), generator)

    def adversarial_penalties(self, output: Output, score: Tensor) -> dict[str, Tensor]:
        return {"kl": output.posterior.mean_kl, "total_correlation": self.gamma * score}

    def score(self, logits: Tensor) -> Tensor:
        return losses.density_ratio(logits)

    def negatives(self, samples: Tensor, random: Tensor) -> Tensor:
        return losses.permute_latents(samples, random)

    def classification_loss(self, logits: Tensor, negative_logits: Tensor) -> Tensor:
        return losses.discriminator_loss(logits, negative_logits)
