"""Objectives: what is added to the reconstruction, as sums of terms; each is defined for every latent family."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lddr.models.latent import Latent, LatentFamily
from lddr.objectives import terms
from lddr.objectives.schedules import linear
from lddr.registry import Registry

Grid = dict[str, tuple[float, ...]]  # a knob and its values


@dataclass(frozen=True)
class Moment:
    """When and where a penalty is worked out."""

    step: int
    family: LatentFamily
    density_ratio: Callable[[Tensor], Tensor] | None = None  # z → mean log D/(1-D), for objectives with a discriminator


@dataclass(frozen=True)
class Objective(ABC):
    """Settings of an objective, and its penalties in nats per image: they and the reconstruction make the loss."""

    grid: ClassVar[Grid] = {}  # the values of its knob in the paper and in Locatello et al.

    @abstractmethod
    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        """Each weighted penalty, by name."""


objectives: Registry[type[Objective]] = Registry("objective", homes=("lddr.objectives",))


def mean_kl(latent: Latent) -> Tensor:
    """KL summed over latents, mean over the batch."""
    return latent.kl.sum(1).mean()


@objectives.register("elbo")
@dataclass(frozen=True)
class Elbo(Objective):
    """KL: the plain evidence lower bound."""

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        return {"kl": mean_kl(latent)}


@objectives.register("beta")
@dataclass(frozen=True)
class Beta(Objective):
    """β · KL (β-VAE)."""

    grid: ClassVar[Grid] = {"beta": (1, 2, 4, 6, 8, 16)}
    beta: float = 4.0

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        return {"kl": self.beta * mean_kl(latent)}


@objectives.register("annealed")
@dataclass(frozen=True)
class Annealed(Objective):
    """γ · |KL - C|, with the capacity C growing from 0 over the first steps (AnnealedVAE)."""

    grid: ClassVar[Grid] = {"capacity": (5, 10, 25, 50, 75, 100)}
    capacity: float = 25.0
    capacity_weight: float = 1000.0
    capacity_steps: int = 100_000

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        capacity = linear(0.0, self.capacity, moment.step, self.capacity_steps)
        return {"capacity": self.capacity_weight * (mean_kl(latent) - capacity).abs()}


@objectives.register("factor")
@dataclass(frozen=True)
class Factor(Objective):
    """KL + γ · TC, the total correlation estimated by a discriminator (FactorVAE; paper, Eq. 4)."""

    grid: ClassVar[Grid] = {"gamma": (10, 20, 30, 40, 50, 100)}
    gamma: float = 10.0
    discriminator_width: int = 1000
    discriminator_learning_rate: float = 1e-4

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        assert moment.density_ratio is not None, "this objective needs a discriminator"
        return {"kl": mean_kl(latent), "total_correlation": self.gamma * moment.density_ratio(latent.z)}


@objectives.register("tc")
@dataclass(frozen=True)
class TotalCorrelation(Objective):
    """KL + (β - 1) · TC, from the densities of a batch's samples under all its posteriors (β-TCVAE)."""

    grid: ClassVar[Grid] = {"beta": (1, 2, 4, 6, 8, 10)}
    beta: float = 4.0

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        correlation = terms.total_correlation(moment.family.cross_log_density(latent))
        return {"kl": mean_kl(latent), "total_correlation": (self.beta - 1) * correlation}


@dataclass(frozen=True)
class _Dip(Objective):
    """KL + λ · (Σ off-diagonal² + ratio · Σ (diagonal - 1)²) of a covariance, measured in the prior's variance."""

    grid: ClassVar[Grid] = {"covariance_weight": (1, 2, 5, 10, 20, 50)}
    covariance_weight: float
    diagonal_ratio: float

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        covariance = self.covariance(latent) / moment.family.prior_variance
        diagonal_weight = self.diagonal_ratio * self.covariance_weight
        penalty = terms.dip_penalty(covariance, self.covariance_weight, diagonal_weight)
        return {"kl": mean_kl(latent), "covariance": penalty}

    @abstractmethod
    def covariance(self, latent: Latent) -> Tensor:
        """(latents, latents)."""


@objectives.register("dip-i")
@dataclass(frozen=True)
class DipI(_Dip):
    """The covariance of the means (DIP-VAE-I)."""

    covariance_weight: float = 10.0
    diagonal_ratio: float = 10.0

    def covariance(self, latent: Latent) -> Tensor:
        return terms.covariance(latent.mean)


@objectives.register("dip-ii")
@dataclass(frozen=True)
class DipII(_Dip):
    """The covariance of the samples: that of the means plus the mean variance (DIP-VAE-II)."""

    covariance_weight: float = 10.0
    diagonal_ratio: float = 1.0

    def covariance(self, latent: Latent) -> Tensor:
        return terms.covariance(latent.mean) + torch.diag(latent.variance.mean(0))
