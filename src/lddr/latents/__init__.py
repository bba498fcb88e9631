"""Latents: modules that turn the outputs of an encoder into posteriors and samples.

`latents` knows all of them by name without importing PyTorch; `lddr.latents.Categorical` and the other classes are
imported when they are first used.
"""

from typing import Any

from lddr.parts import latents as latents


def __getattr__(name: str) -> Any:
    return latents.class_named(name)
