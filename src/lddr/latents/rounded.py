"""Latents that are rounded and not sampled: the encoder gives a number, and the nearest of a few values is taken.

FSQ rounds to fixed values (Mentzer et al. 2024; used by Tripod), latent quantisation to values that every latent learns
(QLAE, Hsu et al. 2023).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import torch
from torch import Tensor, nn

from lddr import losses
from lddr.latents import latents
from lddr.latents.latent import Latent, Posterior, Sample, Scale, normalised
from lddr.settings import Setting

if TYPE_CHECKING:
    from lddr.data.factors import FactorSpace, Indices

MARGIN = 1e-3  # by which Mentzer et al. keep codes inside the outermost values' reach


class Rounded(Latent):
    """z is the value nearest to the code c, of two the lower one, with the gradient of c; soft, z is c itself.

    The posterior gives one value a probability of 1: its KL from the uniform prior over v values is log v for every
    image, which has no gradient, and there are no densities to compare.
    """

    is_discrete = True
    has_densities = False
    supervisions = ("l2",)

    low: float  # the first of the initial values
    high: float  # the last

    def __init__(self, num_latents: int, num_categories: int) -> None:
        super().__init__(num_latents, parameters_per_latent=1)
        self.num_categories = num_categories
        self.prior_variance = losses.positions_variance(self.low, self.high, num_categories)
        self.register_buffer("active", torch.ones(num_latents, num_categories, dtype=torch.bool))

    @abstractmethod
    def code(self, outputs: Tensor) -> Tensor:
        """What is rounded, (batch, latents), from the encoder's outputs of this shape."""

    def posterior(self, parameters: Tensor) -> RoundedPosterior:
        return RoundedPosterior(self.code(parameters[..., 0]), self.values())

    def noise(self, batch: int, generator: torch.Generator | None = None, device: torch.device | None = None) -> Tensor:
        """None."""
        return torch.empty(batch, 0, device=device)

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        return self.low + (self.high - self.low) * normalised(factors, space)

    def errors(self, loss: str, posterior: Posterior, targets: Tensor) -> Tensor:
        """Squared error of the first latents' codes, before they are rounded, against values from low to high."""
        assert isinstance(posterior, RoundedPosterior)
        return (posterior.code[:, : targets.shape[1]] - targets).square()

    def guess(self, loss: str, seen: Tensor, unseen: Tensor) -> Tensor:
        """Of the mean target."""
        return (seen.mean() - unseen).square()


class RoundedPosterior(Posterior):
    """One value of each latent, with probability 1."""

    def __init__(self, code: Tensor, values: Tensor) -> None:
        self.code = code  # (batch, latents)
        self.one_hot = losses.nearest(code, values)  # (batch, latents, values)
        self.rounded = (self.one_hot * values).sum(-1)  # (batch, latents)

    @cached_property
    def mean(self) -> Tensor:
        """The nearest value, with the gradient of the code."""
        return losses.passed_through(self.rounded, self.code)

    @property
    def variance(self) -> Tensor:
        return torch.zeros_like(self.code)

    @cached_property
    def kl(self) -> Tensor:
        return torch.full_like(self.code, math.log(self.one_hot.shape[2]), requires_grad=False)

    @property
    def parameters(self) -> Tensor:
        """1 for the nearest value, 0 for the others."""
        return self.one_hot

    def sample(self, noise: Tensor | None = None, scale: Scale = 1.0, hard: bool | None = None) -> Sample:
        return self.expected(hard)

    def expected(self, hard: bool | None = None) -> Sample:
        return Sample(self.code if hard is False else self.mean, self.one_hot, unrounded=self.code)


@latents.register("fsq")
class FiniteScalar(Rounded):
    """c = tanh(e), rounded to equidistant values from -1 to 1, as in Tripod.

    With the bound of Mentzer et al. ("shifted") an even number v of values goes from -1 to 1 - 2/v, so that 0 is one of
    them, and e is shifted so that codes near 0 are rounded to it.
    """

    title = "FSQ"
    low = -1.0

    positions: Tensor  # (categories,)

    def __init__(
        self,
        num_latents: Annotated[int, Setting("How many latents.", at_least=1)] = 10,
        num_categories: Annotated[int, Setting("How many categories a latent has.", at_least=2)] = 12,
        bound: Annotated[
            Literal["symmetric", "shifted"],
            Setting(
                "Values from -1 to 1 (Tripod), or shifted so that 0 is one of an even number of them (Mentzer et al.)."
            ),
        ] = "symmetric",
    ) -> None:
        is_shifted = bound == "shifted" and num_categories % 2 == 0
        self.high = 1 - 2 / num_categories if is_shifted else 1.0
        super().__init__(num_latents, num_categories)
        self.bound = bound
        self.register_buffer("positions", losses.positions(self.low, self.high, num_categories))

    def code(self, outputs: Tensor) -> Tensor:
        if self.bound == "symmetric":
            return outputs.tanh()
        reach, offset = (self.num_categories - 1) * (1 - MARGIN) / 2, (1 - self.num_categories % 2) / 2
        return ((outputs + math.tan(offset / reach)).tanh() * reach - offset) / (self.num_categories // 2)

    def values(self) -> Tensor:
        return self.positions.expand(self.num_latents, -1)


@latents.register("quantised")
class Quantised(Rounded):
    """c = e, rounded to values that are initially equidistant from -½ to ½ and move to the codes rounded to them.

    Values are sorted, so that category j is always the j-th from below; one that no code is rounded to stays.
    """

    title = "quantised"
    low = -0.5
    high = 0.5

    def __init__(
        self,
        num_latents: Annotated[int, Setting("How many latents.", at_least=1)] = 10,
        num_categories: Annotated[int, Setting("How many categories a latent has.", at_least=2)] = 10,
        quantisation_weight: Annotated[
            float, Setting("Weight of the loss that draws values to codes.", at_least=0)
        ] = 0.01,
        commitment_weight: Annotated[
            float, Setting("Weight of the loss that draws codes to values.", at_least=0)
        ] = 0.01,
    ) -> None:
        super().__init__(num_latents, num_categories)
        self.quantisation_weight, self.commitment_weight = quantisation_weight, commitment_weight
        positions = losses.positions(self.low, self.high, num_categories).repeat(num_latents, 1)
        self.positions = nn.Parameter(positions)

    def code(self, outputs: Tensor) -> Tensor:
        return outputs

    def values(self) -> Tensor:
        return self.positions.sort(dim=-1).values

    def losses(self, posterior: Posterior, sample: Sample) -> dict[str, Tensor]:
        """Weighted squared distances of codes c and values q, mean over latents: (sg(c) - q)² and (c - sg(q))²."""
        assert isinstance(posterior, RoundedPosterior)
        code, rounded = posterior.code, posterior.rounded
        return {
            "quantisation": self.quantisation_weight * (code.detach() - rounded).square().mean(),
            "commitment": self.commitment_weight * (code - rounded.detach()).square().mean(),
        }
