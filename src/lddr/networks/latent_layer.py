"""The layer between encoder and decoder: it holds the tensors of a latent family and asks the family for all else."""

from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from lddr.data.factors import FactorSpace
from lddr.latents.family import Latent, LatentFamily
from lddr.latents.targets import active_values


class LatentLayer(nn.Module):
    """(batch, latents x outputs_per_latent) → Latent. A discrete family also has `active`: the values in use."""

    active: Tensor  # (latents, values)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Tensor:
            """The family's constants and weights."""

    def __init__(self, family: LatentFamily) -> None:
        super().__init__()
        self.family = family
        for name, tensor in family.constants().items():
            self.register_buffer(name, tensor)
        for name, tensor in family.weights().items():
            self.register_parameter(name, nn.Parameter(tensor))
        if family.is_discrete:
            self.register_buffer("active", torch.ones(family.values(self).shape, dtype=torch.bool))

    def tie(self, loss: str, space: FactorSpace) -> None:
        """Make ready for supervision: a loss that masks leaves latent i the values of factor i."""
        if loss in self.family.masking:
            self.active.copy_(active_values(space, *self.active.shape))

    def settle(self) -> None:
        """Find out what is asked once, before the weights move to a device that somebody would have to wait for."""
        _ = self.family.is_discrete and self._is_masked

    @cached_property
    def _is_masked(self) -> bool:
        return not bool(self.active.all())  # looked at once, after the weights were loaded

    @property
    def mask(self) -> Tensor | None:
        """The active values, None when all are."""
        return self.active if self._is_masked else None

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw anew what begins by chance."""
        for name, tensor in self.family.drawn_weights(generator).items():
            self.get_parameter(name).copy_(tensor)

    def forward(
        self, outputs: Tensor, noise: Tensor | None = None, scale: float | Tensor = 0.0, hard: bool | None = None
    ) -> Latent:
        """Hard or soft as asked for; else as the family does it, with noise in training and without at test time."""
        if hard is None:
            hard = self.family.rounds_codes if noise is None else self.family.rounds_samples
        parameters = outputs.float().unflatten(1, (self.family.num_latents, self.family.outputs_per_latent))
        return self.family.latent(self, parameters, noise, scale, hard)

    def cross_log_density(self, latent: Latent) -> Tensor:
        return self.family.cross_log_density(self, latent)

    def values_of(self, latent: int) -> Tensor:
        """The values a traversal of this latent goes through, without those masked out: (values,)."""
        values = self.family.values(self)[latent].detach()
        return values[self.active[latent]] if self.family.is_discrete else values
