import subprocess
import sys

import pytest
import torch
from torch import nn

from lddr.errors import UserError
from lddr.networks import network
from lddr.networks.coders import BroadcastDecoder, Decoder, Encoder
from lddr.networks.network import build_decoder, build_encoder, decoders, describe, encoders
from lddr.networks.residual import ResidualDecoder, ResidualEncoder
from lddr.registry import Registry

SETTINGS = {"width": 4, "kernels": (4, 2), "depth": 2}
SHAPE = (16, 12, 3)


def test_names_and_descriptions_need_no_torch():
    code = (
        "import sys\nfrom lddr.networks.network import decoders, describe, encoders\n"
        "print(*encoders, '|', *decoders)\n"
        "assert all(describe(known[name]).endswith('.') for known in (encoders, decoders) for name in known)\n"
        "print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["convolution residual | broadcast deconvolution residual", "False"]


@pytest.mark.parametrize(("name", "cls"), [("convolution", Encoder), ("residual", ResidualEncoder)])
def test_encoders_are_built_by_name_with_the_settings_they_know(name, cls):
    encoder = build_encoder(name, SHAPE, 6, **SETTINGS)
    assert type(encoder) is cls
    assert encoder(torch.rand(2, 3, 16, 12)).shape == (2, 6)
    assert encoder.head[0].out_features == 8 * 4
    if cls is Encoder:
        assert [layer.kernel_size for layer in encoder.convolutions] == [(4, 4), (2, 2)]
    else:
        assert [len(level) for level in encoder.levels] == [1 + 2, 1 + 2]


@pytest.mark.parametrize(
    ("name", "cls"), [("deconvolution", Decoder), ("broadcast", BroadcastDecoder), ("residual", ResidualDecoder)]
)
def test_decoders_are_built_by_name_with_the_settings_they_know(name, cls):
    decoder = build_decoder(name, 5, SHAPE, **SETTINGS)
    assert type(decoder) is cls
    assert decoder(torch.randn(2, 5)).shape == (2, 3, 16, 12)
    assert len(decoder.hidden(torch.randn(2, 5))) >= 2
    assert decoder.last.bias.shape == (3,)


def test_without_settings_the_constructors_defaults_hold():
    assert build_encoder("convolution", SHAPE, 6).head[0].out_features == 8 * 32


def test_a_class_of_ones_own_is_registered_described_and_built(monkeypatch):
    own = Registry("encoder", homes=())
    monkeypatch.setattr(network, "encoders", own)

    @own.register("mine")
    class Mine(nn.Linear):
        """Nothing but a matrix.

        More about it.
        """

        def __init__(self, image_shape, outputs, depth=7):
            super().__init__(image_shape[0], outputs)
            self.depth = depth

    assert describe(own["mine"]) == "Nothing but a matrix."
    built = build_encoder("mine", SHAPE, 6, **SETTINGS)
    assert (type(built), built.in_features, built.out_features, built.depth) == (Mine, 16, 6, 2)


def test_unknown_names_and_things_that_are_no_class_are_refused():
    with pytest.raises(UserError, match="unknown encoder 'residul'; did you mean 'residual'"):
        build_encoder("residul", SHAPE, 6)
    with pytest.raises(UserError, match="unknown decoder"):
        build_decoder("convolution", 5, SHAPE)
    with pytest.raises(TypeError, match="must be registered as a class"):
        encoders.register("mine")(nn.Identity())
    assert "mine" not in encoders
    assert "mine" not in decoders
