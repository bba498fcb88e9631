"""Codebook latents: one list of learned values for all latents, chosen by distance (FactorQVAE, Baykal et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lddr.latents.family import Latent, latents
from lddr.latents.tabular import Tabular
from lddr.lazy import LazyModule
from lddr.settings import setting

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.networks.latent_layer import LatentLayer
else:
    torch = LazyModule("torch")


@latents.register("codebook")
@dataclass(frozen=True)
class Codebook(Tabular):
    """The encoder gives one number e, and log α_j = -sharpness · (e - v_j)², for values v that begin as N(0, 1).

    Samples are soft while it trains; the representation, and what the decoder sees at test time, is the nearest value.
    Values are read in order, so that category j is always the j-th from below. An adversary sees the samples
    themselves, a number for every category. `prior_variance` is that of the values as they begin.
    """

    title = "codebook"
    outputs_per_latent = 1
    prior_variance = 1.0
    rounds_codes = True

    sharpness: float = setting(1.0, "What the squared distance to a value is multiplied with.", above=0)

    @property
    def numbers_shown(self) -> int:
        return self.num_latents * self.num_categories

    def weights(self) -> dict[str, Tensor]:
        return {"codebook": torch.linspace(-2, 2, self.num_categories)}

    def drawn_weights(self, generator: torch.Generator) -> dict[str, Tensor]:
        return {"codebook": torch.randn(self.num_categories, generator=generator)}

    def places(self, layer: LatentLayer) -> Tensor:
        return layer.codebook.sort().values

    def logits(self, layer: LatentLayer, outputs: Tensor) -> Tensor:
        return -self.sharpness * (outputs - self.places(layer)).square()

    def shown(self, latent: Latent) -> Tensor:
        return latent.sample
