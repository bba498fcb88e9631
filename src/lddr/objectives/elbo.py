"""The plain autoencoder, the evidence lower bound, and β-VAE's weighted one."""

from __future__ import annotations

from typing import Annotated

from torch import Tensor

from lddr.objectives import objectives
from lddr.objectives.objective import Number, Objective
from lddr.settings import Setting
from lddr.vae import Output


@objectives.register("autoencoder")
class Autoencoder(Objective):
    """The reconstruction alone, without a KL."""

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        return {}


@objectives.register("elbo")
class Elbo(Objective):
    """KL."""

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        return {"kl": output.posterior.mean_kl}


@objectives.register("beta")
class Beta(Objective):
    """β · KL (β-VAE)."""

    grid = {"beta": (1, 2, 4, 6, 8, 16)}  # noqa: RUF012

    def __init__(self, beta: Annotated[float, Setting("Weight of the KL.", at_least=0)] = 4.0) -> None:
        super().__init__()
        self.beta = beta

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        return {"kl": self.beta * output.posterior.mean_kl}
