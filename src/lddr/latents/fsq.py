"""Finite scalar quantisation: a bounded number, rounded to fixed values (FSQ, Mentzer et al. 2024; used by Tripod)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lddr import terms
from lddr.latents.family import latents
from lddr.latents.rounded import Rounded

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.networks.latent_layer import LatentLayer


@latents.register("fsq")
@dataclass(frozen=True)
class FiniteScalar(Rounded):
    """c = tanh(e), rounded to equidistant values from -1 to 1."""

    title = "FSQ"
    low, high = -1.0, 1.0

    def constants(self) -> dict[str, Tensor]:
        return {"positions": terms.positions(self.low, self.high, self.num_categories)}

    def code(self, outputs: Tensor) -> Tensor:
        return outputs.tanh()

    def values(self, layer: LatentLayer) -> Tensor:
        return layer.positions.expand(self.num_latents, -1)
