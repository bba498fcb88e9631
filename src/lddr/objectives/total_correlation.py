"""β-TCVAE and TC-DVAE: the total correlation from the densities of the batch, without a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lddr import terms
from lddr.objectives.objective import Moment, Objective, Values, mean_kl, objectives
from lddr.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.latents.family import Latent


@objectives.register("tc")
@dataclass(frozen=True)
class TotalCorrelation(Objective):
    """KL + (β - 1) · TC, from the densities of a batch's samples under all its posteriors."""

    needs_densities = True
    grid: ClassVar[Values] = {"beta": (1, 2, 4, 6, 8, 10)}
    beta: float = setting(4.0, "Weight of the total correlation, counted from 1.", at_least=0)

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        correlation = terms.total_correlation(moment.layer.cross_log_density(latent))
        return {"kl": mean_kl(latent), "total_correlation": (self.beta - 1) * correlation}
