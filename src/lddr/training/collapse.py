"""Which latents and codes a model uses, measured on some images, and a warning about posterior collapse."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lddr import losses
from lddr.config import Config
from lddr.console import say
from lddr.data.dataset import Dataset, as_floats, stream
from lddr.latents.latent import Latent
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
    codes: dict[str, Any] = field(default_factory=dict)  # `code_usage` of discrete latents


@torch.no_grad()
def latent_use(vae: VAE, images: Tensor) -> LatentUse:
    """Return the latents in use on these images, (images, channels, height, width), without noise."""
    with evaluating(vae):
        posterior = vae.encode(images)
    count, active = posterior.mean.shape[1], int((posterior.mean.var(0, correction=0) > ACTIVE_VARIANCE).sum())
    if not vae.latent.is_discrete:
        return LatentUse(count, active, saturated=0)
    probabilities = posterior.parameters.mean(0)  # (latents, values): 1 only if all agree
    saturated = int((probabilities.amax(1) > ONE_CATEGORY).sum())
    return LatentUse(count, active, saturated, code_usage(vae.latent, posterior.categories))


def code_usage(latent: Latent, categories: Tensor) -> dict[str, Any]:  # (images, latents)
    """Return how many of a discrete latent's categories these images use, for each latent and in all.

    A category is used if it is the most probable one of an image, and dead if it is active and not used. "perplexity"
    and "used" are means over latents, "dead" is a sum; "dead_entries" are those of a codebook that no latent uses.
    """
    counts = losses.category_counts(categories, latent.active.shape[1])
    perplexity, used = losses.perplexity(counts), (counts > 0).sum(1)
    dead = (latent.active & (counts == 0)).sum(1)
    usage = {
        "perplexity": perplexity.mean().item(),
        "used": used.double().mean().item(),
        "dead": int(dead.sum()),
        "perplexity_per_latent": [round(each, 4) for each in perplexity.tolist()],
        "used_per_latent": used.tolist(),
        "dead_per_latent": dead.tolist(),
    }
    entries = latent.codebook_counts(counts)
    return usage if entries is None else usage | {"dead_entries": int((entries == 0).sum())}


class CollapseWatch:
    """Check the latents after a line of the log, and warn once when none of them encodes anything."""

    def __init__(self, vae: VAE, dataset: Dataset, config: Config) -> None:
        self._vae, self._config, self._warned = vae, config, False
        drawn = dataset.draw(stream(0, "collapse"), IMAGES)
        self._images = as_tensor(as_floats(drawn), next(vae.parameters()).device)

    def look(self, step: int) -> None:
        if self._warned or not SATURATION_STEP <= step <= LAST_LOOK:
            return
        use = latent_use(self._vae, self._images)
        if use.active == 0 and (use.saturated or step >= INACTIVITY_STEP):
            say(collapse_warning(step, use, self._config))
            self._warned = True


def collapse_warning(step: int, use: LatentUse, config: Config) -> str:
    """Return what is wrong with the latents at this step, and what to try."""
    if use.saturated:
        what = f"{use.saturated} of {use.latents} latents put every image into one category and get no gradient"
        slower = f"--learning-rate {config.training.learning_rate / 3:.2g}"
        remedy = slower if config.networks.mean_bias else "--mean-bias"
    else:
        what = "no latent encodes anything about the images: the KL costs more than a code would gain"
        remedy = "--min-contrast 300" if not config.training.min_contrast else "a smaller weight of the penalties"
    return f"warning: after {step:,} steps {what}; stop this run and start it again with {remedy}"
