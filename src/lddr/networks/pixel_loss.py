"""The reconstruction of a batch and its gradient in one visit to the pixels; on the CPU they are a few passes each."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lddr import terms


def reconstruction_to_learn_by(logits: Tensor, images: Tensor) -> Tensor:  # (batch, channels, height, width) twice → ()
    """`terms.bernoulli_reconstruction`, whose images have no gradient; half the time on the CPU, with its gradient."""
    if logits.device.type != "cpu" or logits.dtype not in (torch.float32, torch.float64):
        return terms.bernoulli_reconstruction(logits, images)
    return _OneVisit.apply(logits, images)


class _OneVisit(torch.autograd.Function):
    """log(1 + eˡ) - l·x = max(l, 0) - l·x - log max(p, 1 - p) with p = 1/(1 + e⁻ˡ), and p - x is its gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, images: Tensor) -> Tensor:
        probabilities = logits.sigmoid()
        ctx.save_for_backward(probabilities - images)
        likelier = probabilities.sub_(0.5).abs_().add_(0.5)
        pixels = logits.relu().addcmul_(logits, images, value=-1).sub_(likelier.log_())
        return pixels.sum() / len(logits)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (slopes,) = ctx.saved_tensors
        return slopes * (gradient / len(slopes)), None
