"""Penalties on dependent latents: the total correlation (β-TCVAE, FactorVAE) and the covariance (DIP-VAE-I and -II)."""

from __future__ import annotations

from typing import Annotated, Literal

import torch
from torch import Tensor

from lddr import losses
from lddr.latents.latent import Latent, Posterior
from lddr.networks.coders import Discriminator
from lddr.objectives.objective import AdversarialObjective, Number, Objective
from lddr.parts import objectives
from lddr.settings import Setting
from lddr.vae import Output

CovarianceWeight = Annotated[float, Setting("Weight of the off-diagonal covariances.", at_least=0)]
DiagonalRatio = Annotated[float, Setting("Weight of the diagonal, as a multiple.", at_least=0)]


@objectives.register("tc")
class TotalCorrelation(Objective):
    """KL + (β - 1) · TC, from the densities of a batch's samples under all its posteriors (β-TCVAE, TC-DVAE)."""

    needs_densities = True
    grid = {"beta": (1, 2, 4, 6, 8, 10)}  # noqa: RUF012

    def __init__(
        self, beta: Annotated[float, Setting("Weight of the total correlation, counted from 1.", at_least=0)] = 4.0
    ) -> None:
        super().__init__()
        self.beta = beta

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        correlation = losses.total_correlation(output.posterior.cross_log_density(output.sample))
        return {"kl": output.posterior.mean_kl, "total_correlation": (self.beta - 1) * correlation}


@objectives.register("factor")
class AdversarialCorrelation(AdversarialObjective):
    """KL + γ · TC, by the density ratio of samples and samples permuted over the batch (FactorVAE; paper, Eq. 4).

    The negatives of the discriminator have each latent permuted over the batch individually.

    Examples
    --------
    >>> import lddr
    >>> objective = lddr.objectives.AdversarialCorrelation(gamma=20).attach(lddr.latents.Categorical(num_latents=6))
    >>> sum(weight.numel() for weight in objective.discriminator.parameters())
    5014002
    """

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


@objectives.register("dip-i")
class DipI(Objective):
    """KL + λ · (Σ off-diagonal² + ratio · Σ (diagonal - 1)²) of the covariance of the means (DIP-VAE-I).

    The covariance is measured in the prior's variance.
    """

    grid = {"covariance_weight": (1, 2, 5, 10, 20, 50)}  # noqa: RUF012

    def __init__(self, covariance_weight: CovarianceWeight = 10.0, diagonal_ratio: DiagonalRatio = 10.0) -> None:
        super().__init__()
        self.covariance_weight, self.diagonal_ratio = covariance_weight, diagonal_ratio

    def covariance(self, posterior: Posterior) -> Tensor:
        """Return (latents, latents)."""
        return losses.covariance(posterior.mean)

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        covariance = self.covariance(output.posterior) / output.vae.latent.prior_variance
        diagonal_weight = self.diagonal_ratio * self.covariance_weight
        penalty = losses.dip_penalty(covariance, self.covariance_weight, diagonal_weight)
        return {"kl": output.posterior.mean_kl, "covariance": penalty}


@objectives.register("dip-ii")
class DipII(DipI):
    """As `DipI`, of the covariance of the samples: that of the means plus the mean variance (DIP-VAE-II)."""

    def __init__(self, covariance_weight: CovarianceWeight = 10.0, diagonal_ratio: DiagonalRatio = 1.0) -> None:
        super().__init__(covariance_weight, diagonal_ratio)

    def covariance(self, posterior: Posterior) -> Tensor:
        return losses.covariance(posterior.mean) + posterior.variance.mean(0).diag_embed()
