import subprocess
import sys

import pytest
import torch
from torch import nn

from lddr.errors import UserError
from lddr.networks import build, decoders, encoders
from lddr.networks.coders import BroadcastDecoder, Decoder, Encoder
from lddr.networks.residual import ResidualDecoder, ResidualEncoder
from lddr.parts import Parts

SETTINGS = {"width": 4, "kernels": (4, 2), "depth": 2}
SHAPE = (16, 12, 3)


def test_names_need_no_torch():
    code = (
        "import sys\nfrom lddr.networks import decoders, encoders\n"
        "print(*encoders, '|', *decoders)\nprint('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["convolution residual | broadcast deconvolution residual", "False"]


@pytest.mark.parametrize(("name", "cls"), [("convolution", Encoder), ("residual", ResidualEncoder)])
def test_encoders_are_built_by_name_with_the_settings_they_have(name, cls):
    encoder = build(encoders[name], SHAPE, 6, **SETTINGS)
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
def test_decoders_are_built_by_name_with_the_settings_they_have(name, cls):
    decoder = build(decoders[name], 5, SHAPE, **SETTINGS)
    assert type(decoder) is cls
    assert decoder(torch.randn(2, 5)).shape == (2, 3, 16, 12)
    assert len(decoder.hidden(torch.randn(2, 5))) >= 2
    assert decoder.last.bias.shape == (3,)


def test_a_class_from_elsewhere_is_registered_and_built():
    own = Parts("encoder", "lddr.networks")

    @own.register("mine")
    class Mine(nn.Linear):
        """Nothing but a matrix."""

        def __init__(self, image_shape, outputs, depth=7):
            super().__init__(image_shape[0], outputs)
            self.depth = depth

    built = Mine(SHAPE, 6, depth=2)
    assert (type(built), built.in_features, built.out_features, built.depth) == (Mine, 16, 6, 2)
    assert "mine" in own
    assert "mine" not in encoders


def test_unknown_names_are_refused():
    with pytest.raises(UserError, match="unknown encoder 'residul'; did you mean 'residual'"):
        encoders["residul"]
    with pytest.raises(UserError, match="unknown decoder"):
        decoders["convolution"]
