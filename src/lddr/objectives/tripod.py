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


class _Weighted(Objective):
    """KL with a weight; that of a latent that is not sampled is a constant, which has no gradient."""

    def __init__(self, kl_weight: float) -> None:
        super().__init__()
        self.kl_weight = kl_weight

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        return {"kl": self.kl_weight * output.posterior.mean_kl} if self.kl_weight else {}


@objectives.register("klm")
class MultiInformation(_Weighted):
    """KL + λ · kernel-based latent multi-information of the batch's codes (KLM)."""

    def __init__(
        self,
        kl_weight: Annotated[float, Setting("Weight of the KL; 0 for none.", at_least=0)] = 1.0,
        multi_information_weight: Annotated[
            float, Setting("Weight of the latents' multi-information.", at_least=0)
        ] = 1.0,
    ) -> None:
        super().__init__(kl_weight)
        self.multi_information_weight = multi_information_weight

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        weighted = self.multi_information_weight * _multi_information(output)
        return super().penalties(output, schedule, random) | {"multi_information": weighted}


@objectives.register("nhp")
class HessianPenalty(_Weighted):
    """KL + λ · normalised Hessian penalty, summed over the decoder's hidden layers (NHP)."""

    def __init__(
        self,
        kl_weight: Annotated[float, Setting("Weight of the KL; 0 for none.", at_least=0)] = 1.0,
        hessian_weight: Annotated[
            float, Setting("Weight of the decoder's normalised Hessian penalty.", at_least=0)
        ] = 10.0,
    ) -> None:
        super().__init__(kl_weight)
        self.hessian_weight = hessian_weight

    def draw(self, latent: Latent, batch: int, generator: torch.Generator | None = None) -> Tensor:
        return losses.directions((batch, latent.width), generator, numbers=latent.numbers_per_latent)

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        weighted = self.hessian_weight * _hessian(output, random)
        return super().penalties(output, schedule, random) | {"hessian": weighted}


@objectives.register("tripod")
class Tripod(_Weighted):
    """KL + both penalties of Tripod; the third leg is a latent of few values."""

    def __init__(
        self,
        kl_weight: Annotated[float, Setting("Weight of the KL; 0 for none.", at_least=0)] = 1.0,
        hessian_weight: Annotated[
            float, Setting("Weight of the decoder's normalised Hessian penalty.", at_least=0)
        ] = 10.0,
        multi_information_weight: Annotated[
            float, Setting("Weight of the latents' multi-information.", at_least=0)
        ] = 1.0,
    ) -> None:
        super().__init__(kl_weight)
        self.hessian_weight, self.multi_information_weight = hessian_weight, multi_information_weight

    def draw(self, latent: Latent, batch: int, generator: torch.Generator | None = None) -> Tensor:
        return losses.directions((batch, latent.width), generator, numbers=latent.numbers_per_latent)

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        information = self.multi_information_weight * _multi_information(output)
        hessian = self.hessian_weight * _hessian(output, random)
        kl = super().penalties(output, schedule, random)
        return kl | {"hessian": hessian, "multi_information": information}


def _multi_information(output: Output) -> Tensor:
    return losses.multi_information(output.z, _deviation(output), output.vae.latent.num_latents)


def _hessian(output: Output, directions: Tensor | None) -> Tensor:
    """In float32, because differences of rounded numbers are noise."""
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
    """Of the samples before they are quantised."""
    sample = output.sample
    return losses.deviation(sample.z if sample.unrounded is None else sample.unrounded)
