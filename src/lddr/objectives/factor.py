"""FactorVAE and FactorDVAE: the total correlation, estimated by a discriminator (paper, Eq. 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lddr import terms
from lddr.objectives.adversary import Adversary
from lddr.objectives.objective import Moment, Objective, Values, mean_kl, objectives
from lddr.settings import setting

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.latents.family import Latent


@objectives.register("factor")
@dataclass(frozen=True)
class AdversarialCorrelation(Objective):
    """KL + γ · TC, by the density ratio of codes and codes whose latents are permuted."""

    grid: ClassVar[Values] = {"gamma": (10, 20, 30, 40, 50, 100)}
    gamma: float = setting(10.0, "Weight of the total correlation.", at_least=0)
    discriminator_width: int = setting(1000, "Units in each of the discriminator's hidden layers.", at_least=1)
    discriminator_layers: int = setting(6, "Hidden layers of the discriminator.", at_least=1)
    discriminator_slope: float = setting(0.01, "Negative slope of the discriminator's leaky ReLU.", at_least=0)
    discriminator_learning_rate: float = setting(1e-4, "Adam's, for the discriminator.", above=0)
    discriminator_schedule: str = setting(
        "constant",
        "Of the discriminator's learning rate: constant, or in proportion to the model's.",
        choices=("constant", "model"),
    )
    discriminator_beta1: float = setting(0.5, "Adam's first β, for the discriminator.", at_least=0, at_most=0.9999)
    discriminator_beta2: float = setting(0.9, "Adam's second β, for the discriminator.", at_least=0, at_most=0.9999)

    def penalties(self, latent: Latent, moment: Moment) -> dict[str, Tensor]:
        assert moment.verdict is not None, "this objective has an adversary"
        return {"kl": mean_kl(latent), "total_correlation": self.gamma * moment.verdict(latent)}

    def adversary(self, inputs: int) -> Adversary:
        from lddr.networks.coders import Discriminator

        width, layers, slope = self.discriminator_width, self.discriminator_layers, self.discriminator_slope
        betas = self.discriminator_beta1, self.discriminator_beta2
        network = Discriminator(inputs, width, layers, slope)
        return _DensityRatio(network, self.discriminator_learning_rate, betas, self.discriminator_schedule)


class _DensityRatio(Adversary):
    """Tells codes of the batch from codes whose latents are permuted over it."""

    def verdict(self, outputs: Tensor) -> Tensor:
        return terms.density_ratio(outputs)

    def draw(self, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
        return terms.permutations(shape, generator)

    def rivals(self, codes: Tensor, drawn: Tensor) -> Tensor:
        return terms.permute_latents(codes, drawn)

    def loss(self, outputs: Tensor, rivals: Tensor) -> Tensor:
        return terms.discriminator_loss(outputs, rivals)
