"""A module that is imported at its first use: so that what only describes a model answers before torch is there."""

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module; asking it for a name imports the module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
