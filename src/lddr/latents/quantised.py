"""Latent quantisation: a number, rounded to values that every latent learns for itself (QLAE, Hsu et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lddr import terms
from lddr.latents.family import Latent, latents
from lddr.latents.rounded import Rounded
from lddr.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.networks.latent_layer import LatentLayer


@latents.register("quantised")
@dataclass(frozen=True)
class Quantised(Rounded):
    """c = e, rounded to values that begin equidistant from -½ to ½ and go to the codes that are rounded to them.

    Values are read in order, so that category j is always the j-th from below; one that no code is rounded to stays.
    """

    title = "quantised"
    low, high = -0.5, 0.5

    num_categories: int = setting(10, "How many categories a latent has.", at_least=2)
    quantisation_weight: float = setting(0.01, "Weight of the loss that draws values to codes.", at_least=0)
    commitment_weight: float = setting(0.01, "Weight of the loss that draws codes to values.", at_least=0)

    def weights(self) -> dict[str, Tensor]:
        return {"positions": terms.positions(self.low, self.high, self.num_categories).repeat(self.num_latents, 1)}

    def code(self, outputs: Tensor) -> Tensor:
        return outputs

    def values(self, layer: LatentLayer) -> Tensor:
        return layer.positions.sort(dim=-1).values

    def losses(self, layer: LatentLayer, latent: Latent) -> dict[str, Tensor]:
        """Weighted squared distances of codes c and values q, mean over latents: (sg(c) - q)² and (c - sg(q))²."""
        code, rounded = latent.parameters.unbind(2)
        return {
            "quantisation": self.quantisation_weight * (code.detach() - rounded).square().mean(),
            "commitment": self.commitment_weight * (code - rounded.detach()).square().mean(),
        }
