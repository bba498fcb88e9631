"""AnnealedVAE: a capacity for the KL that grows while the model trains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lddr.objectives.objective import Moment, Objective, Values, mean_kl, objectives
from lddr.schedules import linear
from lddr.settings import setting

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.latents.family import Latent


@objectives.register("annealed")
@dataclass(frozen=True)
class Annealed(Objective):
    """γ · |KL - C|, with the capacity C growing from 0 over the first steps."""

    grid: ClassVar[Values] = {"capacity": (5, 10, 25, 50, 75, 100)}
    capacity: float = setting(25.0, "Final capacity in nats.", at_least=0)
    capacity_weight: float = setting(1000.0, "Weight of the distance from the capacity.", at_least=0)
    capacity_steps: int = setting(100_000, "Steps until the capacity is reached.", at_least=1)

    def schedule(self, step: int) -> float:
        """The capacity C."""
        return linear(0.0, self.capacity, step, self.capacity_steps)

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        return {"capacity": self.capacity_weight * (mean_kl(latent) - moment.schedule).abs()}
