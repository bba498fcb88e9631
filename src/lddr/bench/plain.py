"""The usual way to train a D-VAE or FactorDVAE in PyTorch, for comparison: plain layers, plain Adam, a DataLoader."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

from lddr.data.dataset import Dataset, stream
from lddr.hardware import CPU

LATENTS, CATEGORIES, BATCH, HELD = 10, 64, 64, 4096


def plain_networks(channels: int) -> tuple[nn.Sequential, nn.Sequential]:
    """The paper's encoder and decoder at 64x64, as written down."""
    encoder = nn.Sequential(
        *(nn.Conv2d(channels, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU()),
        *(nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 4, 2, 1), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, LATENTS * CATEGORIES)),
    )
    decoder = nn.Sequential(
        *(nn.Linear(LATENTS, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU(), nn.Unflatten(1, (64, 4, 4))),
        *(nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU()),
        *(nn.ConvTranspose2d(32, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, channels, 4, 2, 1)),
    )
    return encoder, decoder


def plain_discriminator() -> nn.Sequential:
    hidden = [layer for _ in range(5) for layer in (nn.Linear(1000, 1000), nn.LeakyReLU(0.01))]
    return nn.Sequential(nn.Linear(LATENTS, 1000), nn.LeakyReLU(0.01), *hidden, nn.Linear(1000, 2))


class PlainTraining:
    """One training step after the other, of a D-VAE or, with a discriminator, of a FactorDVAE."""

    def __init__(self, dataset: Dataset, factor: bool, device: torch.device = CPU) -> None:
        self.device = device
        self.encoder, self.decoder = (network.to(device) for network in plain_networks(dataset.image_shape[2]))
        self.adam = torch.optim.Adam([*self.encoder.parameters(), *self.decoder.parameters()], 1e-4)
        self.positions = torch.linspace(-1, 1, CATEGORIES, device=device)
        self.discriminator = plain_discriminator().to(device) if factor else None
        if self.discriminator is not None:
            self.referee = torch.optim.Adam(self.discriminator.parameters(), 1e-4, betas=(0.5, 0.9))
        self._batches = _endless(dataset)

    def step(self) -> None:
        images = next(self._batches).to(self.device)
        logits = self.encoder(images).view(-1, LATENTS, CATEGORIES)
        gumbel = -torch.log(-torch.log(torch.rand_like(logits).clamp(1e-20, 1 - 1e-7)))
        z = torch.softmax(logits + gumbel, dim=2) @ self.positions
        reconstruction = functional.binary_cross_entropy_with_logits(self.decoder(z), images, reduction="sum") / BATCH
        probabilities = torch.softmax(logits, dim=2)
        log_probabilities = torch.log_softmax(logits, dim=2)
        kl = (probabilities * (log_probabilities + np.log(CATEGORIES))).sum((1, 2)).mean()
        loss = reconstruction + kl
        if self.discriminator is not None:
            verdict = self.discriminator(z)
            loss = loss + 10 * (verdict[:, 0] - verdict[:, 1]).mean()
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        if self.discriminator is not None:
            self._referee_step(self.discriminator, z.detach())

    def _referee_step(self, discriminator: nn.Module, z: Tensor) -> None:
        permuted = torch.stack([column[torch.randperm(len(column), device=z.device)] for column in z.T], dim=1)
        zeros, ones = (torch.full((BATCH,), value, device=z.device) for value in (0, 1))
        real, fake = discriminator(z), discriminator(permuted)
        loss = 0.5 * (functional.cross_entropy(real, zeros) + functional.cross_entropy(fake, ones))
        self.referee.zero_grad()
        loss.backward()
        self.referee.step()


class _PerImage(torch.utils.data.Dataset):
    """All images in one array, looked up and converted one by one."""

    def __init__(self, dataset: Dataset) -> None:
        self.images = np.ascontiguousarray(dataset.images(dataset.space.sample(stream(0, "held"), HELD)))

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Tensor:
        return torch.from_numpy(self.images[index].astype(np.float32) / 255).permute(2, 0, 1)


def _endless(dataset: Dataset) -> Iterator[Tensor]:
    loader = DataLoader(_PerImage(dataset), batch_size=BATCH, shuffle=True)
    while True:
        yield from loader
