"""Objectives: modules from the output of a VAE to a loss, with a discriminator if they need one.

`objectives` knows all of them by name without importing PyTorch; `lddr.objectives.TotalCorrelation` and the other
classes are imported when they are first used.
"""

from typing import Any

from lddr.parts import objectives as objectives


def __getattr__(name: str) -> Any:
    return objectives.class_named(name)
