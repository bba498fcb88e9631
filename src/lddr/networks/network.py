"""The registries of encoders and decoders, and how a network of either is built. Free of torch until one is built.

A plug-in registers a class of its own, whose docstring describes it:

    @encoders.register("mine")
    class MyEncoder(nn.Module):
        def __init__(self, image_shape, outputs, width=32): ...

An encoder maps images (batch, channels, height, width) to (batch, outputs). A decoder is built with
`(inputs, image_shape)` and maps latents (batch, inputs) to the logits of the images. The layer that gives the pixels is
its `last`, whose bias is (channels,), and `hidden(latents)` lists the feature maps before that layer.
"""

from __future__ import annotations

from importlib import import_module
from inspect import getdoc, isclass, signature
from typing import TYPE_CHECKING, Any, NamedTuple

from lddr.registry import Registry

if TYPE_CHECKING:
    from torch import nn

    from lddr.networks.levels import ImageShape


class BuiltIn(NamedTuple):
    """A network of this package, known before the module that defines it, and torch with it, is imported."""

    module: str
    name: str
    summary: str


Network = BuiltIn | type  # of an nn.Module


def _admit(name: str, network: Network) -> None:
    if not isinstance(network, BuiltIn) and not isclass(network):
        raise TypeError(f"the network {name!r} must be registered as a class, not as {type(network).__name__}")


encoders: Registry[Network] = Registry("encoder", homes=(), admit=_admit)
decoders: Registry[Network] = Registry("decoder", homes=(), admit=_admit)

for _registry, _name, _network in (
    (encoders, "convolution", BuiltIn("coders", "Encoder", "Stride-2 convolutions; the paper's.")),
    (encoders, "residual", BuiltIn("residual", "ResidualEncoder", "Residual blocks per level; for colour images.")),
    (decoders, "deconvolution", BuiltIn("coders", "Decoder", "Transposed convolutions; the paper's.")),
    (decoders, "broadcast", BuiltIn("coders", "BroadcastDecoder", "Spatial broadcast; the paper's for circles.")),
    (decoders, "residual", BuiltIn("residual", "ResidualDecoder", "Residual blocks per level; for colour images.")),
):
    _registry.register(_name)(_network)


def describe(network: Network) -> str:
    """One line about a registered network."""
    return network.summary if isinstance(network, BuiltIn) else (getdoc(network) or "").partition("\n")[0]


def build_encoder(name: str, image_shape: ImageShape, outputs: int, **settings: Any) -> nn.Module:
    """A new encoder of this name, with those of the settings (width, kernels, depth) that its constructor names."""
    return _build(encoders[name], image_shape, outputs, settings=settings)


def build_decoder(name: str, inputs: int, image_shape: ImageShape, **settings: Any) -> nn.Module:
    """A new decoder of this name, with those of the settings (width, depth) that its constructor names."""
    return _build(decoders[name], inputs, image_shape, settings=settings)


def _build(network: Network, *sizes: Any, settings: dict[str, Any]) -> nn.Module:
    cls = (
        getattr(import_module(f"{__package__}.{network.module}"), network.name)
        if isinstance(network, BuiltIn)
        else network
    )
    named = signature(cls).parameters
    return cls(*sizes, **{key: value for key, value in settings.items() if key in named})
