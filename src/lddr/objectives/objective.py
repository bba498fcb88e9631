"""What every objective is: settings, penalties in nats per image, and where it needs one, an adversary."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lddr.registry import Registry
from lddr.settings import Settings, claims

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.latents.family import Latent
    from lddr.networks.latent_layer import LatentLayer
    from lddr.objectives.adversary import Adversary

Values = dict[str, tuple[float, ...]]  # a setting and the values to try


@dataclass(frozen=True)
class Moment:
    """When and where penalties are worked out, and what they may need besides the latents."""

    schedule: float | Tensor  # what the objective's own `schedule` says now
    layer: LatentLayer
    decoder: Callable[[Tensor], Tensor]  # z → logits of the image
    hidden: Callable[[Tensor], list[Tensor]]  # z → what the layers before give, in full precision
    drawn: Tensor | None = None  # by the objective's own `draw`
    verdict: Callable[[Latent], Tensor] | None = None  # what the adversary makes of them, for objectives with one


@dataclass(frozen=True)
class Objective(Settings, ABC):
    """Settings of an objective, and its penalties: they and the reconstruction make the loss."""

    name: ClassVar[str]  # in the registry
    grid: ClassVar[Values] = {}  # the values of its settings in the paper and in Locatello et al.
    needs_densities: ClassVar[bool] = False  # whether it compares posteriors: `cross_log_density`

    @abstractmethod
    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        """Each weighted penalty, by name."""

    def schedule(self, step: int) -> float:
        """A number of its own that changes while the model trains; its penalties find it in the moment."""
        return 0.0

    def draw(self, shape: tuple[int, int], generator: torch.Generator) -> Tensor | None:
        """The chance in its penalties for codes of this shape, (batch, latents), from the generator alone, if any."""
        return None

    def adversary(self, inputs: int) -> Adversary | None:
        """The network it trains beside the model, with fresh weights; None for an objective without one.

        It takes what the latent family shows: a number for each latent, or several.
        """
        return None


def _admit(name: str, objective: type[Objective]) -> None:
    objective.name = name
    claims.claim("objective", objective)


objectives: Registry[type[Objective]] = Registry("objective", homes=("lddr.objectives",), admit=_admit)


def mean_kl(latent: Latent) -> Tensor:
    """KL summed over latents, mean over the batch."""
    return latent.mean_kl
