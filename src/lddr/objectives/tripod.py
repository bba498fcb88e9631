"""Tripod's two penalties, each alone and both together: independent latents, and a decoder that does not mix them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lddr import terms
from lddr.lazy import LazyModule
from lddr.objectives.objective import Moment, Objective, mean_kl, objectives
from lddr.settings import setting

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.latents.family import Latent
else:
    torch = LazyModule("torch")


@dataclass(frozen=True)
class _Weighted(Objective):
    """KL with a weight; that of a family that does not sample is a constant, which pulls at nothing."""

    kl_weight: float = setting(1.0, "Weight of the KL; 0 for none.", at_least=0)

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        return {"kl": self.kl_weight * mean_kl(latent)} if self.kl_weight else {}


@objectives.register("klm")
@dataclass(frozen=True)
class MultiInformation(_Weighted):
    """KL + λ · kernel-based latent multi-information of the batch's codes (KLM)."""

    multi_information_weight: float = setting(1.0, "Weight of the latents' multi-information.", at_least=0)

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        information = terms.multi_information(latent.z, _deviation(latent))
        return super().penalties(latent, moment) | {"multi_information": self.multi_information_weight * information}


@objectives.register("nhp")
@dataclass(frozen=True)
class HessianPenalty(_Weighted):
    """KL + λ · normalised Hessian penalty, summed over the decoder's hidden layers (NHP)."""

    hessian_weight: float = setting(10.0, "Weight of the decoder's normalised Hessian penalty.", at_least=0)

    def draw(self, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
        return terms.directions(shape, generator)

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        assert moment.drawn is not None, "this objective draws directions"
        around = terms.neighbours(latent.z, _deviation(latent), moment.drawn)
        ratios = [terms.hessian_ratio(layer.movedim(1, -1)) for layer in moment.hidden(around)]  # as they are in memory
        return super().penalties(latent, moment) | {"hessian": self.hessian_weight * torch.stack(ratios).sum()}


@objectives.register("tripod")
@dataclass(frozen=True)
class Tripod(MultiInformation, HessianPenalty):
    """KL + both penalties of Tripod; the third leg is a latent family of few values."""


def _deviation(latent: Latent) -> Tensor:  # (latents,)
    """Of the codes before they are rounded."""
    return terms.deviation(latent.z if latent.unrounded is None else latent.unrounded)
