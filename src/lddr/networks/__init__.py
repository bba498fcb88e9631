"""Encoders and decoders, known by name without importing PyTorch.

An encoder is built as `cls(image_shape, outputs, …)` and a decoder as `cls(inputs, image_shape, …)`, with those of `width`,
`kernels` and `depth` that its constructor names.
"""

import inspect
from typing import Any

from lddr.parts import Part, Parts

encoders = Parts("encoder", "lddr.networks")
decoders = Parts("decoder", "lddr.networks")


def build(part: Part, first: Any, second: Any, **settings: Any) -> Any:
    """The network, with those of the settings that its constructor has."""
    known = inspect.signature(part.cls).parameters
    return part.cls(first, second, **{name: value for name, value in settings.items() if name in known})
