"""Draws on their way to an accelerator: many steps at once, the next ones made by a thread while these are used."""

from concurrent.futures import Future, ThreadPoolExecutor

import torch

from lddr.training.draws import Draws, Numbers
from lddr.training.ledger import LOG_EVERY

BLOCK_BYTES = 128 * 2**20  # at most; fewer steps then


class Blocks:
    """The draws of a step on the device, where a step finds them without a word to the host.

    A block ends where a line of a long log does, if it is not too large. The host's side of a transfer is pinned on
    CUDA, so that the device fetches it when it gets there and nobody waits.
    """

    def __init__(self, draws: Draws, device: torch.device) -> None:
        self._draws, self._device, self._last = draws, device, draws.config.training.steps
        self._is_pinned = device.type == "cuda"
        one = sum(each.nbytes for each in draws.at(0).values())
        self._size = max(1, min(LOG_EVERY, BLOCK_BYTES // one))
        self._maker = ThreadPoolExecutor(1, "lddr-blocks")
        self._here, self._numbers = range(0), Numbers()
        self._next, self._coming = range(0), Future[Numbers]()

    def at(self, step: int) -> Numbers:
        if step not in self._here:
            self._fetch(step)
        place = step - self._here.start
        return {name: each[place] for name, each in self._numbers.items()}

    def _fetch(self, step: int) -> None:
        if step != self._next.start or not self._next:  # the first one, or a jump
            self._prepare(step)
        self._here, made = self._next, self._coming.result()
        self._numbers = {name: each.to(self._device, non_blocking=self._is_pinned) for name, each in made.items()}
        self._prepare(self._here.stop)

    def _prepare(self, step: int) -> None:
        """Let the thread begin with the block of a step; there is nothing to do after the last step."""
        self._next = range(step, min((step // self._size + 1) * self._size, max(self._last, step)))
        if self._next:
            self._coming = self._maker.submit(self._made, self._next)

    def _made(self, steps: range) -> Numbers:
        drawn = [self._draws.at(step) for step in steps]
        block = {name: torch.stack([each[name] for each in drawn]) for name in drawn[0]}
        block["schedules"] = block["schedules"].float()  # not every device has doubles
        return {name: each.pin_memory() if self._is_pinned else each for name, each in block.items()}
