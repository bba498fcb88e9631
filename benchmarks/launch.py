"""What a training step asks of an accelerator, counted on torch's `meta` device, without one."""

from collections import Counter
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import track
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lddr.config import Config, configure
from lddr.data.dataset import Dataset
from lddr.data.load import load_dataset
from lddr.models import models
from lddr.timing import show
from lddr.training.accelerator import batches_for, trainer_on
from lddr.training.trainer import LossAverages

META = torch.device("meta")
READS = ("_local_scalar_dense", "is_nonzero", "equal", "nonzero")  # what the host has to wait for
ALLOCATIONS = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_permuted")
SETTLED = 2  # steps before the counted one: what is made once is there


class Launches(TorchDispatchMode):
    """Counts the operations on a device, the copies to it, what is read back from it, and what the host works out.

    On `meta` there are no values: whatever reads one raises. Fused Adam does not know this device and is only counted.
    """

    def __init__(self) -> None:
        super().__init__()
        self.launches, self.copies, self.reads, self.on_host = (Counter[str]() for _ in range(4))

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = function.overloadpacket.__name__, _devices((args, kwargs))
        if "meta" in given and (name in READS or _target(args, kwargs) == "cpu"):
            self.reads[name] += 1
        result = None if name == "_fused_adam_" else function(*args, **(kwargs or {}))
        devices = given | _devices(result)
        if devices > {"cpu"} and name in ("copy_", "_to_copy"):
            self.copies[name] += 1
        elif devices and not _is_free(function):
            (self.launches if "meta" in devices else self.on_host)[name] += 1
        return result

    def __enter__(self) -> "Launches":
        super().__enter__()
        self._made = _MadeOfNumbers(self.copies)
        self._made.__enter__()
        return self

    def __exit__(self, *problem: Any) -> None:
        self._made.__exit__(*problem)
        super().__exit__(*problem)


class _MadeOfNumbers(TorchFunctionMode):
    """Counts tensors made of Python's numbers on a device: a copy that is no operation on `meta`."""

    def __init__(self, copies: Counter[str]) -> None:
        super().__init__()
        self._copies = copies

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if function in (torch.tensor, torch.as_tensor) and "meta" in str((kwargs or {}).get("device")):
            self._copies[function.__name__] += 1
        return function(*args, **(kwargs or {}))


def _devices(things: Any) -> set[str]:
    return {each.device.type for each in tree_leaves(things) if isinstance(each, Tensor)}


def _target(args: Any, kwargs: Any) -> str | None:
    """Where something is asked to be copied to."""
    device = (kwargs or {}).get("device")
    return None if device is None else torch.device(device).type


def _is_free(function: Any) -> bool:
    """Whether it launches nothing: it looks at the same memory in another way, or asks for some."""
    kinds = [each.alias_info for each in function._schema.returns]
    is_view = bool(kinds) and all(kind is not None and not kind.is_write for kind in kinds)
    return is_view or function.overloadpacket.__name__ in (*ALLOCATIONS, "detach", "_unsafe_view")


def counted(config: Config, dataset: Dataset) -> Launches:
    """The real batches, trainer and averages in one step between two lines of the log."""
    trainer = trainer_on(META, config, dataset)
    batches, averages = batches_for(trainer, dataset), LossAverages(0, None)
    for step in range(SETTLED + 1):
        with Launches() as counter:
            averages.add(trainer.step(batches.batch(step)))
    return counter


def run_bench(out: Path | None) -> None:
    """Count, print the table and write it."""
    dataset = load_dataset("dsprites")
    rows = [_row(name, dataset) for name in track(list(models), "counting", console=Console(stderr=True))]
    show(rows, "one training step, batch 64, 64x64: between two lines of the log", out)


def _row(model: str, dataset: Dataset) -> dict[str, Any]:
    found = counted(configure(model, dataset.name), dataset)
    numbers = {"launches": found.launches, "copies to the device": found.copies, "read back": found.reads}
    return {"model": model, **{name: sum(each.values()) for name, each in numbers.items()}}
