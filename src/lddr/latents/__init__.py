"""Latents, one file each: modules that turn the outputs of an encoder into posteriors and samples.

`latents` knows all of them by name without importing PyTorch; `lddr.latents.Categorical` and the other classes are
imported when they are first used.
"""

from typing import Any

from lddr.parts import Parts
from lddr.settings import Rule

latents = Parts(
    "latent",
    "lddr.latents",
    own={"num_latents": Rule(1, "How many latents.", int)},
    constants={"is_discrete": False, "supervisions": (), "masking": (), "has_densities": True},
)


def __getattr__(name: str) -> Any:
    return latents.class_named(name)
