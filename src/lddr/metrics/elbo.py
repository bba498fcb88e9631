"""The evidence lower bound (ELBO) of a trained model, and its straight-through gap (paper, §3.3)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from lddr.data.dataset import Dataset, Images, as_floats, stream
from lddr.errors import UserError
from lddr.metrics.information import Floats
from lddr.metrics.metric import Count, Progress, Result, UndefinedError, metric, reporting
from lddr.statistics import bootstrap_interval

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.latents.latent import Posterior, Sample
    from lddr.trained import Trained
    from lddr.vae import VAE

    Penalty = Callable[[Posterior, Sample], Tensor]  # what the training loss adds to reconstruction and KL, ()

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

    Parameters
    ----------
    trained, dataset : Trained, Dataset
        The model, and the images that it is scored with.
    seed : int
        Decides which images are sampled.
    batches, batch_size : int
        How many images are encoded.
    draws : int
        Samples of each posterior.
    sampling : {"training", "posterior"}
        How they are sampled.
    progress : callable, optional
        Called with the share of the work that has just been finished.

    Returns
    -------
    ElboResult
        The score, `reconstruction`, `kl`, and the ELBO of codes without noise as `noiseless`.

    Examples
    --------
    >>> import lddr
    >>> trained = lddr.Trained.load("circles-dvae")
    >>> found = lddr.metrics.elbo(trained, lddr.load_dataset("circles", 32), 0, batches=1)
    >>> found.score < found.noiseless < 0
    True
    """
    steps = trained.config.training.steps
    found = bounds(trained.vae, steps, dataset, seed, batches, batch_size, draws, sampling, progress)
    elbo, kl = found["elbo"], found["kl"]
    return ElboResult(elbo, -elbo - kl, kl, found["elbo_noiseless"])


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
) -> dict[str, Any]:
    """Return scores of a model after `steps` of training, in nats per image; the seed decides images and noise.

    "elbo" is that of samples, "elbo_noiseless" = -reconstruction - KL that of codes without noise, as in the
    straight-through gap. "mean_picture" is the reconstruction error of the mean of these images, and "explained" the
    share of what it costs more than a perfect copy that this model saves: 0 for a model that has learned nothing, 1
    for a perfect copy. "active_latents" encode something, "saturated_latents" give all images the same category.
    Discrete models also have "codes": `lddr.training.collapse.code_usage`.
    """
    import torch

    from lddr.training.batches import as_tensor, torch_stream
    from lddr.training.collapse import latent_use
    from lddr.vae import evaluating

    latent, likelihood, device = vae.latent, vae.likelihood, next(vae.parameters()).device
    scale, hard = (latent.noise_scale(steps, steps), None) if sampling == "training" else (1.0, True)
    sums, shown = torch.zeros(3, dtype=torch.float64), []
    for number in reporting(range(batches), [1 / batches] * batches, progress):
        here = as_tensor(as_floats(dataset.draw(stream(seed, "evaluation", number), batch_size)), torch.device("cpu"))
        generator = torch_stream(seed, "evaluation noise", number)
        noise = torch.stack([latent.noise(batch_size, generator) for _ in range(draws)])
        images = here.to(device)
        with torch.no_grad(), evaluating(vae):
            posterior = vae.encode(images)
            outputs = vae.decoder(posterior.expected().z)
            errors = likelihood(outputs, images), posterior.mean_kl
            drawn = (vae.decoder(posterior.rsample(each, scale, hard)) for each in noise.to(device))
            sampled = torch.stack([likelihood.per_image(each, images) for each in drawn]).mean()
        sums += torch.stack([*errors, sampled]).cpu().double()
        shown.append(here)
    reconstruction, kl, sampled_error = (sums / batches).tolist()
    everything = torch.cat(shown).to(device)
    trivial, contrast, use = (
        likelihood.of_mean(everything),
        likelihood.contrast(everything),
        latent_use(vae, everything),
    )
    return {
        "elbo": -sampled_error - kl,
        "elbo_noiseless": -reconstruction - kl,
        "reconstruction": reconstruction,
        "kl": kl,
        "mean_picture": trivial,
        "explained": (trivial - reconstruction) / contrast if contrast else 0.0,
        "active_latents": use.active,
        "saturated_latents": use.saturated,
        **({"codes": use.codes} if use.codes else {}),
    }


@dataclass(frozen=True)
class GapResult(Result):
    """|soft - hard| in nats per image with its 95 % bootstrap interval over batches, and the terms it comes from.

    Soft is the noiseless model, hard the same with every latent rounded to its most probable category. Both ELBOs
    have the KL of the posterior as it is; `kl_hard` is that of the rounded posterior, which is the same for all images.
    """

    interval: tuple[float, float]
    elbo_soft: float
    elbo_hard: float
    reconstruction_soft: float
    reconstruction_hard: float
    kl_soft: float
    kl_hard: float
    penalty_soft: float  # what the loss has besides the ELBO; 0 in the paper's variant
    penalty_hard: float
    per_image: float  # the mean of the gaps of single images
    relative: float  # the gap as a share of the soft reconstruction
    confidence: float  # the largest probability of a posterior, mean over latents and images
    entropy: float  # of the posterior in nats, mean over latents and images


@metric("gap", "Gap_ST", seconds=80)
def gap(
    trained: "Trained",
    dataset: Dataset,
    seed: int,
    batches: Count = 1000,
    batch_size: Count = 64,
    variant: Literal["paper", "authors"] = "paper",
    progress: Progress | None = None,
) -> GapResult:
    """What a discrete model loses when latents are rounded: |ELBO_ST - ELBO|; "authors" compares training losses.

    The ELBO of an image that is sampled more than once is computed once, so that small datasets take seconds.

    Parameters
    ----------
    trained, dataset : Trained, Dataset
        The model, and the images that it is scored with.
    seed : int
        Decides which images are sampled.
    batches, batch_size : int
        How many images are encoded.
    variant : {"paper", "authors"}
        Compare the ELBO, or the training loss as in the authors' code.
    progress : callable, optional
        Called with the share of the work that has just been finished.

    Returns
    -------
    GapResult
        The score, its 95 % bootstrap `interval` over batches, and the terms that it comes from.

    Examples
    --------
    >>> import lddr
    >>> trained = lddr.Trained.load("circles-dvae")
    >>> found = lddr.metrics.gap(trained, lddr.load_dataset("circles", 32), 0, batches=2)
    >>> found.interval[0] <= found.score <= found.interval[1]
    True
    """
    if not trained.is_discrete:
        raise UndefinedError(f"{trained.vae.latent.title} latents have no values to round to")
    penalty, extra, places = None, 0.0, None
    if variant == "authors":
        from lddr.training.trainer import reconstruction_weight

        penalty = loss_penalty(trained)
        extra = reconstruction_weight(trained.config.training, dataset, trained.vae.likelihood) - 1
    streams = [stream(seed, "gap", number) for number in range(batches)]
    parts: Sequence[Any] = streams
    if variant == "paper" and dataset.is_fixed:  # each distinct image is encoded once
        drawn = np.stack([dataset.space.sample(generator, batch_size) for generator in streams])
        distinct, places = np.unique(drawn, return_inverse=True)
        parts = np.split(distinct, range(batch_size, len(distinct), batch_size))
    rows = []  # where the model is, read at the end
    for part in reporting(parts, [1 / len(parts)] * len(parts), progress):
        images = dataset.draw(part, batch_size) if places is None else dataset.images(part)
        rows.append(_batch(trained, images, penalty, extra))
    found = np.concatenate([row.cpu().double().numpy() for row in rows])  # (images, 7)
    return _gap_result((found if places is None else found[places]).reshape(batches, batch_size, -1), trained)


def _batch(trained: "Trained", drawn: Images, penalty: "Penalty | None", extra: float) -> "Tensor":
    """Return reconstruction and penalty, soft and hard, KL, confidence and entropy: (images, 7).

    `extra` is the weight of the reconstruction in the loss minus 1: it counts as a penalty.
    """
    import torch

    from lddr.training.batches import as_tensor

    with torch.no_grad():
        images = as_tensor(as_floats(drawn), trained.device)
        posterior = trained.vae.encode(images)
        both = [posterior.expected(hard=rounded) for rounded in (False, True)]
        columns = [trained.vae.likelihood.per_image(trained.vae.decoder(sample.z), images) for sample in both]
        columns += [
            extra * loss + (penalty(posterior, sample) if penalty else 0.0)
            for sample, loss in zip(both, columns.copy(), strict=True)
        ]
        probabilities = posterior.parameters  # (images, latents, values)
        columns += [posterior.kl.sum(1), probabilities.amax(2).mean(1)]
        columns += [torch.special.entr(probabilities).sum(2).mean(1)]
    return torch.stack(columns, dim=1)


def _gap_result(rows: Floats, trained: "Trained") -> GapResult:  # (batches, images, 7)
    soft, hard, soft_penalty, hard_penalty, kl, confidence, entropy = rows.mean((0, 1)).tolist()
    differences = rows[..., 1] + rows[..., 3] - rows[..., 0] - rows[..., 2]  # (batches, images)
    score = float(abs(differences.mean()))
    return GapResult(
        score,
        bootstrap_interval(lambda rows: abs(rows.mean(axis=1)), differences.mean(1), generator=stream(0, "bootstrap")),
        elbo_soft=-soft - kl,
        elbo_hard=-hard - kl,
        reconstruction_soft=soft,
        reconstruction_hard=hard,
        kl_soft=kl,
        kl_hard=sum(np.log(len(trained.values_of(latent))) for latent in range(trained.num_latents)),
        penalty_soft=soft_penalty,
        penalty_hard=hard_penalty,
        per_image=float(np.abs(differences).mean()),
        relative=score / soft if soft else 0.0,
        confidence=confidence,
        entropy=entropy,
    )


def loss_penalty(trained: "Trained") -> "Penalty":
    """Return the terms of the training loss other than reconstruction and KL, as at the end of the training."""
    import torch

    from lddr.objectives.objective import AdversarialObjective
    from lddr.training.batches import torch_stream
    from lddr.vae import Output

    try:
        objective = trained.objective()
    except UserError as error:
        raise UndefinedError(str(error)) from error
    vae, schedule = trained.vae, objective.schedule(trained.config.training.steps)

    def penalty(posterior: "Posterior", sample: "Sample") -> "Tensor":
        random = None
        if not isinstance(objective, AdversarialObjective):
            random = objective.draw(vae.latent, len(sample.z), torch_stream(0, "gap"))  # the same for soft and hard
        output = Output(sample.z, posterior, sample, vae)  # no penalty looks at the reconstruction
        penalties = objective.penalties(output, schedule, None if random is None else random.to(trained.device))
        penalties = penalties | vae.latent.losses(posterior, sample)
        return torch.stack([-posterior.mean_kl, *penalties.values()]).sum()

    return penalty
