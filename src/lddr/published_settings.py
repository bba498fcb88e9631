"""Published settings of other discrete models: their training, and the weights of their losses.

Their reconstruction loss is a mean over pixels and channels, ours is a sum: it is scaled so that their other weights
apply unchanged. The networks are ours, initialised so that quantised codes train (docs/dark-images.md): the output bias
is the images' mean brightness, since otherwise all codes collapse to one value within 50 steps on dark images, and
the weights use the authors' initialisation, or torch's on `circles`.
"""

from typing import Any

from lddr.config import Training
from lddr.data import height_and_width
from lddr.data.dataset import datasets
from lddr.models import Model

LATENTS = ("fsq", "quantised", "codebook")
TRIPOD: dict[str, Any] = {"learning_rate": 2e-4, "steps": 250_000}
# The learning rate reaches its minimum after 50,000 steps, and rises again. FactorQVAE stops there: 100,000 steps of
# two optimizers, which the authors' trainer adds up, are 50,000 of each.
QVAE: dict[str, Any] = {"learning_rate": 1e-3, "schedule": "cosine", "num_latents": 12}
TRAINING: dict[tuple[str, str], dict[str, Any]] = {  # by latent and objective
    ("fsq", "autoencoder"): TRIPOD,
    ("fsq", "tripod"): TRIPOD,
    ("quantised", "autoencoder"): {
        "learning_rate": 1e-3,
        "batch_size": 128,
        "steps": 200_000,
        "clip_of": "weights",
    },
    ("codebook", "elbo"): QVAE | {"batch_size": 256, "steps": 100_000, "schedule_steps": 50_000},
    ("codebook", "factor"): QVAE
    | {
        "batch_size": 512,
        "steps": 50_000,
        "discriminator_layers": 5,
        "discriminator_slope": 0.2,
        "discriminator_learning_rate": 1e-3,
        "discriminator_schedule": "model",
        "discriminator_beta1": 0.9,
        "discriminator_beta2": 0.999,
    },
}


def published_training(model: Model, dataset: str = "") -> dict[str, Any]:
    """Return the published number of steps, optimizer settings and number of latents; empty for other models.

    All of them have twice as many latents as there are factors.
    """
    settings = TRAINING.get((model.latent, model.objective), {})
    factors = len(datasets[dataset].space.factors) if dataset in datasets else 0
    return settings | {"num_latents": 2 * factors} if settings and factors else settings


def published_weights(
    model: Model, dataset: str, resolution: int | str | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """Return the initialisation, clipping and weight decay, and the published loss weights for images of this size.

    FactorQVAE adds 10⁻³ of the mean KL of a latent and 10⁻⁴ of the total correlation to a mean over pixels (MPI3D:
    5 · 10⁻⁵ and 10⁻⁶): here, all terms are divided by the weight of a latent's KL.
    """
    if model.latent not in LATENTS:
        return {}
    height, width, channels = datasets[dataset].image_shape if dataset in datasets else (64, 64, 3)
    if resolution is not None:
        height, width = height_and_width(resolution)
    values, is_mpi3d = height * width * channels, dataset.startswith("mpi3d")
    initial = {
        "initialiser": "uniform" if dataset == "circles" else "truncated",
        "mean_bias": True,
        "min_contrast": 0.0,
    }
    match model.latent, model.objective:
        case "fsq", "autoencoder" | "tripod":
            information, hessian = (1e-8, 1e-4) if is_mpi3d else (1e-4, 1e-2)
            penalties = {"kl_weight": 0.0, "multi_information_weight": information, "hessian_weight": hessian}
            return initial | penalties | {"clip": 1.0, "reconstruction_weight": 1 / values}
        case "quantised", objective:
            weight = 0.001 if dataset == "dsprites" else 0.01
            if objective == "autoencoder":
                initial |= {"clip": 1.0, "weight_decay": 0.1, "reconstruction_weight": 1 / values}
            else:  # relative to a reconstruction that is a sum
                weight = (
                    weight * values * settings.get("reconstruction_weight", Training.reconstruction_weight)
                )  # in this order: same bits
            return initial | {"quantisation_weight": weight, "commitment_weight": weight}
        case "codebook", "elbo" | "factor":
            latents = settings.get("num_latents", model.family.rules["num_latents"].default)
            inverse, ratio = (20_000, 50) if is_mpi3d else (1000, 10)  # 1 / the KL's weight; KL's over TC's weight
            return initial | {"reconstruction_weight": inverse * latents / values, "gamma": latents / ratio}
    return initial
