"""Presets: the paper's settings, and two for a laptop: quick at 32x32, and standard at the paper's 64x64."""

from typing import Any

from lddr.data import height_and_width, within
from lddr.data.dataset import datasets
from lddr.errors import UserError, hint
from lddr.models import Model
from lddr.published_settings import published_training, published_weights

PAPER: dict[str, dict[str, Any]] = {"circles": {"num_latents": 2, "decoder": "broadcast"}}

# Small networks and a large learning rate that decays, so that fewer steps are needed. The output bias starts at the
# mean brightness: without it, the latents of discrete models saturate within a hundred steps on dark or light images.
# Torch's initial weights are used where they help (docs/dark-images.md). With ten latents on `rooms`, three encode the
# red, green and blue of each hue: as many latents as factors are better there.
# With networks of width 16, a discriminator of width 1,000 would take four fifths of the time.
FAST = {"learning_rate": 1e-3, "schedule": "cosine", "mean_bias": True, "discriminator_width": 256}
SHORT = FAST | {"width": 16, "initialiser": "uniform"}
SMALL = SHORT | {"resolution": 32}
QUICK: dict[str, dict[str, Any]] = {
    "circles": PAPER["circles"] | FAST | {"resolution": 32, "width": 4, "steps": 2_000},
    "dsprites": SMALL | {"steps": 10_000},
    "rooms": SMALL | {"num_latents": 6, "noise_end": 1.0, "steps": 10_000},
}
# Quick, on a user's own images; every dataset of the paper has a contrast above 500 nats at 64x64.
OWN = SMALL | {"num_latents": 6, "steps": 4_000, "min_contrast": 300.0}
ELSEWHERE = SHORT | {"steps": 10_000}  # quick, on a dataset without settings of its own
SAME_SETTINGS = {"color_dsprites": "dsprites", "noisy_dsprites": "dsprites"}
PAPERS_RESOLUTION = 64
# Quick's settings at the paper's resolution, with smaller batches (results/README.md).
STANDARD = {"resolution": PAPERS_RESOLUTION, "width": 16, "batch_size": 32, "steps": 12_000}
PRESETS = ("paper", "quick", "standard")


def preset_settings(
    preset: str,
    model: Model,
    dataset: str,
    resolution: int | str | None = None,
    num_latents: int | None = None,
    own_size: int | str | None = None,
    supervised_factors: int | None = None,
) -> dict[str, Any]:
    """Return what a preset changes from the defaults; the caller drops settings that the model does not have.

    `resolution` and `num_latents` are those that were asked for; `own_size` is the size of a user's own images, which
    are not enlarged; `supervised_factors` is the number of factors whose labels train. Small images keep the paper's
    balance: a reconstruction is a sum over pixels, of which they have fewer. Other discrete models have published
    settings with a balance of their own.
    """
    name = SAME_SETTINGS.get(dataset, dataset)
    if preset not in PRESETS:
        raise UserError(f"unknown preset {preset!r}; {hint(preset, PRESETS)}there are: {', '.join(PRESETS)}")
    asked: dict[str, Any] = {} if num_latents is None else {"num_latents": num_latents}
    asked |= {} if name in datasets else {"fit": "pad"}
    if preset == "paper":
        if resolution is None and own_size not in (None, PAPERS_RESOLUTION):
            resolution = asked["resolution"] = own_size
        settings = published_training(model, dataset) | PAPER.get(name, {}) | asked
        return settings | published_weights(model, dataset, resolution, settings)
    if supervised_factors and num_latents is None:  # latents without a factor repeat the others: results/few_labels
        asked["num_latents"] = supervised_factors
    settings = QUICK.get(name, ELSEWHERE if name in datasets else OWN) | (STANDARD if preset == "standard" else {})
    size = resolution or settings.get("resolution", PAPERS_RESOLUTION)
    if resolution is None and own_size is not None:
        size = asked["resolution"] = within(own_size, settings.get("resolution", PAPERS_RESOLUTION))
    height, width = height_and_width(size)
    settings = settings | asked | {"reconstruction_weight": PAPERS_RESOLUTION / height * (PAPERS_RESOLUTION / width)}
    return settings | published_weights(model, dataset, size, settings)
