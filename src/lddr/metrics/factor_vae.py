"""FactorVAE score: does the latent that varies least tell which factor is held? (Kim & Mnih 2018)."""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.data.factors import FactorSpace
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole, as_floats, checked, in_column
from lddr.metrics.interventions import held_draws, summarised
from lddr.metrics.metric import Result, Samples, metric
from lddr.metrics.samples import Draws
from lddr.metrics.signature import Count, NotNegative

Several = Annotated[int, {"at_least": 2}]  # one has no variance

TIES = (
    "variances are in 64 bits, and the first of latents with equal ones wins; the published code has them in 32 bits, "
    "where rounding decides: up to 0.03 where two latents are constant while a factor is held"
)


def drawn_groups(
    space: FactorSpace,
    generator: np.random.Generator,
    samples: Several = 10_000,
    train_votes: Count = 10_000,
    test_votes: Count = 5_000,
    images: Several = 64,
) -> Draws:
    """Groups of images that share a factor, and a plain sample."""
    points = {"train": train_votes, "test": test_votes}
    groups = held_draws(space, generator, points, (), together=images)
    return groups | {"samples": space.sample(generator, samples)}


def variance(codes: Floats) -> Floats:
    """Unbiased variance over images: (…, images, latents) → (…, latents)."""
    return codes.var(axis=-2, ddof=1)


def variances_of(samples: Samples) -> list[Any]:
    """The variances of the sample and of the groups that were drawn, and the factor held in each."""
    values, factors = checked(samples["samples"].codes, samples["samples"].factors)
    groups = [given for part in ("train", "test") for given in summarised(samples, part, variance)]
    return [variance(values), *groups, factors.shape[1]]


@dataclass(frozen=True)
class FactorVaeResult(Result):
    """The accuracy on test and on training votes, the training votes (latents, factors), and how many latents vary."""

    train_accuracy: float
    votes: Whole
    active_latents: int
    ties: str = TIES


@metric("factor_vae", "FactorVAE", draw=drawn_groups, inputs=variances_of)
def factor_vae_score(
    variances: ArrayLike,
    variances_train: ArrayLike,
    held_train: ArrayLike,
    variances_test: ArrayLike,
    held_test: ArrayLike,
    num_factors: int | None = None,
    min_std: NotNegative = 0.05,
) -> FactorVaeResult:
    """Accuracy of a majority vote: the latent that varies least stands for the factor it won most training votes of.

    `variances` (latents,) are those over the whole dataset; `variances_train` and `variances_test` (votes, latents)
    those over images that share the factor `held` (votes,). A vote goes to the latent with the smallest ratio of the
    two, among those whose standard deviation over the dataset is at least `min_std`; the score is 0 where there is
    none.
    """
    train, train_labels = checked(variances_train, in_column(held_train))
    test, test_labels = checked(variances_test, in_column(held_test))
    scale = as_floats(variances)  # (latents,)
    if scale.shape != train.shape[1:] or train.shape[1:] != test.shape[1:]:
        raise UserError(
            f"expected the variances of as many latents everywhere, got {scale.shape}, {train.shape} and {test.shape}"
        )
    active = (np.sqrt(scale) >= min_std) & (scale > 0)
    width = num_factors or int(max(train_labels.max(), test_labels.max())) + 1
    votes, test_votes = (
        votes_won(local / np.where(active, scale, 1), labels[:, 0], active, width)
        for local, labels in ((train, train_labels), (test, test_labels))
    )
    sizes = {"train_votes": len(train), "test_votes": len(test)}
    score, train_accuracy = majority_accuracy(votes, test_votes), majority_accuracy(votes, votes)
    return FactorVaeResult(score, train_accuracy, votes, int(active.sum()), settings=sizes)


def votes_won(ratios: Floats, labels: Whole, active: NDArray[np.bool_], num_factors: int) -> Whole:
    """How often each latent had the smallest ratio (votes, latents) while each factor was held: (latents, factors)."""
    votes = np.zeros((len(active), num_factors), np.int64)
    if active.any():
        winners = np.where(active, ratios, np.inf).argmin(axis=1)
        np.add.at(votes, (winners, labels), 1)
    return votes


def majority_accuracy(votes: Whole, test_votes: Whole) -> float:
    """The share of the test votes whose factor is the one that the latent stands for by `votes`."""
    right = np.take_along_axis(test_votes, votes.argmax(axis=1)[:, None], axis=1).sum()
    return float(right / max(test_votes.sum(), 1))
