"""Vector-quantised latents: each is the nearest vector of a codebook (VQ-VAE, van den Oord et al. 2017)."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Annotated, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from lddr import losses
from lddr.latents import latents
from lddr.latents.latent import Latent, Posterior, Sample, Scale, category_weights
from lddr.settings import Setting


@latents.register("vector_quantised")
class VectorQuantised(Latent):
    """The encoder outputs a vector e per latent; the decoder gets the nearest codebook vector, with e's gradient.

    The codebook follows the encoder: its vectors are either moving averages of the e that were nearest to them
    ("ema"), or trained by a loss ("loss"). A vector that is rarely used any more is replaced by an e of the current
    batch: the first such vector by that of the first image, and so on, as batches are in random order. This also
    initialises the codebook from the first batch.

    The code is the index of the vector, scaled to [-1, 1]: thresholds on the variance of codes and the explorer's
    controls then work as for other discrete latents. It has no gradient, and indices have no order. As for `fsq`, the
    KL is a constant, and there are no densities.
    """

    title = "vector-quantised"
    is_discrete = True
    has_densities = False

    codebook: Tensor  # (1 or latents, categories, embedding_size)
    positions: Tensor  # (categories,)
    use: Tensor  # (1 or latents, categories): moving average of the number of outputs in a batch nearest to a vector
    sums: Tensor  # shaped as codebook: moving average of the sums of these outputs

    def __init__(
        self,
        num_latents: Annotated[int, Setting("How many latents.", at_least=1)] = 10,
        num_categories: Annotated[int, Setting("How many categories a latent has.", at_least=2)] = 16,
        embedding_size: Annotated[int, Setting("How many numbers a vector of the codebook has.", at_least=1)] = 4,
        shared_codebook: Annotated[bool, Setting("One codebook for all latents, not one for each.")] = True,
        codebook_update: Annotated[
            Literal["ema", "loss"], Setting("How the codebook follows the encoder: by moving averages or by a loss.")
        ] = "ema",
        ema_decay: Annotated[
            float, Setting("Decay of the moving averages of a codebook.", at_least=0, at_most=1)
        ] = 0.99,
        quantisation_weight: Annotated[
            float, Setting("Weight of the loss that draws values to codes.", at_least=0)
        ] = 1.0,
        commitment_weight: Annotated[
            float, Setting("Weight of the loss that draws codes to values.", at_least=0)
        ] = 0.25,
        restart_below: Annotated[
            float,
            Setting(
                "Replace vectors of a codebook that are used less than this share of the mean; 0 for never.", at_least=0
            ),
        ] = 0.05,
    ) -> None:
        super().__init__(num_latents, embedding_size, numbers_per_latent=embedding_size)
        self.num_categories, self.shared_codebook, self.codebook_update = (
            num_categories,
            shared_codebook,
            codebook_update,
        )
        self.ema_decay, self.restart_below = ema_decay, restart_below
        self.quantisation_weight, self.commitment_weight = quantisation_weight, commitment_weight
        self.prior_variance = losses.positions_variance(-1, 1, num_categories)
        self.register_buffer("active", torch.ones(num_latents, num_categories, dtype=torch.bool))
        self.register_buffer("positions", losses.positions(-1, 1, num_categories))
        books = 1 if shared_codebook else num_latents
        shape = (books, num_categories, embedding_size)
        codebook = (
            torch.arange(1.0, math.prod(shape) + 1).sin().reshape(shape) / num_categories
        )  # near 0, all of them distinct
        self.register_buffer("use", torch.zeros(books, num_categories))
        if codebook_update == "loss":
            self.codebook = nn.Parameter(codebook)
        else:
            self.register_buffer("codebook", codebook)
            self.register_buffer("sums", torch.zeros_like(codebook))

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        self.codebook.copy_((2 * torch.rand(self.codebook.shape, generator=generator) - 1) / self.num_categories)

    def posterior(self, parameters: Tensor) -> VectorQuantisedPosterior:
        return VectorQuantisedPosterior(parameters, self)

    def noise(self, batch: int, generator: torch.Generator | None = None, device: torch.device | None = None) -> Tensor:
        """Return no noise."""
        return torch.empty(batch, 0, device=device)

    def values(self) -> Tensor:
        return self.positions.expand(self.num_latents, -1)

    def vectors(self, weights: Tensor) -> Tensor:
        """Return mixtures of codebook vectors: (batch, latents, categories) → (batch, latents, embedding_size)."""
        return torch.einsum("blk,lkd->bld", weights, self.codebook.expand(self.num_latents, -1, -1))

    def embed(self, codes: Tensor) -> Tensor:
        """Look up vectors of the codebook; a code between two indices gives a mixture of both vectors."""
        return self.vectors(category_weights(codes, self.num_categories)).flatten(1)

    def losses(self, posterior: Posterior, sample: Sample) -> dict[str, Tensor]:
        """Return weighted squared distances, summed over latents: ‖e - sg(q)‖², and ‖sg(e) - q‖² for "loss"."""
        assert isinstance(posterior, VectorQuantisedPosterior)
        outputs, nearest = posterior.outputs, posterior.nearest
        found = {"commitment": self.commitment_weight * _distance(outputs, nearest.detach())}
        if self.codebook_update == "loss":
            found["quantisation"] = self.quantisation_weight * _distance(outputs.detach(), nearest)
        return found

    @torch.no_grad()
    def after_step(self, posterior: Posterior, sample: Sample) -> None:
        """Move the codebook towards the batch's outputs ("ema"), and replace vectors that are rarely used."""
        assert isinstance(posterior, VectorQuantisedPosterior)
        outputs, chosen = self._by_book(posterior.outputs), self._by_book(posterior.one_hot)
        share = 1 - self.ema_decay
        self.use.lerp_(chosen.sum(1), share)
        if self.codebook_update == "ema":
            self.sums.lerp_(chosen.mT @ outputs, share)
            is_used = self.use.unsqueeze(2) > 0
            self.codebook.copy_(torch.where(is_used, self.sums / self.use.unsqueeze(2), self.codebook))
        usual = self.use.mean(1, keepdim=True)
        dead = self.use < self.restart_below * usual  # (books, categories)
        place = (dead.cumsum(1) - 1).clamp(min=0) % outputs.shape[1]
        fresh = outputs.gather(1, place.unsqueeze(2).expand_as(self.codebook))
        self.codebook.copy_(torch.where(dead.unsqueeze(2), fresh, self.codebook))
        self.use.copy_(torch.where(dead, usual, self.use))
        if self.codebook_update == "ema":
            self.sums.copy_(torch.where(dead.unsqueeze(2), fresh * usual.unsqueeze(2), self.sums))

    def _by_book(self, tensor: Tensor) -> Tensor:
        """(batch, latents, …) → (books, rows, …)."""
        return tensor.detach().flatten(0, 1).unsqueeze(0) if self.shared_codebook else tensor.detach().transpose(0, 1)


class VectorQuantisedPosterior(Posterior):
    """One vector of the codebook for each latent, with probability 1."""

    def __init__(self, outputs: Tensor, latent: VectorQuantised) -> None:
        self.outputs, self.latent = outputs, latent  # (batch, latents, embedding_size)
        distances = torch.cdist(
            outputs.detach().transpose(0, 1), latent.codebook.detach().expand(outputs.shape[1], -1, -1)
        )
        self.one_hot = one_hot(distances.argmin(2).T, latent.num_categories).to(outputs.dtype)
        self.nearest = latent.vectors(self.one_hot)  # as outputs

    @cached_property
    def mean(self) -> Tensor:
        """The index of the nearest vector, scaled to [-1, 1], without gradient."""
        return self.one_hot @ self.latent.positions

    @property
    def variance(self) -> Tensor:
        return torch.zeros_like(self.mean)

    @cached_property
    def kl(self) -> Tensor:
        return torch.full_like(self.mean, math.log(self.latent.num_categories))

    @property
    def parameters(self) -> Tensor:
        """1 for the nearest vector, 0 for the others."""
        return self.one_hot

    def sample(self, noise: Tensor | None = None, scale: Scale = 1.0, hard: bool | None = None) -> Sample:
        return self.expected(hard)

    def expected(self, hard: bool | None = None) -> Sample:
        unrounded = self.outputs.flatten(1)
        z = unrounded if hard is False else losses.passed_through(self.nearest.flatten(1), unrounded)
        return Sample(z, self.one_hot, unrounded)


def _distance(one: Tensor, other: Tensor) -> Tensor:  # (batch, latents, embedding_size) → ()
    """Return the squared distance, summed over latents, mean over the batch."""
    return (one - other).square().sum((1, 2)).mean()
