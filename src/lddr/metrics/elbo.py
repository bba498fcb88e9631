"""The evidence lower bound (ELBO) of a trained model, from samples of its posteriors and without noise."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lddr.data.dataset import Dataset, as_floats, stream
from lddr.metrics.metric import Count, Progress, Result, metric

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.trained import Trained
    from lddr.vae import VAE

Sampling = Literal["training", "posterior"]
BATCHES, BATCH_SIZE, DRAWS = 16, 64, 4


@dataclass(frozen=True)
class ElboResult(Result):
    """The ELBO in nats per image, and what it is made of: ELBO = -reconstruction - KL."""

    reconstruction: float  # of samples
    kl: float
    noiseless: float  # the same with the reconstruction of codes without noise, which is no bound


@metric("elbo", "ELBO", seconds=10)
def elbo(
    trained: "Trained",
    dataset: Dataset,
    seed: int,
    batches: Count = BATCHES,
    batch_size: Count = BATCH_SIZE,
    draws: Count = DRAWS,
    sampling: Sampling = "training",
    progress: Progress | None = None,
) -> ElboResult:
    """Evidence lower bound in nats per image, from samples of the posteriors; no labels are needed.

    "training" samples as the last training step does, so that the score continues the ELBO of the training log. For
    Gaussian latents it is a lower bound of log p(x), up to the sampling error. The samples of categorical latents are
    relaxed (softmax(log α + scale · g), with the scale at the end of the noise schedule) while the KL is that of the
    categories: usually below log p(x), but not guaranteed to be. "posterior" samples the posterior itself, that is one
    category for each discrete latent, which gives a lower bound of log p(x) for every model, up to the sampling error.
    """
    found = bounds(
        trained.vae, trained.config.training.steps, dataset, seed, batches, batch_size, draws, sampling, progress
    )
    sampled, noiseless, kl = found["elbo"], found["elbo_noiseless"], found["kl"]
    return ElboResult(sampled, reconstruction=-sampled - kl, kl=kl, noiseless=noiseless)


def bounds(
    vae: "VAE",
    steps: int,
    dataset: Dataset,
    seed: int = 0,
    batches: int = BATCHES,
    batch_size: int = BATCH_SIZE,
    draws: int = DRAWS,
    sampling: Sampling = "training",
    progress: Progress | None = None,
) -> dict[str, float]:
    """Scores of a model after its `steps` of training, in nats per image; images and noise depend on the seed alone.

    "elbo" is that of samples, "elbo_noiseless" = -reconstruction - KL that of codes without noise, as in the
    straight-through gap. "mean_picture" is the reconstruction error of the mean of these images, and "explained" the
    share of what it costs more than a perfect copy that this model saves: 0 for a model that has learned nothing, 1
    for a perfect copy. "active_latents" encode something, "saturated_latents" give all images the same category.
    """
    import torch

    from lddr.training.batches import as_tensor, torch_stream
    from lddr.training.collapse import latent_use
    from lddr.vae import evaluating

    latent, likelihood, device = vae.latent, vae.likelihood, next(vae.parameters()).device
    scale, hard = (latent.noise_scale(steps, steps), None) if sampling == "training" else (1.0, True)
    sums, shown = torch.zeros(3, dtype=torch.float64), []
    for number in range(batches):
        here = as_tensor(as_floats(dataset.draw(stream(seed, "evaluation", number), batch_size)), torch.device("cpu"))
        generator = torch_stream(seed, "evaluation noise", number)
        noise = torch.stack([latent.noise(batch_size, generator) for _ in range(draws)])
        images = here.to(device)
        with torch.no_grad(), evaluating(vae):
            posterior = vae.encode(images)
            outputs = vae.decoder(posterior.expected().z)
            errors = likelihood(outputs, images), posterior.mean_kl
            sampled = sampled_errors(vae, images, noise.to(device), scale, hard).mean()
        sums += torch.stack([*errors, sampled]).cpu().double()
        shown.append(here)
        if progress is not None:
            progress(1 / batches)
    reconstruction, kl, sampled_error = (sums / batches).tolist()
    everything = torch.cat(shown)
    trivial, contrast = likelihood.of_mean(everything.to(device)), likelihood.contrast(everything.to(device))
    use = latent_use(vae, everything.to(device))
    return {
        "elbo": -sampled_error - kl,
        "elbo_noiseless": -reconstruction - kl,
        "reconstruction": reconstruction,
        "kl": kl,
        "mean_picture": trivial,
        "explained": (trivial - reconstruction) / contrast if contrast else 0.0,
        "active_latents": use.active,
        "saturated_latents": use.saturated,
    }


def sampled_errors(vae: "VAE", images: "Tensor", noise: "Tensor", scale: float, hard: bool | None = None) -> "Tensor":
    """Reconstruction errors of samples made of noise (draws, images, …), in nats: (draws, images)."""
    import torch

    posterior = vae.encode(images)
    outputs = (vae.decoder(posterior.rsample(each, scale, hard)) for each in noise)
    return torch.stack([vae.likelihood.per_image(each, images) for each in outputs])
