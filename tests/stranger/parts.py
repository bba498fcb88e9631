"""Parts that lddr does not know: a latent family, an objective with an adversary, a metric, a selector, a dataset and a
figure. They are in this one file, and no other names them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from lddr.latents.family import Latent, LatentFamily, latents
from lddr.objectives.adversary import Adversary
from torch import nn

from lddr.data.dataset import Dataset, datasets
from lddr.data.factors import Factor, FactorGrid
from lddr.metrics.metric import Result, metric
from lddr.objectives.objective import Objective, mean_kl, objectives
from lddr.report.figures.figure import Drawn, figures
from lddr.selection.selector import selector
from lddr.settings import setting


@latents.register("stairs")
@dataclass(frozen=True)
class Stairs(LatentFamily):
    """A number rounded to one of a few steps, whose height is learned; it knows no supervision."""

    title = "staircase"
    is_discrete = True
    outputs_per_latent = 1
    prior_variance = 1.0

    num_stairs: int = setting(5, "How many steps a latent has.", at_least=2)

    def weights(self):
        return {"height": torch.ones(())}

    def constants(self):
        return {"stairs": torch.linspace(-1, 1, self.num_stairs)}

    def noise(self, batch, generator):
        return torch.randn(batch, self.num_latents, generator=generator)

    def latent(self, layer, outputs, noise, scale, hard):
        mean = layer.height * outputs[..., 0].tanh()
        noisy = mean if noise is None else mean + 0.1 * scale * noise
        distances = (mean[..., None] - layer.height * layer.stairs).square()
        log_probabilities = (-10 * distances).log_softmax(-1)
        nearest = self.values(layer).gather(1, log_probabilities.argmax(-1).T).T
        z = noisy + (nearest - noisy).detach() if hard else noisy
        return Latent(z, mean, lambda: torch.full_like(mean, 0.01), mean.square() / 2, log_probabilities, z)

    def cross_log_density(self, layer, latent):
        return -50 * (latent.z[:, None] - latent.mean).square()

    def posterior(self, latent):
        return latent.parameters.exp()

    def values(self, layer):
        return (layer.height * layer.stairs).expand(self.num_latents, -1)


class Guess(Adversary):
    """Tells codes from noise by a single layer."""

    def verdict(self, outputs):
        return outputs.mean()

    def draw(self, shape, generator):
        return torch.randn(shape, generator=generator)

    def rivals(self, codes, drawn):
        return drawn

    def loss(self, outputs, rivals):
        return rivals.mean() - outputs.mean() + outputs.square().mean()


@objectives.register("guess")
@dataclass(frozen=True)
class GuessObjective(Objective):
    """KL + a critic's verdict."""

    grid = {"critic_weight": (1, 2)}  # noqa: RUF012
    critic_weight: float = setting(1.0, "Weight of the critic.", at_least=0)

    def penalties(self, latent, moment):
        return {"kl": mean_kl(latent), "critic": self.critic_weight * moment.verdict(latent)}

    def adversary(self, inputs):
        return Guess(nn.Sequential(nn.Linear(inputs, 1)), 1e-3)


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
