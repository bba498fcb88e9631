"""Encoders and decoders, known by name without importing PyTorch.

An encoder is built as `cls(image_shape, outputs, …)` and maps images (batch, channels, height, width) to
(batch, outputs). A decoder is built as `cls(inputs, image_shape, …)` and maps (batch, inputs) to one number for each
pixel and channel. Both get those of `width`, `kernels` and `depth` that their constructors name. A decoder with a
method `hidden(z)`, which lists the feature maps before its last layer, also works with the Hessian penalty.
"""

import inspect
from typing import Any

from lddr.parts import Part
from lddr.parts import decoders as decoders
from lddr.parts import encoders as encoders


def build(part: Part, first: Any, second: Any, **settings: Any) -> Any:
    """Return the network, with those of the settings that its constructor has."""
    known = inspect.signature(part.cls).parameters
    return part.cls(first, second, **{name: value for name, value in settings.items() if name in known})
