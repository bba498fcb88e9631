"""What estimates are checked against: computed from whole tables, for sizes that can be enumerated."""

import torch
from torch import Tensor


def exact_total_correlation(probabilities: Tensor) -> Tensor:  # (batch, latents, categories) → ()
    """Total correlation of the batch's aggregate posterior from its whole table: Σ_i H(q(z_i)) - H(q(z))."""
    batch, latents, _ = probabilities.shape
    first, second = _products(probabilities[:, : latents // 2]), _products(probabilities[:, latents // 2 :])
    return _entropy(probabilities.mean(0)) - _entropy(first.T @ second / batch)


def _products(probabilities: Tensor) -> Tensor:  # (batch, latents, categories) → (batch, categories^latents)
    table = probabilities.new_ones(len(probabilities), 1)
    for latent in probabilities.unbind(1):
        table = (table[:, :, None] * latent[:, None, :]).flatten(1)
    return table


def _entropy(probabilities: Tensor) -> Tensor:  # () of everything in the table
    smallest = torch.finfo(probabilities.dtype).tiny  # so that 0 log 0 is 0, and its gradient finite
    return -(probabilities * probabilities.clamp_min(smallest).log()).sum()
