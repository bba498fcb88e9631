"""A training step recorded once as a CUDA graph and replayed from then on: one launch, whatever the step is made of.

Nothing here has run on a GPU yet; the tests record and replay on the CPU, by a stand-in for the graph.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from lddr.training.inputs import Inputs, Labelled

WARM_UP = 3  # steps taken as they are, on a stream of their own, as torch's guide to CUDA graphs asks

Parts = dict[str, Tensor]
Step = Callable[[Inputs], Parts]
Body = Callable[[], Parts]
Recorded = tuple[Parts, Callable[[], None]]  # what it gives, and how to do it again
Record = Callable[[Body], Recorded]


class Replayed:
    """The same step: what it takes is copied to where it was recorded, and what it gives is good until the next one."""

    def __init__(self, step: Step, record: Record) -> None:
        self._step, self._record = step, record
        self._taken = 0

    def __call__(self, inputs: Inputs) -> Parts:
        self._taken += 1
        if self._taken <= WARM_UP:
            return self._step(inputs)
        if self._taken == WARM_UP + 1:
            self._inputs = _copied(inputs)
            self._parts, self._replay = self._record(lambda: self._step(self._inputs))
        torch._foreach_copy_(_tensors(self._inputs), _tensors(inputs))
        self._replay()
        return self._parts


def on_own_stream(step: Step) -> Step:
    """The same step on a stream of its own, unless it is being recorded."""
    aside = torch.cuda.Stream()

    def taken(inputs: Inputs) -> Parts:
        if torch.cuda.is_current_stream_capturing():
            return step(inputs)
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            parts = step(inputs)
        torch.cuda.current_stream().wait_stream(aside)
        return parts

    return taken


def record_graph(body: Body) -> Recorded:
    """Record without carrying it out; every replay reads and writes the same memory."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        parts = body()
    return parts, graph.replay


def _tensors(inputs: Inputs) -> list[Tensor]:
    """All there are: on an accelerator schedules are tensors, too."""
    values = [getattr(inputs, field.name) for field in fields(inputs)]
    return [each for value in values if value is not None for each in (value if type(value) is Labelled else [value])]


def _copied(inputs: Inputs) -> Inputs:
    labelled = inputs.labelled and Labelled(*map(torch.clone, inputs.labelled))
    names = [field.name for field in fields(inputs) if field.name != "labelled"]
    values = {name: getattr(inputs, name) for name in names}
    copies: dict[str, Any] = {name: each if each is None else each.clone() for name, each in values.items()}
    return Inputs(labelled=labelled, **copies)
