"""Latents whose posterior is a table: the probability of every value, with Gumbel-softmax samples (paper, §2)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lddr import terms
from lddr.latents.family import Latent, LatentFamily
from lddr.latents.targets import bins
from lddr.settings import setting

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.data.factors import FactorSpace, Indices
    from lddr.networks.latent_layer import LatentLayer


@dataclass(frozen=True)
class Tabular(LatentFamily):
    """z̄ = Σ_j v_j softmax(log α + scale · g)_j, with a uniform prior over the values v, the same for all latents.

    A masked value has a probability of exactly 0, and the prior is uniform over the others.
    """

    is_discrete = True
    supervisions = ("cross-entropy", "masked")
    masking = ("masked",)

    num_categories: int = setting(64, "How many categories a latent has.", at_least=2)

    @abstractmethod
    def places(self, layer: LatentLayer) -> Tensor:
        """The values in rising order, (values,)."""

    @abstractmethod
    def logits(self, layer: LatentLayer, outputs: Tensor) -> Tensor:
        """The posterior's log α up to a constant, (batch, latents, values), from the encoder's outputs."""

    def noise(self, batch: int, generator: torch.Generator) -> Tensor:
        return terms.gumbel_noise((batch, self.num_latents, self.num_categories), generator)

    def latent(
        self, layer: LatentLayer, outputs: Tensor, noise: Tensor | None, scale: float | Tensor, hard: bool
    ) -> Latent:
        places, mask, logits = self.places(layer), layer.mask, self.logits(layer, outputs)
        log_probabilities = terms.masked_log_softmax(logits, mask)
        probabilities = log_probabilities.exp()
        soft = probabilities if noise is None else terms.gumbel_softmax(logits, noise, scale, mask)
        sample, unrounded = (terms.straight_through(soft), soft @ places) if hard else (soft, None)
        expected = probabilities @ places
        mean = terms.straight_through(probabilities) @ places if self.rounds_codes else expected
        kl = terms.categorical_kl(log_probabilities, mask)

        def spread() -> Tensor:
            return (probabilities @ places**2 - expected**2).clamp(min=0)

        return Latent(sample @ places, mean, spread, kl, log_probabilities, sample, unrounded)

    def cross_log_density(self, layer: LatentLayer, latent: Latent) -> Tensor:
        return terms.categorical_cross_log_probability(latent.sample, latent.parameters, layer.mask)

    def posterior(self, latent: Latent) -> Tensor:
        return latent.parameters.exp()

    def values(self, layer: LatentLayer) -> Tensor:
        return self.places(layer).expand(self.num_latents, -1)

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        return bins(factors, space, self.num_categories)

    def errors(self, loss: str, latent: Latent, targets: Tensor) -> Tensor:
        """Cross-entropy of the first latents: -log q(the category of the label)."""
        first = latent.parameters[:, : targets.shape[1]]  # (images, factors, categories)
        return -first.gather(2, targets.unsqueeze(2)).squeeze(2)

    def guess(self, loss: str, seen: Tensor, unseen: Tensor) -> Tensor:
        """Of the frequencies of the categories."""
        frequencies = seen.bincount(minlength=self.num_categories).double() / len(seen)
        return -frequencies.log()[unseen]
