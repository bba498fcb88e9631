"""The plain evidence lower bound, and β-VAE's weighted one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lddr.objectives.objective import Moment, Objective, Values, mean_kl, objectives
from lddr.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.latents.family import Latent


@objectives.register("elbo")
@dataclass(frozen=True)
class Elbo(Objective):
    """KL."""

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        return {"kl": mean_kl(latent)}


@objectives.register("beta")
@dataclass(frozen=True)
class Beta(Objective):
    """β · KL (β-VAE)."""

    grid: ClassVar[Values] = {"beta": (1, 2, 4, 6, 8, 16)}
    beta: float = setting(4.0, "Weight of the KL.", at_least=0)

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        return {"kl": self.beta * mean_kl(latent)}
