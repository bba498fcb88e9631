"""Published settings of the D-VAE's discrete peers: their training, and the weights of their losses.

Their reconstruction loss is a mean over pixels and channels, ours is a sum: it is scaled so that their other weights
apply unchanged. The networks are ours, initialised so that quantised codes train (docs/training.md): the output bias
is the images' mean brightness, since otherwise all codes collapse to one value within 50 steps on dark images, and
the weights use the authors' initialisation, or torch's on `circles`.
"""

from typing import Any

from lddr.data import height_and_width
from lddr.data.dataset import datasets
from lddr.models import Model

Point = tuple[str, str]  # latent, objective
FAMILIES = ("fsq", "quantised", "codebook")
TRIPOD: dict[str, Any] = {"learning_rate": 2e-4, "steps": 250_000}
QLAE = {"learning_rate": 1e-3, "batch_size": 128, "steps": 200_000, "clip_of": "weights"}
# The learning rate reaches its minimum after 50,000 steps, and rises again. FactorQVAE stops there: 100,000 steps of
# two optimizers, which the authors' trainer adds up, are 50,000 of each.
QVAE = {"learning_rate": 1e-3, "schedule": "cosine", "num_latents": 12}
QVAE_ALONE = QVAE | {"batch_size": 256, "steps": 100_000, "schedule_steps": 50_000}
FACTOR_QVAE = QVAE | {
    "batch_size": 512,
    "steps": 50_000,
    "discriminator_layers": 5,
    "discriminator_slope": 0.2,
    "discriminator_learning_rate": 1e-3,
    "discriminator_schedule": "model",
    "discriminator_beta1": 0.9,
    "discriminator_beta2": 0.999,
}
TRAINING: dict[Point, dict[str, Any]] = {
    ("fsq", "autoencoder"): TRIPOD,
    ("fsq", "tripod"): TRIPOD,
    ("quantised", "autoencoder"): QLAE,
    ("codebook", "elbo"): QVAE_ALONE,
    ("codebook", "factor"): FACTOR_QVAE,
}
CLIP, DECAY = {"clip": 1.0}, {"weight_decay": 0.1}
QUANTISATION, ON_DSPRITES = 0.01, 0.001  # weights of QLAE's two losses
ON_SHAPES3D = {"kl_weight": 0.0, "multi_information_weight": 1e-4, "hessian_weight": 1e-2}
ON_MPI3D = {"kl_weight": 0.0, "multi_information_weight": 1e-8, "hessian_weight": 1e-4}
USUAL_LATENTS, USUAL_SHAPE = 10, (64, 64, 3)


def peers_training(model: Model, dataset: str = "") -> dict[str, Any]:
    """Return a peer's number of steps, optimizer settings and number of latents; empty for other points of the grid.

    All of them have twice as many latents as there are factors.
    """
    settings = TRAINING.get((model.latent, model.objective), {})
    factors = len(datasets[dataset].space.factors) if dataset in datasets else 0
    return settings | {"num_latents": 2 * factors} if settings and factors else settings


def peers_balance(model: Model, dataset: str, resolution: int | str | None, settings: dict[str, Any]) -> dict[str, Any]:
    """Return a peer's initialisation, clipping and weight decay, and its loss weights for images of this size."""
    if model.latent not in FAMILIES:
        return {}
    height, width, channels = datasets[dataset].image_shape if dataset in datasets else USUAL_SHAPE
    if resolution is not None:
        height, width = height_and_width(resolution)
    begin = {"initialiser": "uniform" if dataset == "circles" else "truncated", "mean_bias": True, "min_contrast": 0.0}
    return begin | _balance(model, dataset, height * width * channels, settings)


def _balance(model: Model, dataset: str, numbers: int, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the loss weights for images with this many values.

    FactorQVAE adds 10⁻³ of the mean KL of a latent and 10⁻⁴ of the total correlation to a mean over pixels (MPI3D:
    5 · 10⁻⁵ and 10⁻⁶): here, all terms are divided by the weight of a latent's KL.
    """
    weight = ON_DSPRITES if dataset == "dsprites" else QUANTISATION
    latents, is_mpi3d = settings.get("num_latents", USUAL_LATENTS), dataset.startswith("mpi3d")
    match model.latent, model.objective:
        case "fsq", "autoencoder" | "tripod":
            penalties = ON_MPI3D if is_mpi3d else ON_SHAPES3D
            return CLIP | penalties | {"reconstruction_weight": 1 / numbers}
        case "quantised", "autoencoder":
            return CLIP | DECAY | _quantisation(weight) | {"reconstruction_weight": 1 / numbers}
        case "quantised", _:  # relative to a reconstruction that is a sum
            return _quantisation(weight * numbers * settings.get("reconstruction_weight", 1.0))
        case "codebook", "elbo" | "factor":
            inverse, ratio = (20_000, 50) if is_mpi3d else (1000, 10)  # 1 / the KL's weight; KL's over TC's weight
            return {"reconstruction_weight": inverse * latents / numbers, "gamma": latents / ratio}
    return {}


def _quantisation(weight: float) -> dict[str, Any]:
    return {"quantisation_weight": weight, "commitment_weight": weight}
