"""β-TCVAE and TC-DVAE: the total correlation from the densities of the batch, without a network."""

from __future__ import annotations

from typing import Annotated

from torch import Tensor

from lddr import losses
from lddr.objectives import objectives
from lddr.objectives.objective import Number, Objective
from lddr.settings import Setting
from lddr.vae import Output


@objectives.register("tc")
class TotalCorrelation(Objective):
    """KL + (β - 1) · TC, from the densities of a batch's samples under all its posteriors."""

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
