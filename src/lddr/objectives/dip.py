"""DIP-VAE-I and -II: the covariance of the codes, drawn to that of the prior."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated

from torch import Tensor

from lddr import losses
from lddr.latents.latent import Posterior
from lddr.objectives import objectives
from lddr.objectives.objective import Number, Objective
from lddr.settings import Setting
from lddr.vae import Output


class _Dip(Objective):
    """KL + λ · (Σ off-diagonal² + ratio · Σ (diagonal - 1)²) of a covariance, measured in the prior's variance."""

    grid = {"covariance_weight": (1, 2, 5, 10, 20, 50)}  # noqa: RUF012

    def __init__(self, covariance_weight: float, diagonal_ratio: float) -> None:
        super().__init__()
        self.covariance_weight, self.diagonal_ratio = covariance_weight, diagonal_ratio

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        covariance = self.covariance(output.posterior) / output.vae.latent.prior_variance
        diagonal_weight = self.diagonal_ratio * self.covariance_weight
        penalty = losses.dip_penalty(covariance, self.covariance_weight, diagonal_weight)
        return {"kl": output.posterior.mean_kl, "covariance": penalty}

    @abstractmethod
    def covariance(self, posterior: Posterior) -> Tensor:
        """(latents, latents)."""


@objectives.register("dip-i")
class DipI(_Dip):
    """The covariance of the means (DIP-VAE-I)."""

    def __init__(
        self,
        covariance_weight: Annotated[float, Setting("Weight of the off-diagonal covariances.", at_least=0)] = 10.0,
        diagonal_ratio: Annotated[float, Setting("Weight of the diagonal, as a multiple.", at_least=0)] = 10.0,
    ) -> None:
        super().__init__(covariance_weight, diagonal_ratio)

    def covariance(self, posterior: Posterior) -> Tensor:
        return losses.covariance(posterior.mean)


@objectives.register("dip-ii")
class DipII(_Dip):
    """The covariance of the samples: that of the means plus the mean variance (DIP-VAE-II)."""

    def __init__(
        self,
        covariance_weight: Annotated[float, Setting("Weight of the off-diagonal covariances.", at_least=0)] = 10.0,
        diagonal_ratio: Annotated[float, Setting("Weight of the diagonal, as a multiple.", at_least=0)] = 1.0,
    ) -> None:
        super().__init__(covariance_weight, diagonal_ratio)

    def covariance(self, posterior: Posterior) -> Tensor:
        own = posterior.variance.mean(0).diag_embed()
        return losses.covariance(posterior.mean) + own
