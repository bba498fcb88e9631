"""What the labels of factors ask of latents: numbers for continuous ones, values for discrete ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lddr.lazy import LazyModule

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from lddr.data.factors import FactorSpace, Indices
else:
    torch = LazyModule("torch")


def normalised(factors: Indices, space: FactorSpace) -> Tensor:
    """Factor values as numbers from 0 to 1: (images, factors)."""
    return (torch.as_tensor(factors).double() / _steps(space)).float()


def bins(factors: Indices | Tensor, space: FactorSpace, num_values: int) -> Tensor:
    """The place of each factor value among a latent's: j of m' goes to round(j · (m-1)/(m'-1)): (images, factors).

    Ties go up. In whole numbers, because floating point breaks the tie at some sizes (27 and 53 values of 64).
    """
    steps = _steps(space)
    return (2 * torch.as_tensor(factors).long() * (num_values - 1) + steps) // (2 * steps)


def active_values(space: FactorSpace, num_latents: int, num_values: int) -> Tensor:
    """J_i for the latents of factors with fewer values than the latent; all values for every other latent."""
    active = torch.ones(num_latents, num_values, dtype=torch.bool)
    for latent, size in enumerate(space.sizes):
        if size < num_values:
            every = torch.arange(size)[:, None].expand(-1, len(space.sizes))
            active[latent] = False
            active[latent, bins(every, space, num_values)[:, latent]] = True
    return active


def _steps(space: FactorSpace) -> Tensor:
    """From the first value of each factor to its last: (factors,)."""
    return torch.tensor(space.sizes).sub(1).clamp(min=1)
