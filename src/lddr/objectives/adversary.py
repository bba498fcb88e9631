"""A network of an objective's own that trains beside the model, on the same codes, by a loss of its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from lddr.lazy import LazyModule

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = LazyModule("torch")

Network = Callable[["Tensor"], "Tensor"]


class Adversary(ABC):
    """The network, what it says of codes, and how it learns; the trainer keeps its weights and takes its steps.

    `betas` are Adam's; with the schedule "model" its learning rate falls and rises as the model's does.
    """

    def __init__(
        self,
        network: nn.Module,
        learning_rate: float,
        betas: tuple[float, float] = (0.5, 0.9),
        schedule: str = "constant",
    ) -> None:
        self.network, self.learning_rate, self.betas, self.schedule = network, learning_rate, betas, schedule

    @abstractmethod
    def verdict(self, outputs: Tensor) -> Tensor:
        """What the model is told, () from the network's outputs for the codes of a batch."""

    @abstractmethod
    def draw(self, shape: tuple[int, int], generator: torch.Generator) -> Tensor:
        """The chance in the rivals of codes of this shape, (batch, latents), from the generator alone."""

    @abstractmethod
    def rivals(self, codes: Tensor, drawn: Tensor) -> Tensor:
        """What it shall tell the codes from, of their shape, made of them (detached) and of what was drawn."""

    @abstractmethod
    def loss(self, outputs: Tensor, rivals: Tensor) -> Tensor:
        """What the network learns by, () from its outputs for the codes and for their rivals."""

    def judge(self, z: Tensor) -> Tensor:
        """The verdict on codes, by a network that does not learn from it."""
        return self.verdict(self.network(z.flatten(1)))

    def meet(self, z: Tensor, drawn: Tensor, network: Network | None = None) -> Tensor:
        """The verdict, whose gradient reaches z alone; those of the network's own loss are left in its weights.

        `network` computes the outputs of the network in another precision.
        """
        codes = z.detach().requires_grad_()
        outputs, rivals = self._outputs(network or self.network, codes, self.rivals(z.detach(), drawn))
        verdict = self.verdict(outputs)
        (slope,) = torch.autograd.grad(verdict, codes, retain_graph=True)
        weights = list(self.network.parameters())
        gradients = torch.autograd.grad(self.loss(outputs, rivals), weights)
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
        return verdict.detach() + (slope * (z - codes.detach())).sum()  # the same value, and the slope for z

    def _outputs(self, network: Network, codes: Tensor, rivals: Tensor) -> tuple[Tensor, ...]:
        """Of both; in one pass where a pass costs the same however many codes there are."""
        codes, rivals = codes.flatten(1), rivals.flatten(1)  # a latent may be several numbers
        if codes.device.type == "cpu":
            return network(codes), network(rivals)
        return network(torch.cat([codes, rivals])).chunk(2)
