"""One-hot latents: the classic categorical VAE, whose categories have no order (Jang et al. 2017; paper §3.1)."""

from __future__ import annotations

from typing import Annotated

from torch import Tensor

from lddr import losses
from lddr.latents import latents
from lddr.latents.categorical import CategoricalLatent, CategoricalPosterior
from lddr.latents.latent import Sample, Scale, category_weights
from lddr.schedules import cosine
from lddr.settings import Setting


@latents.register("one_hot")
class OneHot(CategoricalLatent):
    """The encoder gives log α of every category, and the decoder softmax((log α + scale · g) / temperature) itself.

    The code is the number of the most probable category, scaled to [-1, 1] like the positions of `categorical`. It is
    not the expected number, because categories have no order: between two probable categories there may be one that
    has nothing to do with the image. For the same reason metrics that bin codes should have a bin for each category.
    """

    title = "one-hot"

    positions: Tensor  # (categories,)

    def __init__(
        self,
        num_latents: Annotated[int, Setting("How many latents.", at_least=1)] = 10,
        num_categories: Annotated[int, Setting("How many categories a latent has.", at_least=2)] = 64,
        noise_start: Annotated[float, Setting("Scale of the Gumbel noise at the first step.", at_least=0)] = 1.0,
        noise_end: Annotated[float, Setting("Scale of the Gumbel noise at the end of the training.", at_least=0)] = 1.0,
        temperature: Annotated[
            float, Setting("Temperature of the samples' softmax: low ones are nearly one-hot.", above=0)
        ] = 1.0,
        hard: Annotated[
            bool, Setting("Round samples to one category, with the gradient of those that are not rounded.")
        ] = False,
    ) -> None:
        super().__init__(num_latents, num_categories, num_categories, numbers_per_latent=num_categories)
        self.hard, self.hard_codes = hard, True
        self.noise_start, self.noise_end, self.temperature = noise_start, noise_end, temperature
        self.prior_variance = losses.positions_variance(-1, 1, num_categories)
        self.register_buffer("positions", losses.positions(-1, 1, num_categories))

    def noise_scale(self, step: int, steps: int) -> float:
        return cosine(self.noise_start, self.noise_end, step, steps)

    def posterior(self, parameters: Tensor) -> OneHotPosterior:
        return OneHotPosterior(parameters, self.positions, self)

    def values(self) -> Tensor:
        return self.positions.expand(self.num_latents, -1)

    def embed(self, codes: Tensor) -> Tensor:
        """One-hot vectors; a code between two categories is a mixture of both."""
        return category_weights(codes, self.num_categories).flatten(1)


class OneHotPosterior(CategoricalPosterior):
    """A probability for each category of each latent; samples are relaxed one-hot vectors."""

    latent: OneHot

    def sample(self, noise: Tensor | None = None, scale: Scale = 1.0, hard: bool | None = None) -> Sample:
        if noise is None:
            noise = self.latent.noise(len(self.logits), device=self.logits.device)
        temperature = self.latent.temperature
        soft = losses.gumbel_softmax(self.logits / temperature, noise, scale / temperature, self.mask)
        return self._decoded(soft, self.latent.hard if hard is None else hard)

    def _decoded(self, soft: Tensor, hard: bool) -> Sample:
        if not hard:
            return Sample(soft.flatten(1), soft)
        weights = losses.straight_through(soft)
        return Sample(weights.flatten(1), weights, unrounded=soft.flatten(1))
