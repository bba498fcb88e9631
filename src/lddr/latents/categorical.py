"""Latents with a probability for each of several categories, sampled by the Gumbel-softmax trick.

- `Categorical`: categories are ordered, each a position on a line (paper §2).
- `OneHot`: the classic categorical VAE, whose categories have no order (Jang et al. 2017; paper §3.1).
- `Codebook`: one list of learned values for all latents, chosen by distance (FactorQVAE, Baykal et al. 2024).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated

import torch
from torch import Tensor, nn

from lddr import losses
from lddr.data.factors import FactorSpace, Indices
from lddr.errors import UserError
from lddr.latents.latent import DiscreteLatent, NumCategories, NumLatents, Posterior, Sample, Scale, bins
from lddr.parts import latents
from lddr.schedules import cosine
from lddr.settings import Setting

NoiseStart = Annotated[float, Setting("Scale of the Gumbel noise at the first step.", at_least=0)]
NoiseEnd = Annotated[float, Setting("Scale of the Gumbel noise at the end of the training.", at_least=0)]
Hard = Annotated[bool, Setting("Round samples to one category, with the gradient of those that are not rounded.")]


class CategoricalLatent(DiscreteLatent):
    """A latent whose posterior is a table: the probability of every category, with a uniform prior over them.

    A masked category has a probability of exactly 0, and the prior is uniform over the others. `hard` samples are
    quantised in training, `hard_codes` are at test time; either has the gradient of the soft ones.
    """

    supervisions = ("cross-entropy", "masked")
    masking = ("masked",)
    can_share = True

    def __init__(
        self, num_latents: int, num_categories: int, parameters_per_latent: int, numbers_per_latent: int = 1
    ) -> None:
        super().__init__(num_latents, num_categories, parameters_per_latent, numbers_per_latent)
        self.hard, self.hard_codes = False, False
        self.noise_start, self.noise_end, self.temperature = 1.0, 1.0, 1.0

    def noise(self, batch: int, generator: torch.Generator | None = None, device: torch.device | None = None) -> Tensor:
        return losses.gumbel_noise((batch, self.num_latents, self.num_categories), generator, device=device)

    def noise_scale(self, step: int, steps: int) -> float:
        return cosine(self.noise_start, self.noise_end, step, steps)

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        return bins(factors, space, self.num_categories)

    def errors(self, loss: str, posterior: Posterior, targets: Tensor) -> Tensor:
        """Return the cross-entropy of the first latents: -log q(category of the label)."""
        assert isinstance(posterior, CategoricalPosterior)
        first = posterior.log_probabilities[:, : targets.shape[1]]  # (images, factors, categories)
        return -first.gather(2, targets.unsqueeze(2)).squeeze(2)

    def guess(self, loss: str, seen: Tensor, unseen: Tensor) -> Tensor:
        """Return the cross-entropy of the frequencies of the categories."""
        frequencies = seen.bincount(minlength=self.num_categories).double() / len(seen)
        return -frequencies.log()[unseen]


@latents.register("categorical")
class Categorical(CategoricalLatent):
    """The encoder gives log α of every category; z̄ = Σ_j v_j softmax(log α + scale · g)_j at equidistant positions v.

    The scale of the noise follows a cosine from `noise_start` at step 0 to `noise_end` at step `steps`, just after the
    last one, as in the authors' code. Learned positions are sorted, so that category j is always the j-th from below;
    `prior_variance` is that of the initial positions.

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.Categorical(num_latents=2, num_categories=3)
    >>> posterior = latent(torch.tensor([[9.0, 0.0, 0.0, 0.0, 0.0, 9.0]]))  # logits of all categories
    >>> posterior.mean.round(decimals=2).tolist(), posterior.categories.tolist()
    ([[-1.0, 1.0]], [[0, 2]])
    """

    title = "categorical"

    def __init__(
        self,
        num_latents: NumLatents = 10,
        num_categories: NumCategories = 64,
        low: Annotated[float, Setting("Position of the first category.")] = -1.0,
        high: Annotated[float, Setting("Position of the last category.")] = 1.0,
        noise_start: NoiseStart = 0.5,
        noise_end: NoiseEnd = 2.0,
        hard: Hard = False,
        learn_positions: Annotated[
            bool, Setting("Let the positions, the same for all latents, train with the networks.")
        ] = False,
    ) -> None:
        super().__init__(num_latents, num_categories, parameters_per_latent=num_categories)
        if low >= high:
            raise UserError(f"low must be less than high, not {low:g} and {high:g}")
        self.hard = self.hard_codes = hard
        self.noise_start, self.noise_end, self.learn_positions = noise_start, noise_end, learn_positions
        self.prior_variance = losses.positions_variance(low, high, num_categories)
        positions = losses.positions(low, high, num_categories)
        if learn_positions:
            self.positions = nn.Parameter(positions)
        else:
            self.register_buffer("positions", positions)

    @property
    def category_values(self) -> Tensor:
        return self.positions.sort().values if self.learn_positions else self.positions

    def posterior(self, parameters: Tensor) -> CategoricalPosterior:
        return CategoricalPosterior(parameters, self.category_values, self)


class CategoricalPosterior(Posterior):
    """A probability for each category of each latent, and the values of the categories."""

    def __init__(self, logits: Tensor, values: Tensor, latent: CategoricalLatent) -> None:
        self.logits, self.values, self.latent = logits, values, latent  # (batch, latents, categories), (categories,)
        self.mask = latent.mask
        self.log_probabilities = losses.masked_log_softmax(logits, self.mask)
        self.parameters = self.probabilities = self.log_probabilities.exp()
        self._expected = self.probabilities @ values
        self.kl = losses.categorical_kl(self.log_probabilities, self.mask)  # before z, for the order of gradients

    @cached_property
    def mean(self) -> Tensor:
        """The expected value, or that of the most probable category where codes are hard."""
        return losses.straight_through(self.probabilities) @ self.values if self.latent.hard_codes else self._expected

    @cached_property
    def variance(self) -> Tensor:
        return (self.probabilities @ self.values**2 - self._expected**2).clamp(min=0)

    def sample(self, noise: Tensor | None = None, scale: Scale = 1.0, hard: bool | None = None) -> Sample:
        if noise is None:
            noise = self.latent.noise(len(self.logits), device=self.logits.device)
        logits, temperature = self.logits, self.latent.temperature
        if temperature != 1:
            logits, scale = logits / temperature, scale / temperature
        soft = losses.gumbel_softmax(logits, noise, scale, self.mask)
        return self._decoded(soft, self.latent.hard if hard is None else hard)

    def expected(self, hard: bool | None = None) -> Sample:
        return self._decoded(self.probabilities, self.latent.hard_codes if hard is None else hard)

    def _decoded(self, soft: Tensor, hard: bool) -> Sample:
        if not hard:
            return Sample(self.input_of(soft), soft)
        weights = losses.straight_through(soft)
        return Sample(self.input_of(weights), weights, unrounded=self.input_of(soft))

    def input_of(self, weights: Tensor) -> Tensor:
        """Return the decoder's input (batch, width) of one-hot or relaxed categories (batch, latents, categories)."""
        return weights @ self.values

    def pair_kl(self) -> Tensor:
        (log_first, log_second), first = self._finite.chunk(2), self.probabilities.chunk(2)[0]
        return (first * (log_first - log_second)).sum(2)

    def pooled(self, is_shared: Tensor, multiply: bool = False) -> CategoricalPosterior:
        first, second = self._finite.chunk(2)
        pool = (first + second) / 2 if multiply else torch.logaddexp(first, second) - math.log(2)
        logits = torch.where(is_shared.repeat(2, 1).unsqueeze(2), pool.repeat(2, 1, 1), self._finite)
        return type(self)(logits, self.values, self.latent)

    @property
    def _finite(self) -> Tensor:
        """Log probabilities with 0 for masked categories, which have no gradient."""
        return self.log_probabilities if self.mask is None else self.log_probabilities.masked_fill(~self.mask, 0.0)

    def cross_log_density(self, sample: Sample) -> Tensor:
        assert sample.weights is not None
        return losses.categorical_cross_log_probability(sample.weights, self.log_probabilities, self.mask)


@latents.register("one_hot")
class OneHot(CategoricalLatent):
    """The encoder gives log α of every category, and the decoder softmax((log α + scale · g) / temperature) itself.

    The code is the number of the most probable category, scaled to [-1, 1] like the positions of `categorical`. It is
    not the expected number, because categories have no order: between two probable categories there may be one that
    has nothing to do with the image. For the same reason metrics that bin codes should have a bin for each category.

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.OneHot(num_latents=2, num_categories=3)
    >>> posterior = latent(torch.tensor([[0.0, 9.0, 0.0, 0.0, 0.0, 9.0]]))
    >>> posterior.mean.tolist(), posterior.expected().z.tolist()
    ([[0.0, 1.0]], [[0.0, 1.0, 0.0, 0.0, 0.0, 1.0]])
    """

    title = "one-hot"

    def __init__(
        self,
        num_latents: NumLatents = 10,
        num_categories: NumCategories = 64,
        noise_start: NoiseStart = 1.0,
        noise_end: NoiseEnd = 1.0,
        temperature: Annotated[
            float, Setting("Temperature of the samples' softmax: low ones are nearly one-hot.", above=0)
        ] = 1.0,
        hard: Hard = False,
    ) -> None:
        super().__init__(num_latents, num_categories, num_categories, numbers_per_latent=num_categories)
        self.hard, self.hard_codes = hard, True
        self.noise_start, self.noise_end, self.temperature = noise_start, noise_end, temperature
        self.prior_variance = losses.positions_variance(-1, 1, num_categories)
        self.register_buffer("positions", losses.positions(-1, 1, num_categories))

    def posterior(self, parameters: Tensor) -> OneHotPosterior:
        return OneHotPosterior(parameters, self.positions, self)

    def embed(self, codes: Tensor) -> Tensor:
        """Return one-hot vectors; a code between two categories is a mixture of both."""
        return self.category_weights(codes).flatten(1)


class OneHotPosterior(CategoricalPosterior):
    """A probability for each category of each latent; samples are relaxed one-hot vectors."""

    def input_of(self, weights: Tensor) -> Tensor:
        return weights.flatten(1)


@latents.register("codebook")
class Codebook(CategoricalLatent):
    """The encoder gives one number e, and log α_j = -sharpness · (e - v_j)², for values v that are initially N(0, 1).

    Samples are soft in training; at test time, codes are the nearest value. Values are sorted, so that category j is
    always the j-th from below. A discriminator gets the relaxed one-hot samples. `prior_variance` is that of the
    initial values.

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.Codebook(num_latents=2, num_categories=5)  # values -2, -1, 0, 1 and 2 until it trains
    >>> latent(torch.tensor([[0.9, -7.0]])).mean.tolist()
    [[1.0, -2.0]]
    """

    title = "codebook"
    prior_variance = 1.0

    def __init__(
        self,
        num_latents: NumLatents = 10,
        num_categories: NumCategories = 64,
        sharpness: Annotated[float, Setting("Inverse temperature on squared codebook distances.", above=0)] = 1.0,
    ) -> None:
        super().__init__(num_latents, num_categories, parameters_per_latent=1)
        self.sharpness, self.hard_codes = sharpness, True
        self.codebook = nn.Parameter(torch.linspace(-2, 2, num_categories))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        self.codebook.copy_(torch.randn(self.num_categories, generator=generator))

    @property
    def category_values(self) -> Tensor:
        return self.codebook.sort().values

    def posterior(self, parameters: Tensor) -> CategoricalPosterior:
        logits = -self.sharpness * (parameters - self.category_values).square()
        return CategoricalPosterior(logits, self.category_values, self)  # sorted again, for the order of gradients

    def codebook_counts(self, counts: Tensor) -> Tensor:
        return counts.sum(0)

    @property
    def discriminator_width(self) -> int:
        return self.num_latents * self.num_categories

    def discriminator_input(self, sample: Sample) -> Tensor:
        assert sample.weights is not None
        return sample.weights
