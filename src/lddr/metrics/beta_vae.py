"""BetaVAE score: can a linear classifier tell which factor pairs of images share? (Higgins et al. 2017)."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.factors import FactorSpace
from lddr.metrics.information import Floats, Whole, checked, in_column
from lddr.metrics.interventions import held_draws, summarised
from lddr.metrics.metric import Result, Samples, UndefinedError, metric
from lddr.metrics.samples import Draws
from lddr.metrics.signature import Count


def drawn_pairs(
    space: FactorSpace,
    generator: np.random.Generator,
    train_points: Count = 10_000,
    test_points: Count = 5_000,
    pairs: Count = 64,
) -> Draws:
    """Pairs of images that share a factor."""
    points = {"train": train_points, "test": test_points}
    return held_draws(space, generator, points, (pairs,), together=2)


def mean_difference(pairs: Floats) -> Floats:
    """Mean absolute difference: (points, pairs, 2, latents) → (points, latents)."""
    return np.abs(pairs[:, :, 0] - pairs[:, :, 1]).mean(axis=1)


def differences(samples: Samples) -> list[Any]:
    """The mean differences of the pairs that were drawn, and the factor held in each."""
    return [given for part in ("train", "test") for given in summarised(samples, part, mean_difference)]


@dataclass(frozen=True)
class BetaVaeResult(Result):
    """The accuracy on test points and on training points, and whether the classifier came to rest."""

    train_accuracy: float
    converged: bool


@metric("beta_vae", "BetaVAE", seconds=2, draw=drawn_pairs, inputs=differences)
def beta_vae_score(
    differences_train: ArrayLike,
    held_train: ArrayLike,
    differences_test: ArrayLike,
    held_test: ArrayLike,
    max_iterations: Count = 10_000,
) -> BetaVaeResult:
    """Accuracy of telling which factor pairs of images share, from the mean difference of their codes.

    A point (latents,) is the mean over pairs that share one factor: mean |code of one - code of the other|. The
    classifier is scikit-learn's default (L2 with C = 1), which leaves nothing to chance. Its loss has one minimum, so
    that more iterations than the default of 100 only make sure that it is reached; `converged` is false where latents
    differ so much in scale (ten thousand times and more) that even these are too few.
    """
    train, train_labels = checked(differences_train, in_column(held_train))
    test, test_labels = checked(differences_test, in_column(held_test))
    if len(np.unique(train_labels)) < 2:
        raise UndefinedError("the BetaVAE score tells factors apart, but all training points hold the same one")
    predict, converged = _fitted(train, train_labels[:, 0], max_iterations)
    accuracies = [float((predict(x) == y[:, 0]).mean()) for x, y in ((test, test_labels), (train, train_labels))]
    sizes = {"train_points": len(train), "test_points": len(test)}
    return BetaVaeResult(accuracies[0], accuracies[1], converged, settings=sizes)


def _fitted(points: Floats, labels: Whole, max_iterations: int) -> tuple[Callable[[Floats], Whole], bool]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    classifier = LogisticRegression(max_iter=max_iterations, random_state=0)
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always", ConvergenceWarning)  # told in the result instead
        classifier.fit(points, labels)
    return classifier.predict, not any(issubclass(one.category, ConvergenceWarning) for one in complaints)
