"""Finite scalar quantisation: a bounded number, rounded to fixed values (FSQ, Mentzer et al. 2024; used by Tripod)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lddr import terms
from lddr.latents.family import latents
from lddr.latents.rounded import Rounded
from lddr.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.networks.latent_layer import LatentLayer

MARGIN = 1e-3  # by which Mentzer et al. keep codes inside the outermost values' reach


@latents.register("fsq")
@dataclass(frozen=True)
class FiniteScalar(Rounded):
    """c = tanh(e), rounded to equidistant values from -1 to 1, as in Tripod.

    With the bound of Mentzer et al. ("shifted") an even number v of values goes from -1 to 1 - 2/v, so that 0 is one of
    them, and e is shifted so that codes near 0 are rounded to it.
    """

    title = "FSQ"
    low = -1.0

    bound: str = setting(
        "symmetric",
        "Values from -1 to 1 (Tripod), or shifted so that 0 is one of an even number of them (Mentzer et al.).",
        choices=("symmetric", "shifted"),
    )

    @property
    def high(self) -> float:  # type: ignore[override]
        """The last of the values."""
        is_shifted = self.bound == "shifted" and self.num_categories % 2 == 0
        return 1 - 2 / self.num_categories if is_shifted else 1.0

    def constants(self) -> dict[str, Tensor]:
        return {"positions": terms.positions(self.low, self.high, self.num_categories)}

    def code(self, outputs: Tensor) -> Tensor:
        if self.bound == "symmetric":
            return outputs.tanh()
        reach, offset = (self.num_categories - 1) * (1 - MARGIN) / 2, (1 - self.num_categories % 2) / 2
        return ((outputs + math.tan(offset / reach)).tanh() * reach - offset) / (self.num_categories // 2)

    def values(self, layer: LatentLayer) -> Tensor:
        return layer.positions.expand(self.num_latents, -1)
