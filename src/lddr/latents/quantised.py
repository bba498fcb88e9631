"""Latents that are quantised and not sampled: the nearest of a few values or vectors is taken, with probability 1.

- `FiniteScalar` rounds a number to fixed values (FSQ, Mentzer et al. 2024; used by Tripod).
- `Quantised` rounds it to values that every latent learns (QLAE, Hsu et al. 2023).
- `VectorQuantised` takes the nearest vector of a codebook (VQ-VAE, van den Oord et al. 2017).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Annotated, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from lddr import losses
from lddr.data.factors import FactorSpace, Indices
from lddr.errors import UserError
from lddr.latents.latent import DiscreteLatent, NumCategories, NumLatents, Posterior, Sample, Scale, normalised
from lddr.parts import latents
from lddr.settings import Setting

MARGIN = 1e-3  # by which Mentzer et al. keep codes inside the outermost values' reach

IFSQ_SLOPE = 1.6  # with which the sigmoid is nearest to the distribution function of normal outputs

QuantisationWeight = Annotated[float, Setting("Weight of the loss that draws values to codes.", at_least=0)]
CommitmentWeight = Annotated[float, Setting("Weight of the loss that draws codes to values.", at_least=0)]


class QuantisedLatent(DiscreteLatent):
    """A latent that takes one of its values with probability 1.

    Its KL from the uniform prior over v values is log v for every image, which has no gradient, and there are no
    densities to compare.
    """

    has_densities = False

    def __init__(self, num_latents: int, num_categories: int, numbers_per_latent: int = 1) -> None:
        super().__init__(num_latents, num_categories, numbers_per_latent, numbers_per_latent)

    def noise(self, batch: int, generator: torch.Generator | None = None, device: torch.device | None = None) -> Tensor:
        """Return no noise."""
        return torch.empty(batch, 0, device=device)


class QuantisedPosterior(Posterior):
    """One value of each latent, with probability 1."""

    one_hot: Tensor  # (batch, latents, values), without gradient

    @property
    def variance(self) -> Tensor:
        return torch.zeros_like(self.one_hot[..., 0])

    @cached_property
    def kl(self) -> Tensor:
        return torch.full_like(self.one_hot[..., 0], math.log(self.one_hot.shape[2]))

    @property
    def parameters(self) -> Tensor:
        """1 for the nearest value, 0 for the others."""
        return self.one_hot

    def sample(self, noise: Tensor | None = None, scale: Scale = 1.0, hard: bool | None = None) -> Sample:
        return self.expected(hard)


# numbers


class Rounded(QuantisedLatent):
    """z is the value nearest to the code c, of two the lower one, with the gradient of c; soft, z is c itself."""

    supervisions = ("l2",)

    low: float  # the first of the initial values
    high: float  # the last

    def __init__(self, num_latents: int, num_categories: int) -> None:
        super().__init__(num_latents, num_categories)
        self.prior_variance = losses.positions_variance(self.low, self.high, num_categories)

    @abstractmethod
    def code(self, outputs: Tensor) -> Tensor:
        """Return the codes that are rounded, (batch, latents), from encoder outputs of the same shape."""

    def posterior(self, parameters: Tensor) -> RoundedPosterior:
        return RoundedPosterior(self.code(parameters[..., 0]), self.values())

    def targets(self, loss: str, factors: Indices, space: FactorSpace) -> Tensor:
        return self.low + (self.high - self.low) * normalised(factors, space)

    def errors(self, loss: str, posterior: Posterior, targets: Tensor) -> Tensor:
        """Return the squared error of the first latents' unrounded codes against values from low to high."""
        assert isinstance(posterior, RoundedPosterior)
        return (posterior.code[:, : targets.shape[1]] - targets).square()

    def guess(self, loss: str, seen: Tensor, unseen: Tensor) -> Tensor:
        """Return the squared error of the mean target."""
        return (seen.mean() - unseen).square()


class RoundedPosterior(QuantisedPosterior):
    """The nearest value to the code of each latent."""

    def __init__(self, code: Tensor, values: Tensor) -> None:
        self.code = code  # (batch, latents)
        self.one_hot = losses.nearest(code, values)
        self.rounded = (self.one_hot * values).sum(-1)  # (batch, latents)

    @cached_property
    def mean(self) -> Tensor:
        """The nearest value, with the gradient of the code."""
        return losses.passed_through(self.rounded, self.code)

    def expected(self, hard: bool | None = None) -> Sample:
        return Sample(self.code if hard is False else self.mean, self.one_hot, unrounded=self.code)


@latents.register("fsq")
class FiniteScalar(Rounded):
    """Finite scalar quantisation: c = tanh(e), rounded to equidistant values from -1 to 1, as in Tripod.

    With the bound of Mentzer et al. ("shifted") an even number v of values goes from -1 to 1 - 2/v, so that 0 is one of
    them, and e is shifted so that codes near 0 are rounded to it. With that of iFSQ ("sigmoid"),
    c = 2 sigmoid(1.6 e) - 1 is nearly uniform for normal e, more so than tanh(e).

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.FiniteScalar(num_latents=4, num_categories=3)
    >>> latent(torch.tensor([[-2.0, -0.1, 0.1, 2.0]])).mean.tolist()
    [[-1.0, 0.0, 0.0, 1.0]]
    """

    title = "FSQ"
    low = -1.0

    def __init__(
        self,
        num_latents: NumLatents = 10,
        num_categories: NumCategories = 12,
        bound: Annotated[
            Literal["symmetric", "shifted", "sigmoid"],
            Setting(
                "Values from -1 to 1 by tanh (Tripod) or by a sigmoid that uses them evenly (iFSQ), or shifted so that "
                "0 is one of an even number of them (Mentzer et al.)."
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
        if self.bound == "sigmoid":
            return 2 * (IFSQ_SLOPE * outputs).sigmoid() - 1
        reach, offset = (self.num_categories - 1) * (1 - MARGIN) / 2, (1 - self.num_categories % 2) / 2
        return ((outputs + math.tan(offset / reach)).tanh() * reach - offset) / (self.num_categories // 2)


@latents.register("quantised")
class Quantised(Rounded):
    """Latent quantisation: c = e, rounded to values that every latent learns.

    The values are initially equidistant from -½ to ½ and move to the codes rounded to them. They are sorted, so that
    category j is always the j-th from below; one that no code is rounded to stays.

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.Quantised(num_latents=4, num_categories=3)
    >>> latent(torch.tensor([[-2.0, -0.1, 0.1, 0.3]])).mean.tolist()
    [[-0.5, 0.0, 0.0, 0.5]]
    """

    title = "quantised"
    low = -0.5
    high = 0.5

    def __init__(
        self,
        num_latents: NumLatents = 10,
        num_categories: NumCategories = 10,
        quantisation_weight: QuantisationWeight = 0.01,
        commitment_weight: CommitmentWeight = 0.01,
    ) -> None:
        super().__init__(num_latents, num_categories)
        self.quantisation_weight, self.commitment_weight = quantisation_weight, commitment_weight
        self.positions = nn.Parameter(losses.positions(self.low, self.high, num_categories).repeat(num_latents, 1))

    def code(self, outputs: Tensor) -> Tensor:
        return outputs

    def values(self) -> Tensor:
        return self.positions.sort(dim=-1).values

    def losses(self, posterior: Posterior, sample: Sample) -> dict[str, Tensor]:
        """Return weighted squared distances of codes c and values q, mean over latents: (sg(c) - q)², (c - sg(q))²."""
        assert isinstance(posterior, RoundedPosterior)
        code, rounded = posterior.code, posterior.rounded
        return {
            "quantisation": self.quantisation_weight * (code.detach() - rounded).square().mean(),
            "commitment": self.commitment_weight * (code - rounded.detach()).square().mean(),
        }


# vectors


@latents.register("vector_quantised")
class VectorQuantised(QuantisedLatent):
    """The encoder outputs a vector e per latent; the decoder gets the nearest codebook vector, with e's gradient.

    The codebook follows the encoder: its vectors are either moving averages of the e that were nearest to them
    ("ema"), or trained by a loss ("loss"). A vector that is rarely used any more is replaced by an e of the current
    batch: the first such vector by that of the first image, and so on, as batches are in random order. This also
    initialises the codebook from the first batch. In your own loop, call `after_step` after the optimizer.

    Codebooks of their own (`shared_codebook=False`) make it a product quantiser (Jégou et al. 2011). With
    `residual_levels=r` it is a residual one (Zeghidour et al. 2021): r successive latents share one vector e, each
    quantises what the ones before it left, and the decoder gets their sum. Every level has its own codebook.

    The code is the index of the vector, scaled to [-1, 1]: thresholds on the variance of codes and the explorer's
    controls then work as for other discrete latents. It has no gradient, and indices have no order.

    Examples
    --------
    >>> import lddr, torch
    >>> latent = lddr.latents.VectorQuantised(num_latents=2, num_categories=8, embedding_size=3)
    >>> posterior = latent(torch.rand(5, latent.num_parameters))
    >>> posterior.categories.shape, posterior.rsample().shape
    (torch.Size([5, 2]), torch.Size([5, 6]))
    """

    title = "vector-quantised"

    codebook: Tensor  # (levels or latents, categories, embedding_size)
    use: Tensor  # (levels or latents, categories): moving average of how many outputs of a batch a vector is nearest to
    sums: Tensor  # shaped as codebook: moving average of the sums of these outputs

    def __init__(
        self,
        num_latents: NumLatents = 10,
        num_categories: NumCategories = 16,
        embedding_size: Annotated[int, Setting("How many numbers a vector of the codebook has.", at_least=1)] = 4,
        shared_codebook: Annotated[
            bool, Setting("Share one codebook per residual level between latents, instead of one for each latent.")
        ] = True,
        codebook_update: Annotated[
            Literal["ema", "loss"], Setting("How the codebook follows the encoder: by moving averages or by a loss.")
        ] = "ema",
        ema_decay: Annotated[
            float, Setting("Decay of the moving averages of a codebook.", at_least=0, at_most=1)
        ] = 0.99,
        quantisation_weight: QuantisationWeight = 1.0,
        commitment_weight: CommitmentWeight = 0.25,
        restart_below: Annotated[
            float,
            Setting(
                "Replace vectors of a codebook that are used less than this share of the mean; 0 for never.", at_least=0
            ),
        ] = 0.05,
        residual_levels: Annotated[
            int, Setting("How many latents quantise one vector, each the residual of those before.", at_least=1)
        ] = 1,
    ) -> None:
        super().__init__(num_latents, num_categories, numbers_per_latent=embedding_size)
        if num_latents % residual_levels:
            raise UserError(f"num_latents ({num_latents}) must be a multiple of residual_levels ({residual_levels})")
        self.residual_levels, self.num_vectors = residual_levels, num_latents // residual_levels
        self.shared_codebook, self.codebook_update, self.ema_decay = shared_codebook, codebook_update, ema_decay
        self.quantisation_weight, self.commitment_weight = quantisation_weight, commitment_weight
        self.restart_below = restart_below
        self.prior_variance = losses.positions_variance(-1, 1, num_categories)
        self.register_buffer("positions", losses.positions(-1, 1, num_categories))
        books = residual_levels if shared_codebook else num_latents
        shape = (books, num_categories, embedding_size)
        codebook = torch.arange(1.0, math.prod(shape) + 1).sin().reshape(shape) / num_categories  # near 0, all distinct
        self.register_buffer("use", torch.zeros(books, num_categories))
        if codebook_update == "loss":
            self.codebook = nn.Parameter(codebook)
        else:
            self.register_buffer("codebook", codebook)
            self.register_buffer("sums", torch.zeros_like(codebook))

    @property
    def num_parameters(self) -> int:
        return self.num_vectors * self.parameters_per_latent

    @property
    def width(self) -> int:
        return self.num_vectors * self.numbers_per_latent

    @property
    def discriminator_width(self) -> int:
        return self.num_latents * self.numbers_per_latent

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        self.codebook.copy_((2 * torch.rand(self.codebook.shape, generator=generator) - 1) / self.num_categories)

    def posterior(self, parameters: Tensor) -> VectorQuantisedPosterior:
        return VectorQuantisedPosterior(parameters, self)

    def vectors(self, weights: Tensor) -> Tensor:
        """Return mixtures of codebook vectors: (batch, latents, categories) → (batch, latents, embedding_size)."""
        return torch.einsum("blk,lkd->bld", weights, self.codebooks())

    def codebooks(self) -> Tensor:
        """Return the codebook of every latent: (latents, categories, embedding_size)."""
        if not self.shared_codebook:
            return self.codebook
        return self.codebook.unsqueeze(0).expand(self.num_vectors, -1, -1, -1).flatten(0, 1)

    def summed(self, vectors: Tensor) -> Tensor:
        """Add the levels up: (batch, latents, embedding_size) → (batch, vectors, embedding_size)."""
        return vectors.unflatten(1, (self.num_vectors, self.residual_levels)).sum(2)

    def embed(self, codes: Tensor) -> Tensor:
        """Look up vectors of the codebook; a code between two indices gives a mixture of both vectors."""
        return self.summed(self.vectors(self.category_weights(codes))).flatten(1)

    def discriminator_input(self, sample: Sample) -> Tensor:
        """Return the vector of every level, each with the gradient of the encoder's output."""
        if self.residual_levels == 1:
            return super().discriminator_input(sample)
        assert sample.weights is not None
        assert sample.unrounded is not None
        outputs = sample.unrounded.unflatten(1, (self.num_vectors, -1)).repeat_interleave(self.residual_levels, 1)
        return losses.passed_through(self.vectors(sample.weights), outputs)

    def losses(self, posterior: Posterior, sample: Sample) -> dict[str, Tensor]:
        """Return weighted squared distances, summed over latents: ‖e - sg(q)‖², and ‖sg(e) - q‖² for "loss"."""
        assert isinstance(posterior, VectorQuantisedPosterior)
        outputs, nearest = posterior.residuals, posterior.nearest
        commitment = (outputs - nearest.detach()).square().sum((1, 2)).mean()
        found = {"commitment": self.commitment_weight * commitment}
        if self.codebook_update == "loss":
            quantisation = (outputs.detach() - nearest).square().sum((1, 2)).mean()
            found["quantisation"] = self.quantisation_weight * quantisation
        return found

    @torch.no_grad()
    def after_step(self, posterior: Posterior, sample: Sample) -> None:
        """Move the codebook towards the batch's outputs ("ema"), and replace vectors that are rarely used."""
        assert isinstance(posterior, VectorQuantisedPosterior)
        outputs, chosen = self._by_book(posterior.residuals), self._by_book(posterior.one_hot)
        share = 1 - self.ema_decay
        self.use.lerp_(chosen.sum(1), share)
        if self.codebook_update == "ema":
            self.sums.lerp_(chosen.mT @ outputs, share)
            is_used = self.use.unsqueeze(2) > 0
            self.codebook.copy_(torch.where(is_used, self.sums / self.use.unsqueeze(2), self.codebook))
        usual = self.use.mean(1, keepdim=True)
        dead = self.use < self.restart_below * usual  # (books, categories)
        row = (dead.cumsum(1) - 1).clamp(min=0) % outputs.shape[1]
        fresh = outputs.gather(1, row.unsqueeze(2).expand_as(self.codebook))
        self.codebook.copy_(torch.where(dead.unsqueeze(2), fresh, self.codebook))
        self.use.copy_(torch.where(dead, usual, self.use))
        if self.codebook_update == "ema":
            self.sums.copy_(torch.where(dead.unsqueeze(2), fresh * usual.unsqueeze(2), self.sums))

    def codebook_counts(self, counts: Tensor) -> Tensor:
        return self._by_book(counts.unsqueeze(0)).sum(1)

    def _by_book(self, tensor: Tensor) -> Tensor:  # (batch, latents, …) → (books, rows, …)
        if not self.shared_codebook:
            return tensor.detach().transpose(0, 1)
        by_level = tensor.detach().unflatten(1, (self.num_vectors, self.residual_levels)).movedim(2, 0)
        return by_level.flatten(1, 2)


class VectorQuantisedPosterior(QuantisedPosterior):
    """The nearest vector of the codebook to the encoder's output, or to its residual, for each latent."""

    def __init__(self, outputs: Tensor, latent: VectorQuantised) -> None:
        self.outputs, self.latent = outputs, latent  # (batch, vectors, embedding_size)
        codebooks, levels = latent.codebooks().detach(), latent.residual_levels
        residuals, chosen = [outputs], []
        for level in range(levels):
            distances = torch.cdist(residuals[-1].detach().transpose(0, 1), codebooks[level::levels])
            nearest = distances.argmin(2)  # (vectors, batch)
            chosen.append(nearest.T)
            if level + 1 < levels:
                rows = torch.arange(len(nearest), device=nearest.device).unsqueeze(1)
                residuals.append(residuals[-1] - codebooks[level::levels][rows, nearest].transpose(0, 1))
        self.residuals = torch.stack(residuals, 2).flatten(1, 2)  # (batch, latents, embedding_size)
        self.one_hot = one_hot(torch.stack(chosen, 2).flatten(1), latent.num_categories).to(outputs.dtype)
        self.nearest = latent.vectors(self.one_hot)  # as residuals

    @cached_property
    def mean(self) -> Tensor:
        """The index of the nearest vector, scaled to [-1, 1], without gradient."""
        return self.one_hot @ self.latent.positions

    def expected(self, hard: bool | None = None) -> Sample:
        unrounded, rounded = self.outputs.flatten(1), self.latent.summed(self.nearest).flatten(1)
        z = unrounded if hard is False else losses.passed_through(rounded, unrounded)
        return Sample(z, self.one_hot, unrounded)
