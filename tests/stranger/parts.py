"""Parts that lddr does not know: a latent, an objective with a discriminator, a likelihood, two networks, a metric, a
selector, a dataset and a figure. They are in this one file, and no other names them.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch
from torch import nn

from lddr.data.dataset import Dataset, datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.latents import latents
from lddr.latents.latent import Latent, Posterior, Sample
from lddr.likelihoods import Likelihood, likelihoods
from lddr.metrics.metric import Result, metric
from lddr.networks import decoders, encoders
from lddr.objectives import objectives
from lddr.objectives.objective import AdversarialObjective
from lddr.report.exhibits import Drawn, figures
from lddr.selection.selector import selector
from lddr.settings import Setting


@latents.register("stairs")
class Stairs(Latent):
    """A number rounded to one of a few steps, whose height is learned; it has no supervision."""

    title = "staircase"
    is_discrete = True
    prior_variance = 1.0

    def __init__(
        self,
        num_latents: Annotated[int, Setting("How many latents.", at_least=1)] = 10,
        num_stairs: Annotated[int, Setting("How many steps a latent has.", at_least=2)] = 5,
    ) -> None:
        super().__init__(num_latents, parameters_per_latent=1)
        self.height = nn.Parameter(torch.ones(()))
        self.register_buffer("stairs", torch.linspace(-1, 1, num_stairs))
        self.register_buffer("active", torch.ones(num_latents, num_stairs, dtype=torch.bool))

    def posterior(self, parameters):
        return StairsPosterior(self.height * parameters[..., 0].tanh(), self.values())

    def noise(self, batch, generator=None, device=None):
        return torch.randn(batch, self.num_latents, generator=generator, device=device)

    def values(self):
        return (self.height * self.stairs).expand(self.num_latents, -1)


class StairsPosterior(Posterior):
    """N(mean, 0.1²), and the probability of every step by its distance from the mean."""

    def __init__(self, mean, values):
        self.mean, self.variance, self.kl = mean, torch.full_like(mean, 0.01), mean.square() / 2
        self.parameters = (-10 * (mean.unsqueeze(2) - values).square()).softmax(2)
        self.nearest = values.gather(1, self.categories.T).T

    def sample(self, noise=None, scale=1.0, hard=None):
        noise = torch.randn_like(self.mean) if noise is None else noise
        return self.rounded(self.mean + 0.1 * scale * noise, hard)

    def expected(self, hard=None):
        return self.rounded(self.mean, hard)

    def rounded(self, z, hard):
        return Sample(z + (self.nearest - z).detach() if hard else z)

    def cross_log_density(self, sample):
        return -50 * (sample.z[:, None] - self.mean).square()


@objectives.register("guess")
class Guess(AdversarialObjective):
    """KL + the score of a critic that tells codes from noise by a single layer."""

    grid = {"critic_weight": (1, 2)}  # noqa: RUF012
    discriminator_learning_rate = 1e-3

    def __init__(self, critic_weight: Annotated[float, Setting("Weight of the critic.", at_least=0)] = 1.0) -> None:
        super().__init__()
        self.critic_weight = critic_weight

    def build_discriminator(self, inputs):
        return nn.Sequential(nn.Linear(inputs, 1))

    def draw(self, latent, batch, generator=None):
        return torch.randn(batch, latent.width, generator=generator)

    def negatives(self, samples, random):
        return random

    def score(self, logits):
        return logits.mean()

    def classification_loss(self, logits, negative_logits):
        return negative_logits.mean() - logits.mean() + logits.square().mean()

    def adversarial_penalties(self, output, score):
        return {"kl": output.posterior.mean_kl, "critic": self.critic_weight * score}


@likelihoods.register("cosh")
class Cosh(Likelihood):
    """-log p = sharpness · log cosh(x - output), up to a constant: quadratic near 0, absolute far away."""

    title = "log cosh"

    def __init__(self, sharpness_of_pixels: Annotated[float, Setting("Weight of the error.", above=0)] = 50.0) -> None:
        super().__init__()
        self.sharpness = sharpness_of_pixels

    def pixels(self, outputs, images):
        return self.sharpness * (images - outputs).cosh().log()

    def mean(self, outputs):
        return outputs.clamp(0, 1)

    def outputs_of(self, pixels):
        return pixels


@encoders.register("flat")
class FlatEncoder(nn.Sequential):
    """One hidden layer."""

    def __init__(self, image_shape, outputs, width=32):
        height, across, channels = image_shape
        hidden = nn.Linear(height * across * channels, 8 * width)
        super().__init__(nn.Flatten(), hidden, nn.ReLU(), nn.Linear(8 * width, outputs))


@decoders.register("flat")
class FlatDecoder(nn.Sequential):
    """One hidden layer."""

    def __init__(self, inputs, image_shape, width=32):
        height, across, channels = image_shape
        pixels = nn.Linear(8 * width, height * across * channels)
        super().__init__(nn.Linear(inputs, 8 * width), nn.ReLU(), pixels, nn.Unflatten(1, (channels, height, across)))


@datasets.register("stripes")
class Stripes(Dataset):
    """A horizontal stripe: where, and how bright."""

    name, title, origin = "stripes", "Stripes", "drawn"
    space = FactorGrid((Factor("row", 14), Factor("brightness", 4)))
    image_shape = (16, 16, 1)

    def __init__(self, resolution: int = 16) -> None:
        pass

    def images(self, indices, generator=None):
        rows, levels = self.space.factors_of(indices).T
        pictures = np.zeros((len(rows), 16, 16, 1), np.uint8)
        for picture, row, level in zip(pictures, rows, levels, strict=True):
            picture[row : row + 3] = 60 + 60 * level
        return pictures


@metric("spread", "Spread", parts={"samples": 100})
def spread(codes, scale: float = 1.0) -> Result:
    """How far the codes lie apart."""
    return Result(float(scale * np.asarray(codes).std()), settings={"samples": len(codes)})


@selector("widest", "largest spread of the codes", "higher", "scores")
def widest(candidates):
    return [run.number("spread") or "has no spread" for run in candidates.runs]


@figures.add("spreads", "How far the codes lie apart", 1)
def spreads(groups):
    from matplotlib.figure import Figure

    figure = Figure()
    figure.subplots().plot([run.number("spread") or 0 for group in groups for run in group.runs])
    return Drawn(figure, "A line through the spreads.")
