"""Adam in one kernel. Constructing `torch.optim.Adam` imports torch's compiler, which takes more than a second."""

from collections.abc import Iterable
from itertools import compress
from typing import Any

import torch
from torch import Tensor

OPTIONS: Any = {"eps": 1e-8, "weight_decay": 0.0, "amsgrad": False, "maximize": False}


class Adam:
    """The steps of `torch.optim.Adam(fused=True)`, bit by bit; with a decay those of AdamW.

    Only weights decay, by which everything of two dimensions or more is meant that is not in `no_decay`; `clip` bounds
    the elements of gradients, all of them or with `clip_of` "weights" those of weights.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        learning_rate: float | Tensor,
        betas: tuple[float, float],
        decay: float = 0.0,
        clip: float = 0.0,
        no_decay: Iterable[Tensor] = (),
        clip_of: str = "all",
    ) -> None:
        self._parameters, kept = list(parameters), set(map(id, no_decay))
        self._is_weight = [parameter.dim() > 1 and id(parameter) not in kept for parameter in self._parameters]
        self.learning_rate, self.betas, self.decay, self.clip = learning_rate, betas, decay, clip
        self._is_clipped = self._is_weight if clip_of == "weights" else [True] * len(self._parameters)
        self._steps = [torch.zeros((), device=parameter.device) for parameter in self._parameters]
        # in the parameter's memory format: the kernel walks both as flat memory, and bits depend on where a number lies
        self._means, self._squares = ([torch.zeros_like(each) for each in self._parameters] for _ in range(2))

    def zero_grad(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self, found_inf: Tensor | None = None) -> None:
        """Change every parameter that has a gradient, by `learning_rate` as it is now; nothing if `found_inf` holds 1.

        That is decided on the device of the parameters, so that the host does not wait for it.
        """
        going = 1 if found_inf is None else 1 - found_inf
        moved = [each.grad is not None for each in self._parameters]
        kept = self._parameters, self._means, self._squares, self._steps
        parameters, means, squares, steps = (list(compress(tensors, moved)) for tensors in kept)
        gradients: Any = [parameter.grad for parameter in parameters]
        _each(torch.ops.aten._foreach_add_, steps, going)
        if self.clip:
            clipped = list(compress(gradients, compress(self._is_clipped, moved)))
            torch._foreach_clamp_min_(clipped, -self.clip)
            torch._foreach_clamp_max_(clipped, self.clip)
        if self.decay:
            weights = list(compress(parameters, compress(self._is_weight, moved)))
            _each(torch.ops.aten._foreach_mul_, weights, 1 - going * (self.learning_rate * self.decay))
        rates: Any = {"lr": self.learning_rate, "beta1": self.betas[0], "beta2": self.betas[1]}
        torch._fused_adam_(parameters, gradients, means, squares, [], steps, **rates, **OPTIONS, found_inf=found_inf)

    def tensors(self, prefix: str) -> dict[str, Tensor]:
        """Return step counters and moments by the index of the parameter, not copied."""
        named = {"step": self._steps, "exp_avg": self._means, "exp_avg_sq": self._squares}
        return {f"{prefix}.{number}.{name}": each for name, kind in named.items() for number, each in enumerate(kind)}


def _each(operation: Any, tensors: list[Tensor], number: float | Tensor) -> None:
    """Apply an operation to many tensors; without a choice of overload, torch would read a tensor on the device."""
    (operation.Tensor if isinstance(number, Tensor) else operation.Scalar)(tensors, number)
