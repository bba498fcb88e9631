"""Tripod's two penalties, each alone and both together: independent latents, and a decoder that does not mix them."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor

from lddr import losses
from lddr.latents.latent import Latent
from lddr.objectives.objective import Number, Objective
from lddr.parts import objectives
from lddr.settings import Setting
from lddr.vae import Output

KlWeight = Annotated[float, Setting("Weight of the KL; 0 for none.", at_least=0)]
HessianWeight = Annotated[float, Setting("Weight of the decoder's normalised Hessian penalty.", at_least=0)]
InformationWeight = Annotated[float, Setting("Weight of the latents' multi-information.", at_least=0)]


@objectives.register("tripod")
class Tripod(Objective):
    """KL + λ₁ · normalised Hessian penalty + λ₂ · kernel-based latent multi-information (Hsu et al. 2024).

    The third leg is a latent of few values, whose KL is a constant without gradient if it is not sampled. The Hessian
    penalty is summed over the decoder's hidden layers, which a method `hidden(z)` of the decoder must list.

    Examples
    --------
    >>> import lddr
    >>> lddr.objectives.Tripod(hessian_weight=1).settings
    {'kl_weight': 1.0, 'hessian_weight': 1.0, 'multi_information_weight': 1.0}
    """

    def __init__(
        self,
        kl_weight: KlWeight = 1.0,
        hessian_weight: HessianWeight = 10.0,
        multi_information_weight: InformationWeight = 1.0,
    ) -> None:
        super().__init__()
        self.kl_weight = kl_weight
        self.hessian_weight: float | None = hessian_weight  # None leaves the penalty out
        self.multi_information_weight: float | None = multi_information_weight

    def draw(self, latent: Latent, batch: int, generator: torch.Generator | None = None) -> Tensor | None:
        if self.hessian_weight is None:
            return None
        return losses.directions((batch, latent.width), generator, numbers=latent.numbers_per_latent)

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        found = {}
        if self.multi_information_weight is not None:
            information = losses.multi_information(output.z, _deviation(output), output.vae.latent.num_latents)
            found["multi_information"] = self.multi_information_weight * information
        if self.hessian_weight is not None:
            found = {"hessian": self.hessian_weight * _hessian(output, random), **found}
        return {"kl": self.kl_weight * output.posterior.mean_kl, **found} if self.kl_weight else found


@objectives.register("klm")
class MultiInformation(Tripod):
    """KL + λ · kernel-based latent multi-information of the batch's codes: one of Tripod's penalties (KLM)."""

    def __init__(self, kl_weight: KlWeight = 1.0, multi_information_weight: InformationWeight = 1.0) -> None:
        super().__init__(kl_weight=kl_weight, multi_information_weight=multi_information_weight)
        self.hessian_weight = None


@objectives.register("nhp")
class HessianPenalty(Tripod):
    """KL + λ · normalised Hessian penalty of the decoder's hidden layers: one of Tripod's penalties (NHP)."""

    def __init__(self, kl_weight: KlWeight = 1.0, hessian_weight: HessianWeight = 10.0) -> None:
        super().__init__(kl_weight=kl_weight, hessian_weight=hessian_weight)
        self.multi_information_weight = None


def _hessian(output: Output, directions: Tensor | None) -> Tensor:
    """Return the penalty in float32, because differences of rounded numbers are noise."""
    assert directions is not None
    hidden = getattr(output.vae.decoder, "hidden", None)
    if hidden is None:
        raise ValueError(
            "the Hessian penalty needs a decoder with a method hidden(z) that gives the hidden layers' outputs"
        )
    around = losses.neighbours(output.z, _deviation(output), directions)
    ratios = [losses.hessian_ratio(layer.movedim(1, -1)) for layer in hidden(around)]  # as they are in memory
    return torch.stack(ratios).sum()


def _deviation(output: Output) -> Tensor:  # (width,)
    """Return the deviation of the samples before they are quantised."""
    sample = output.sample
    return losses.deviation(sample.z if sample.unrounded is None else sample.unrounded)
