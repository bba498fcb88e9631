"""A training step of pythae's VAE with the paper's networks, by pythae's trainer; runs in pythae's environment."""

import tempfile
from collections.abc import Callable
from itertools import cycle

import numpy as np
import torch
from pythae.data.datasets import BaseDataset, DatasetOutput
from pythae.models import VAE, VAEConfig
from pythae.models.base.base_utils import ModelOutput
from pythae.models.nn import BaseDecoder, BaseEncoder
from pythae.trainers import BaseTrainer, BaseTrainerConfig
from pythae.trainers.training_callbacks import CallbackHandler, TrainingCallback
from torch import Tensor, nn


class Encoder(BaseEncoder):
    """The paper's encoder, images → mean and log variance of each latent."""

    def __init__(self, latents: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Conv2d(1, 32, 4, 2, 1), nn.ReLU(), nn.Conv2d(32, 32, 4, 2, 1), nn.ReLU()),
            *(nn.Conv2d(32, 64, 4, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 4, 2, 1), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 2 * latents)),
        )

    def forward(self, x: Tensor) -> ModelOutput:
        mean, log_variance = self.layers(x).chunk(2, dim=1)
        return ModelOutput(embedding=mean, log_covariance=log_variance)


class Decoder(BaseDecoder):
    """The paper's decoder, latents → pixels in [0, 1], as pythae expects them."""

    def __init__(self, latents: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.Linear(latents, 256), nn.ReLU(), nn.Linear(256, 1024), nn.ReLU(), nn.Unflatten(1, (64, 4, 4))),
            *(nn.ConvTranspose2d(64, 64, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(64, 32, 4, 2, 1), nn.ReLU()),
            *(nn.ConvTranspose2d(32, 32, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Sigmoid()),
        )

    def forward(self, z: Tensor) -> ModelOutput:
        return ModelOutput(reconstruction=self.layers(z))


class ReadyBatches(list):
    """Batches in memory in place of a DataLoader, whose dataset pythae asks for."""

    dataset: BaseDataset


def prepared(file: str) -> Callable[[], float]:
    """Return a function that takes a training step on the next batch (images, height, width, 1) and gives its loss."""
    batches = [torch.from_numpy(batch).permute(0, 3, 1, 2).contiguous() for batch in np.load(file)]
    config = VAEConfig(input_dim=(1, 64, 64), latent_dim=10, reconstruction_loss="bce")
    images = BaseDataset(batches[0], torch.zeros(len(batches[0])))
    training = BaseTrainerConfig(
        output_dir=tempfile.gettempdir(), per_device_train_batch_size=len(images), learning_rate=1e-4, no_cuda=True
    )
    trainer = BaseTrainer(VAE(config, Encoder(10), Decoder(10)), images, training_config=training)
    trainer.set_optimizer()
    trainer.callback_handler = CallbackHandler([TrainingCallback()], trainer.model)  # without its progress bar
    ready = cycle([DatasetOutput(data=batch) for batch in batches])

    def step() -> float:
        trainer.train_loader = ReadyBatches([next(ready)])
        trainer.train_loader.dataset = images
        return trainer.train_step(1)  # an epoch of this one batch

    return step
