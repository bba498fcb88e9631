"""Learning Disentangled Discrete Representations: the public names, imported when they are first used."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Dataset": "lddr.data.dataset",
    "DisentangledVAE": "lddr.estimator",
    "FactorSpace": "lddr.data.factors",
    "Machine": "lddr.runs.machine",
    "Trained": "lddr.trained",
    "UserError": "lddr.errors",
    "evaluate": "lddr.metrics.evaluate",
    "load_dataset": "lddr.data.load",
    "train": "lddr.trained",
}

__all__ = [
    "Dataset",
    "DisentangledVAE",
    "FactorSpace",
    "Machine",
    "Trained",
    "UserError",
    "__version__",
    "evaluate",
    "load_dataset",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lddr' has no attribute {name!r}")
    from lddr.extras import extras

    with extras():
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
