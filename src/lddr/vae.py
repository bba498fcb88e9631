"""The variational autoencoder: encoder → latent → decoder → likelihood, whatever each of them is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from lddr.latents.latent import Latent, Posterior, Sample, Scale
from lddr.likelihoods import Likelihood
from lddr.parts import likelihoods


@dataclass(frozen=True)
class Output:
    """The output of a VAE for a batch of images, which objectives take.

    Parameters
    ----------
    reconstruction
        Outputs of the decoder, (batch, channels, height, width): logits for a Bernoulli likelihood.
    posterior, sample
        Posteriors of the images, and the sample that was decoded.
    vae
        The model.
    precision
        In which the networks were computed, if not in their own.
    """

    reconstruction: Tensor
    posterior: Posterior
    sample: Sample
    vae: VAE
    precision: torch.dtype | None = None

    @property
    def z(self) -> Tensor:
        """The decoder's input, (batch, width)."""
        return self.sample.z


class VAE(nn.Module):
    """A variational autoencoder made of ordinary modules.

    Parameters
    ----------
    encoder
        Maps images (batch, channels, height, width) in [0, 1] to (batch, latent.num_parameters).
    decoder
        Maps (batch, latent.width) to (batch, channels, height, width), one number for each pixel and channel.
    latent
        A `lddr.latents` module, or your own `Latent`.
    likelihood
        "bernoulli" (the decoder gives logits), "gaussian", "laplace", "continuous_bernoulli", or a `Likelihood`.

    Examples
    --------
    >>> import lddr, torch
    >>> from torch import nn
    >>> latent = lddr.latents.Categorical(num_latents=3, num_categories=8)
    >>> encoder = nn.Sequential(nn.Flatten(), nn.Linear(16 * 16, latent.num_parameters))
    >>> decoder = nn.Sequential(nn.Linear(latent.width, 16 * 16), nn.Unflatten(1, (1, 16, 16)))
    >>> vae = lddr.VAE(encoder, decoder, latent)
    >>> output = vae(torch.rand(5, 1, 16, 16))
    >>> output.posterior.mean.shape, output.z.shape, output.reconstruction.shape
    (torch.Size([5, 3]), torch.Size([5, 3]), torch.Size([5, 1, 16, 16]))
    """

    def __init__(
        self, encoder: nn.Module, decoder: nn.Module, latent: Latent, likelihood: str | Likelihood = "bernoulli"
    ) -> None:
        super().__init__()
        self.latent, self.encoder, self.decoder = latent, encoder, decoder
        self.likelihood: Likelihood = likelihoods[likelihood]().build() if isinstance(likelihood, str) else likelihood

    def encode(self, images: Tensor) -> Posterior:
        """Return the posterior of images (batch, channels, height, width)."""
        return self.latent(self.encoder(images))

    def decode(self, z: Tensor) -> Tensor:
        """Return the expected images, in [0, 1], of samples or embedded codes (batch, latent.width)."""
        return self.likelihood.mean(self.decoder(z))

    def forward(
        self,
        images: Tensor,
        noise: Tensor | None = None,
        scale: Scale = 1.0,
        share: Callable[[Posterior], Posterior] | None = None,
    ) -> Output:
        """Return posterior, sample and reconstruction of a batch.

        In training mode the decoder gets a sample, in eval mode without noise the expected codes.

        Parameters
        ----------
        images
            (batch, channels, height, width) in [0, 1].
        noise
            Noise of the sample (`latent.noise`); by default it comes from torch's global generator.
        scale
            Multiplies the noise.
        share
            Changes the posteriors before they are sampled: give `objective.share` of an objective for pairs of images.

        Returns
        -------
        Output
            `posterior`, `sample`, `z` and `reconstruction`, for an objective.
        """
        posterior = self.encode(images)
        posterior = posterior if share is None else share(posterior)
        is_sampled = self.training or noise is not None
        sample = posterior.sample(noise, scale) if is_sampled else posterior.expected()
        return Output(self.decoder(sample.z), posterior, sample, self)


def in_precision(network: Callable[[Tensor], Tensor], precision: torch.dtype | None) -> Callable[[Tensor], Tensor]:
    """Return the network, under autocast if a precision is given, with outputs in float32."""
    if precision is None:
        return network

    def outputs(inputs: Tensor) -> Tensor:
        with torch.autocast(inputs.device.type, precision):
            return network(inputs).float()

    return outputs


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Switch a module to eval mode and back, for layers such as dropout and batch norm."""
    was_training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(was_training)
