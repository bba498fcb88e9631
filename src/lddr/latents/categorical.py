"""Categorical latents: Gumbel-softmax variables over ordered categories, each a position on a line (paper §2)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from lddr import terms
from lddr.errors import UserError
from lddr.latents.family import Latent, LatentFamily, latents
from lddr.latents.targets import bins
from lddr.schedules import cosine
from lddr.settings import setting

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.data.factors import FactorSpace, Indices
    from lddr.networks.latent_layer import LatentLayer


@latents.register("categorical")
@dataclass(frozen=True)
class Categorical(LatentFamily):
    """z̄ = Σ_j v_j softmax(log α + scale · g)_j, with fixed, equidistant positions v and a uniform prior.

    The noise g is multiplied by a scale that follows a cosine over the training. A masked category has a probability
    of exactly 0, and the prior is uniform over the others.
    """

    title = "categorical"
    is_discrete = True
    supervisions = ("cross-entropy", "masked")
    masking = ("masked",)

    num_categories: int = setting(64, "How many categories a latent has.", at_least=2)
    low: float = setting(-1.0, "Position of the first category.")
    high: float = setting(1.0, "Position of the last category.")
    noise_start: float = setting(0.5, "Scale of the Gumbel noise at the first step.", at_least=0)
    noise_end: float = setting(2.0, "Scale of the Gumbel noise at the last step.", at_least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low >= self.high:
            raise UserError(f"low must be less than high, not {self.low:g} and {self.high:g}")

    @property
    def outputs_per_latent(self) -> int:
        return self.num_categories

    @property
    def prior_variance(self) -> float:
        return _variance(self.low, self.high, self.num_categories)

    def constants(self) -> dict[str, Tensor]:
        return {"positions": terms.positions(self.low, self.high, self.num_categories)}

    def noise(self, batch: int, generator: torch.Generator) -> Tensor:
        return terms.gumbel_noise((batch, self.num_latents, self.num_categories), generator)

    def noise_scale(self, step: int, steps: int) -> float:
        return cosine(self.noise_start, self.noise_end, step, steps)

    def latent(
        self, layer: LatentLayer, outputs: Tensor, noise: Tensor | None, scale: float | Tensor, hard: bool
    ) -> Latent:
        positions, mask = layer.positions, layer.mask
        log_probabilities = terms.masked_log_softmax(outputs, mask)
        probabilities = log_probabilities.exp()
        sample = probabilities if noise is None else terms.gumbel_softmax(outputs, noise, scale, mask)
        sample = terms.straight_through(sample) if hard else sample
        mean = probabilities @ positions
        kl = terms.categorical_kl(log_probabilities, mask)

        def spread() -> Tensor:
            return (probabilities @ positions**2 - mean**2).clamp(min=0)

        return Latent(sample @ positions, mean, spread, kl, log_probabilities, sample)

    def cross_log_density(self, layer: LatentLayer, latent: Latent) -> Tensor:
        return terms.categorical_cross_log_probability(latent.sample, latent.parameters, layer.mask)

    def posterior(self, latent: Latent) -> Tensor:
        return latent.parameters.exp()

    def values(self, layer: LatentLayer) -> Tensor:
        return layer.positions.expand(self.num_latents, -1)

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        return bins(factors, space, self.num_categories)

    def risk(self, loss: str, latent: Latent, targets: Tensor) -> Tensor:
        """Cross-entropy of the first latents: -log q(the category of the label)."""
        first = latent.parameters[:, : targets.shape[1]]  # (images, factors, categories)
        return -first.gather(2, targets.unsqueeze(2)).squeeze(2).sum(1).mean()


@lru_cache
def _variance(low: float, high: float, count: int) -> float:
    """Of a uniform draw among the positions."""
    return float(terms.positions(low, high, count).double().var(correction=0))
