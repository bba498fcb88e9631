"""The straight-through gap: what a discrete model loses when its latents are rounded to categories (paper, §3.3)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from lddr.data.dataset import Dataset, Images, as_floats, stream
from lddr.errors import UserError
from lddr.metrics.information import Floats
from lddr.metrics.metric import Count, Progress, Result, UndefinedError, metric
from lddr.statistics import bootstrap_interval

if TYPE_CHECKING:
    from torch import Tensor

    from lddr.latents.latent import Posterior, Sample
    from lddr.trained import Trained

    Penalty = Callable[[Posterior, Sample], Tensor]  # what the training loss adds to reconstruction and KL, ()


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

    Of images that are drawn more than once the ELBO is computed once, so that small datasets take seconds.
    """
    if not trained.is_discrete:
        raise UndefinedError(f"{trained.vae.latent.title} latents have no values to round to")
    if variant == "paper" and dataset.is_fixed:
        return _result(_looked_up(trained, dataset, seed, batches, batch_size, progress), trained)
    penalty, extra = None, 0.0
    if variant == "authors":
        from lddr.training.trainer import reconstruction_weight

        weight = reconstruction_weight(trained.config.training, dataset, trained.vae.likelihood)
        penalty, extra = loss_penalty(trained), weight - 1
    rows = []  # where the model is, read at the end
    for number in range(batches):
        rows.append(_batch(trained, dataset.draw(stream(seed, "gap", number), batch_size), penalty, extra))
        if progress is not None:
            progress(1 / batches)
    return _result(np.stack([row.cpu().double().numpy() for row in rows]), trained)


def _looked_up(
    trained: "Trained", dataset: Dataset, seed: int, batches: int, batch_size: int, progress: Progress | None
) -> Floats:  # (batches, images, 7)
    """The rows of all batches, from one look at each distinct image."""
    drawn = np.stack([dataset.space.sample(stream(seed, "gap", number), batch_size) for number in range(batches)])
    distinct, places = np.unique(drawn, return_inverse=True)
    rows = []  # where the model is, read at the end
    for first in range(0, len(distinct), batch_size):
        part = distinct[first : first + batch_size]
        rows.append(_batch(trained, dataset.images(part), None, 0.0))
        if progress is not None:
            progress(len(part) / len(distinct))
    return np.concatenate([row.cpu().double().numpy() for row in rows])[places.reshape(drawn.shape)]


def _batch(trained: "Trained", drawn: Images, penalty: "Penalty | None", extra: float) -> "Tensor":
    """Reconstruction and penalty, soft and hard, KL, confidence, entropy: (images, 7).

    `extra` is what the loss weighs the reconstruction with, beyond 1: it counts as a penalty.
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
        columns += [posterior.kl.sum(1), *_certainty(posterior.parameters)]
    return torch.stack(columns, dim=1)


def _result(rows: Floats, trained: "Trained") -> GapResult:  # (batches, images, 7)
    soft, hard, soft_penalty, hard_penalty, kl, confidence, entropy = rows.mean((0, 1)).tolist()
    differences = rows[..., 1] + rows[..., 3] - rows[..., 0] - rows[..., 2]  # (batches, images)
    score = float(abs(differences.mean()))
    return GapResult(
        score,
        bootstrap_interval(_size_of_mean, differences.mean(1), generator=stream(0, "bootstrap")),
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


def _size_of_mean(rows: Floats) -> Floats:
    return np.abs(rows.mean(axis=-1))


def _certainty(probabilities: "Tensor") -> list["Tensor"]:  # (batch, latents, values)
    """Largest probability and entropy of the posteriors, mean over latents: (batch,) each."""
    import torch

    return [probabilities.amax(2).mean(1), torch.special.entr(probabilities).sum(2).mean(1)]


def loss_penalty(trained: "Trained") -> "Penalty":
    """What the loss of this model's training has besides reconstruction and KL, at the end of the training."""
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
