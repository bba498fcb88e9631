"""FactorVAE score: does the latent that varies least tell which factor is held? (Kim & Mnih 2018)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.data.factors import FactorSpace
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole, checked
from lddr.metrics.interventions import held_samples, holdable, points_per_factor, sharing, summarised
from lddr.metrics.metric import Draws, Metric, Result, Sample, metrics


@dataclass(frozen=True)
class FactorVaeResult(Result):
    """The accuracy on test and on training votes, the training votes (latents, factors), and how many latents vary."""

    train_accuracy: float
    votes: Whole
    active_latents: int


def factor_vae_score(
    variances: ArrayLike,
    variances_train: ArrayLike,
    held_train: ArrayLike,
    variances_test: ArrayLike,
    held_test: ArrayLike,
    min_std: float = 0.05,
    num_factors: int | None = None,
) -> FactorVaeResult:
    """Test accuracy of the majority vote: each latent stands for the factor that it won most training votes of.

    `variances` (latents,) are those over the whole dataset; `variances_train` and `variances_test` (votes, latents)
    those over images that share the factor `held` (votes,). A vote goes to the latent with the smallest ratio of the
    two, among those whose standard deviation over the dataset is at least `min_std`; the score is 0 where there is
    none.
    """
    train, train_labels = checked(variances_train, np.reshape(held_train, (-1, 1)))
    test, test_labels = checked(variances_test, np.reshape(held_test, (-1, 1)))
    scale = np.asarray(variances, np.float64)  # (latents,)
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
    settings = {"train_votes": len(train), "test_votes": len(test), "min_std": min_std}
    score, train_accuracy = majority_accuracy(votes, test_votes), majority_accuracy(votes, votes)
    return FactorVaeResult(score, train_accuracy, votes, int(active.sum()), settings=settings)


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


def variance(codes: Floats) -> Floats:
    """Unbiased variance over images: (…, images, latents) → (…, latents)."""
    if codes.shape[-2] < 2:
        raise UserError("a variance needs two images or more; raise the number of images of the FactorVAE score")
    return codes.var(axis=-2, ddof=1)


@metrics.register("factor_vae")
@dataclass(frozen=True)
class FactorVae(Metric):
    """The FactorVAE score, from groups of images that share a factor, whose number is in the name of the part."""

    title = "FactorVAE"
    needs = "interventions"
    samples: int = 10_000
    train_votes: int = 10_000
    test_votes: int = 5_000
    images: int = 64
    min_std: float = 0.05

    def draw(self, space: FactorSpace, generator: np.random.Generator) -> Draws:
        factors = holdable(space, at_least=2)
        groups = {
            f"{part} {factor}": sharing(space, generator, factor, (count,), together=self.images)
            for part, votes in (("train", self.train_votes), ("test", self.test_votes))
            for factor, count in points_per_factor(generator, factors, votes).items()
        }
        return {"sample": space.sample(generator, self.samples), **groups}

    def score(self, samples: Mapping[str, Sample]) -> FactorVaeResult:
        sample = samples["sample"]
        values, factors = checked(sample.codes, sample.factors)
        train, test = (summarised(held_samples(samples, part), variance) for part in ("train", "test"))
        result = factor_vae_score(variance(values), *train, *test, self.min_std, factors.shape[1])
        return replace(result, settings=result.settings | {"samples": len(sample), "images": self.images})
