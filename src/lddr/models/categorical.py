"""Categorical latents: Gumbel-softmax variables over ordered categories, each a position on a line (paper §2)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from lddr.models.latent import Latent, LatentFamily, latents
from lddr.objectives import terms
from lddr.objectives.schedules import cosine


@latents.register("categorical")
@dataclass(frozen=True)
class Categorical:
    """Settings of categorical latents; the noise is multiplied by a scale that follows a cosine over the training."""

    num_latents: int = 10
    num_categories: int = 64
    low: float = -1.0
    high: float = 1.0
    noise_start: float = 0.5
    noise_end: float = 2.0

    def build(self, active: Tensor | None = None) -> "CategoricalLatent":
        return CategoricalLatent(self, active)


class CategoricalLatent(LatentFamily):
    """z̄ = Σ_j v_j softmax(log α + scale · g)_j, with fixed, equidistant positions v and a uniform prior.

    `active` (latents, categories) masks categories out: their probability is exactly 0 and the prior is uniform over
    the others.
    """

    positions: Tensor  # (categories,)
    active: Tensor  # (latents, categories)

    def __init__(self, settings: Categorical, active: Tensor | None = None) -> None:
        super().__init__()
        self.settings = settings
        self.num_latents = settings.num_latents
        self.outputs_per_latent = settings.num_categories
        self.register_buffer("positions", terms.positions(settings.low, settings.high, settings.num_categories))
        everything = torch.ones(settings.num_latents, settings.num_categories, dtype=torch.bool)
        self.register_buffer("active", everything if active is None else active)
        self._is_masked = not bool(self.active.all())

    @property
    def prior_variance(self) -> float:  # type: ignore[override]
        return float(self.positions.double().var(correction=0))

    @property
    def mask(self) -> Tensor | None:
        """The active categories, None when all are."""
        return self.active if self._is_masked else None

    def noise(self, batch: int, generator: torch.Generator) -> Tensor:
        return terms.gumbel_noise((batch, self.num_latents, self.outputs_per_latent), generator)

    def noise_scale(self, step: int, steps: int) -> float:
        return cosine(self.settings.noise_start, self.settings.noise_end, step, steps)

    def forward(self, outputs: Tensor, noise: Tensor | None = None, scale: float = 0.0, hard: bool = False) -> Latent:
        logits = outputs.float().unflatten(1, (self.num_latents, self.outputs_per_latent))
        log_probabilities = terms.masked_log_softmax(logits, self.mask)
        probabilities = log_probabilities.exp()
        sample = probabilities if noise is None else terms.gumbel_softmax(logits, noise, scale, self.mask)
        sample = terms.straight_through(sample) if hard else sample
        mean = probabilities @ self.positions
        variance = (probabilities @ self.positions**2 - mean**2).clamp(min=0)
        kl = terms.categorical_kl(log_probabilities, self.mask)
        return Latent(sample @ self.positions, mean, variance, kl, log_probabilities, sample)

    def cross_log_density(self, latent: Latent) -> Tensor:
        return terms.categorical_cross_log_probability(latent.sample, latent.parameters, self.mask)
