"""DIP-VAE-I and -II: the covariance of the codes, drawn to that of the prior."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lddr import terms
from lddr.objectives.objective import Moment, Objective, Values, mean_kl, objectives
from lddr.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.latents.family import Latent

RATIO = "Weight of the diagonal, as a multiple."


@dataclass(frozen=True)
class _Dip(Objective):
    """KL + λ · (Σ off-diagonal² + ratio · Σ (diagonal - 1)²) of a covariance, measured in the prior's variance."""

    grid: ClassVar[Values] = {"covariance_weight": (1, 2, 5, 10, 20, 50)}
    covariance_weight: float = setting(10.0, "Weight of the off-diagonal covariances.", at_least=0)
    diagonal_ratio: float = setting(10.0, RATIO, at_least=0)

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        covariance = self.covariance(latent) / moment.layer.family.prior_variance
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

    def covariance(self, latent: Latent) -> Tensor:
        return terms.covariance(latent.mean)


@objectives.register("dip-ii")
@dataclass(frozen=True)
class DipII(_Dip):
    """The covariance of the samples: that of the means plus the mean variance (DIP-VAE-II)."""

    diagonal_ratio: float = setting(1.0, RATIO, at_least=0)

    def covariance(self, latent: Latent) -> Tensor:
        own = latent.variance.mean(0).diag_embed()
        return terms.covariance(latent.mean) + own
