"""The terms of the loss between two lines of the log: kept where they are worked out, and read together."""

from collections.abc import Mapping

import torch
from torch import Tensor

LOG_EVERY = 100  # steps at most; a line of the log is the mean over them
LEAST_LINES = 10  # of a run with as many steps


def log_interval(steps: int) -> int:
    """After how many steps a run of this length logs a line; the last step always ends one."""
    return min(LOG_EVERY, max(1, steps // LEAST_LINES))


class LossAverages:
    """`add` never waits for a device; `read` does, for all steps since the last time."""

    def __init__(self, first_step: int, sums: Tensor | None) -> None:
        """Go on at a step, with the sums (doubles) of the steps before it that are in no line yet."""
        self.sums = sums
        self.latest: dict[str, float] = {}  # of the last step that was read
        self._step, self._rows = first_step, list[Tensor]()
        self._names: tuple[str, ...] = ()

    def add(self, parts: Mapping[str, Tensor]) -> None:
        self._names = tuple(parts)
        self._rows.append(torch.stack(list(parts.values())))

    def read(self) -> dict[int, dict[str, float]]:
        """The terms of every step that was not read yet; they join the sums, in their order and in double precision."""
        read = {}
        for row in torch.stack(self._rows).cpu().double():
            self.sums = row if self.sums is None else self.sums + row
            read[self._step] = dict(zip(self._names, row.tolist(), strict=True))
            self._step += 1
        self._rows = []
        self.latest = read[self._step - 1]
        return read

    def line(self, steps: int) -> dict[str, float]:
        """The means of this many steps, those of a line, which ends here."""
        assert self.sums is not None
        means = dict(zip(self._names, (self.sums / steps).tolist(), strict=True))
        self.sums = None
        return means
