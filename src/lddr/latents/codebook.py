"""Codebook latents: one list of learned values for all latents, chosen by distance (FactorQVAE, Baykal et al. 2024)."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from lddr.latents import latents
from lddr.latents.categorical import CategoricalLatent, CategoricalPosterior
from lddr.latents.latent import Sample
from lddr.settings import Setting


@latents.register("codebook")
class Codebook(CategoricalLatent):
    """The encoder gives one number e, and log α_j = -sharpness · (e - v_j)², for values v that are initially N(0, 1).

    Samples are soft in training; at test time, codes are the nearest value. Values are sorted, so that category j is
    always the j-th from below. A discriminator gets the relaxed one-hot samples. `prior_variance` is that of the
    initial values.
    """

    title = "codebook"
    prior_variance = 1.0

    def __init__(
        self,
        num_latents: Annotated[int, Setting("How many latents.", at_least=1)] = 10,
        num_categories: Annotated[int, Setting("How many categories a latent has.", at_least=2)] = 64,
        sharpness: Annotated[float, Setting("What the squared distance to a value is multiplied with.", above=0)] = 1.0,
    ) -> None:
        super().__init__(num_latents, num_categories, parameters_per_latent=1)
        self.sharpness, self.hard_codes = sharpness, True
        self.codebook = nn.Parameter(torch.linspace(-2, 2, num_categories))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        self.codebook.copy_(torch.randn(self.num_categories, generator=generator))

    @property
    def category_values(self) -> Tensor:
        """In rising order, (categories,)."""
        return self.codebook.sort().values

    def posterior(self, parameters: Tensor) -> CategoricalPosterior:
        values = self.category_values
        return CategoricalPosterior(-self.sharpness * (parameters - self.category_values).square(), values, self)

    def values(self) -> Tensor:
        return self.category_values.expand(self.num_latents, -1)

    @property
    def discriminator_width(self) -> int:
        return self.num_latents * self.num_categories

    def discriminator_input(self, sample: Sample) -> Tensor:
        assert sample.weights is not None
        return sample.weights
