"""The variational autoencoder: encoder → latents → decoder, whatever each of them is."""

import torch
from torch import Tensor, nn

from lddr.config import Networks
from lddr.latents.family import Latent, LatentFamily
from lddr.networks.coders import BroadcastDecoder, Decoder, Encoder, initialise
from lddr.networks.latent_layer import LatentLayer

DARKEST = 1e-3  # brightness that a picture begins with: its logit is finite
DECODERS: dict[str, type[Decoder | BroadcastDecoder]] = {"deconvolution": Decoder, "broadcast": BroadcastDecoder}


class VAE(nn.Module):
    """Images are (batch, channels, height, width) in [0, 1], channels last in memory; the decoder gives logits."""

    def __init__(self, image_shape: tuple[int, int, int], family: LatentFamily, networks: Networks) -> None:
        super().__init__()
        outputs = family.num_latents * family.outputs_per_latent
        self.initialiser = networks.initialiser
        self.family = LatentLayer(family)
        self.encoder = Encoder(image_shape, outputs, networks.width, networks.kernels)
        self.decoder = DECODERS[networks.decoder](family.num_latents, image_shape, networks.width)

    def initialise(self, generator: torch.Generator) -> "VAE":
        """Draw all weights anew."""
        initialise(self, generator, self.initialiser)
        self.family.initialise(generator)
        return self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @torch.no_grad()
    def begin_at(self, brightness: Tensor) -> None:
        """Let pictures begin at this brightness of every channel, (channels,), whatever the latents are."""
        bias = self.decoder.last.bias
        assert isinstance(bias, Tensor)
        bias.copy_(brightness.logit(eps=DARKEST))

    def encode(
        self, images: Tensor, noise: Tensor | None = None, scale: float | Tensor = 0.0, hard: bool | None = None
    ) -> Latent:
        return self.family(self.encoder(images), noise, scale, hard)

    def forward(
        self, images: Tensor, noise: Tensor | None = None, scale: float | Tensor = 0.0
    ) -> tuple[Tensor, Latent]:
        """Logits of the reconstruction, (batch, channels, height, width), and the latents behind it."""
        latent = self.encode(images, noise, scale)
        return self.decoder(latent.z), latent
