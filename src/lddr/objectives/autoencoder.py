"""The plain autoencoder: the reconstruction alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lddr.objectives.objective import Moment, Objective, objectives

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.latents.family import Latent


@objectives.register("autoencoder")
@dataclass(frozen=True)
class Autoencoder(Objective):
    """Nothing: no KL either."""

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        return {}
