"""Objectives: modules from the output of a VAE to a loss, with a discriminator if they need one.

`objectives` knows all of them by name without importing PyTorch; `lddr.objectives.TotalCorrelation` and the other
classes are imported when they are first used. All are called in the same way:

>>> import lddr, torch
>>> latent = lddr.latents.Gaussian(num_latents=2)
>>> encoder = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, latent.num_parameters))
>>> decoder = torch.nn.Sequential(torch.nn.Linear(latent.width, 64), torch.nn.Unflatten(1, (1, 8, 8)))
>>> vae, images = lddr.VAE(encoder, decoder, latent), torch.rand(5, 1, 8, 8)
>>> for objective in (lddr.objectives.Elbo(), lddr.objectives.TotalCorrelation(beta=6), lddr.objectives.DipII()):
...     print(*objective(vae(images), images).terms)
loss elbo reconstruction kl
loss elbo reconstruction kl total_correlation
loss elbo reconstruction kl covariance
"""

from typing import Any

from lddr.parts import objectives as objectives


def __getattr__(name: str) -> Any:
    return objectives.class_named(name)
