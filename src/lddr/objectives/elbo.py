"""The plain autoencoder, the evidence lower bound, β-VAE's weighted one, and AnnealedVAE's capacity for the KL."""

from __future__ import annotations

from typing import Annotated

from torch import Tensor

from lddr.objectives.objective import Number, Objective
from lddr.parts import objectives
from lddr.schedules import linear
from lddr.settings import Setting
from lddr.vae import Output

KlFactor = Annotated[float, Setting("Weight of the KL.", at_least=0)]


@objectives.register("autoencoder")
class Autoencoder(Objective):
    """The reconstruction alone, without a KL."""

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        return {}


@objectives.register("elbo")
class Elbo(Objective):
    """KL: with the reconstruction, the negative evidence lower bound."""

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        return {"kl": output.posterior.mean_kl}


@objectives.register("beta")
class Beta(Objective):
    """β · KL (β-VAE).

    Examples
    --------
    >>> import lddr
    >>> lddr.objectives.Beta(beta=6).beta
    6.0
    """

    grid = {"beta": (1, 2, 4, 6, 8, 16)}  # noqa: RUF012

    def __init__(self, beta: KlFactor = 4.0) -> None:
        super().__init__()
        self.beta = beta

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        return {"kl": self.beta * output.posterior.mean_kl}


@objectives.register("annealed")
class Annealed(Objective):
    """γ · |KL - C|, with the capacity C growing from 0 over the first steps (AnnealedVAE).

    Examples
    --------
    >>> import lddr
    >>> lddr.objectives.Annealed(capacity=25, capacity_steps=100).schedule(step=50)
    12.5
    """

    grid = {"capacity": (5, 10, 25, 50, 75, 100)}  # noqa: RUF012

    def __init__(
        self,
        capacity: Annotated[float, Setting("Final capacity in nats.", at_least=0)] = 25.0,
        capacity_weight: Annotated[float, Setting("Weight of the distance from the capacity.", at_least=0)] = 1000.0,
        capacity_steps: Annotated[int, Setting("Steps until the capacity is reached.", at_least=1)] = 100_000,
    ) -> None:
        super().__init__()
        self.capacity, self.capacity_weight, self.capacity_steps = capacity, capacity_weight, capacity_steps

    def schedule(self, step: int) -> float:
        return linear(0.0, self.capacity, step, self.capacity_steps)

    def penalties(self, output: Output, schedule: Number, random: Tensor | None) -> dict[str, Tensor]:
        return {"capacity": self.capacity_weight * (output.posterior.mean_kl - schedule).abs()}
