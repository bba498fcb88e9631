"""Learning Disentangled Discrete Representations: the public names, imported when they are first used."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Dataset": "lddr.data.dataset",
    "DisentangledVAE": "lddr.estimator",
    "FactorSpace": "lddr.data.factors",
    "Machine": "lddr.hardware",
    "Trained": "lddr.trained",
    "UserError": "lddr.errors",
    "VAE": "lddr.vae",
    "evaluate": "lddr.metrics.evaluate",
    "load_dataset": "lddr.data.load",
    "train": "lddr.trained",
}
_MODULES = ("latents", "likelihoods", "metrics", "networks", "objectives")

__all__ = [
    "VAE",
    "Dataset",
    "DisentangledVAE",
    "FactorSpace",
    "Machine",
    "Trained",
    "UserError",
    "__version__",
    "evaluate",
    "latents",
    "likelihoods",
    "load_dataset",
    "metrics",
    "networks",
    "objectives",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module 'lddr' has no attribute {name!r}")
    from lddr.errors import suggesting_extras

    with suggesting_extras():
        if name in _MODULES:
            return import_module(f"lddr.{name}")
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
