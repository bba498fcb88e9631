"""Posterior collapse: latents that encode nothing, counted on a few images, and a warning that names the remedy."""

from dataclasses import dataclass

import torch

from lddr.config import Config
from lddr.console import say
from lddr.data.dataset import Dataset, as_floats, stream
from lddr.training.batches import as_tensor
from lddr.vae import VAE, evaluating

IMAGES = 256
ACTIVE_VARIANCE = 0.01  # of the codes of a latent that is in use
ONE_CATEGORY = 0.999  # share of the images, and mean probability, from which on a latent is saturated
SATURATION_STEP, INACTIVITY_STEP = 300, 1_000  # before these, latents may still be on their way
LAST_LOOK = 5_000  # steps


@dataclass(frozen=True)
class LatentUse:
    """How many latents a model has, and how many of them encode something about the images."""

    latents: int
    active: int  # their codes differ between images
    saturated: int  # certain of one category, the same for every image: no gradient comes back


@torch.no_grad()
def latent_use(vae: VAE, images: torch.Tensor) -> LatentUse:
    """The latents in use on these images, (images, channels, height, width), without noise."""
    with evaluating(vae):
        posterior = vae.encode(images)
    active = int((posterior.mean.var(0, correction=0) > ACTIVE_VARIANCE).sum())
    saturated = 0
    if vae.latent.is_discrete:
        probabilities = posterior.parameters.mean(0)  # (latents, values): 1 only if all agree
        saturated = int((probabilities.amax(1) > ONE_CATEGORY).sum())
    return LatentUse(posterior.mean.shape[1], active, saturated)


class CollapseWatch:
    """Looks at the latents after a line of the log, and warns once when none of them encodes anything."""

    def __init__(self, vae: VAE, dataset: Dataset, config: Config) -> None:
        self._vae, self._config, self._warned = vae, config, False
        drawn = dataset.draw(stream(0, "collapse"), IMAGES)
        self._images = as_tensor(as_floats(drawn), next(vae.parameters()).device)

    def look(self, step: int) -> None:
        if self._warned or not SATURATION_STEP <= step <= LAST_LOOK:
            return
        use = latent_use(self._vae, self._images)
        if use.active == 0 and (use.saturated or step >= INACTIVITY_STEP):
            say(warning(step, use, self._config))
            self._warned = True


def warning(step: int, use: LatentUse, config: Config) -> str:
    """What is wrong with the latents at this step, and what to try."""
    if use.saturated:
        what = f"{use.saturated} of {use.latents} latents put every image into one category and get no gradient"
        slower = f"--learning-rate {config.training.learning_rate / 3:.2g}"
        remedy = slower if config.networks.mean_bias else "--mean-bias"
    else:
        what = "no latent encodes anything about the images: the KL costs more than a code would gain"
        remedy = "--min-contrast 300" if not config.training.min_contrast else "a smaller weight of the penalties"
    return f"warning: after {step:,} steps {what}; stop this run and start it again with {remedy}"
