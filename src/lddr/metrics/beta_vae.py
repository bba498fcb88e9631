"""BetaVAE score: can a linear classifier tell which factor pairs of images share? (Higgins et al. 2017)."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.factors import FactorSpace
from lddr.metrics.information import Floats, Whole, checked
from lddr.metrics.interventions import held_samples, holdable, points_per_factor, sharing, summarised
from lddr.metrics.metric import Draws, Metric, Result, Sample, UndefinedError, metrics


@dataclass(frozen=True)
class BetaVaeResult(Result):
    """The accuracy on test points and on training points, and whether the classifier came to rest."""

    train_accuracy: float
    converged: bool


def beta_vae_score(
    differences_train: ArrayLike,
    held_train: ArrayLike,
    differences_test: ArrayLike,
    held_test: ArrayLike,
    max_iterations: int = 10_000,
) -> BetaVaeResult:
    """Test accuracy of a logistic regression from differences (points, latents) to the factors held (points,).

    A point is the mean over pairs of images that share one factor: mean |code of one - code of the other|. The
    classifier is scikit-learn's default (L2 with C = 1), which leaves nothing to chance. Its loss has one minimum, so
    that more iterations than the default of 100 only make sure that it is reached; `converged` is false where latents
    differ so much in scale (ten thousand times and more) that even these are too few.
    """
    train, train_labels = checked(differences_train, np.reshape(held_train, (-1, 1)))
    test, test_labels = checked(differences_test, np.reshape(held_test, (-1, 1)))
    if len(np.unique(train_labels)) < 2:
        raise UndefinedError("the BetaVAE score tells factors apart, but all training points hold the same one")
    predict, converged = _fitted(train, train_labels[:, 0], max_iterations)
    accuracies = [float((predict(x) == y[:, 0]).mean()) for x, y in ((test, test_labels), (train, train_labels))]
    settings = {"train_points": len(train), "test_points": len(test), "max_iterations": max_iterations}
    return BetaVaeResult(accuracies[0], accuracies[1], converged, settings=settings)


def _fitted(points: Floats, labels: Whole, max_iterations: int) -> tuple[Callable[[Floats], Whole], bool]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    classifier = LogisticRegression(max_iter=max_iterations, random_state=0)
    with warnings.catch_warnings(record=True) as complaints:
        warnings.simplefilter("always", ConvergenceWarning)  # told in the result instead
        classifier.fit(points, labels)
    return classifier.predict, not any(issubclass(one.category, ConvergenceWarning) for one in complaints)


def mean_difference(pairs: Floats) -> Floats:
    """Mean absolute difference: (points, pairs, 2, latents) → (points, latents)."""
    return np.abs(pairs[:, :, 0] - pairs[:, :, 1]).mean(axis=1)


@metrics.register("beta_vae")
@dataclass(frozen=True)
class BetaVae(Metric):
    """The BetaVAE score, from pairs of images that share a factor.

    Draws hold image numbers only, so that the factor held is in the name of the part: "train 3" holds factor 3.
    """

    title = "BetaVAE"
    needs = "interventions"
    train_points: int = 10_000
    test_points: int = 5_000
    pairs: int = 64
    max_iterations: int = 10_000

    def draw(self, space: FactorSpace, generator: np.random.Generator) -> Draws:
        factors = holdable(space, at_least=2)
        return {
            f"{part} {factor}": sharing(space, generator, factor, (count, self.pairs), together=2)
            for part, points in (("train", self.train_points), ("test", self.test_points))
            for factor, count in points_per_factor(generator, factors, points).items()
        }

    def score(self, samples: Mapping[str, Sample]) -> BetaVaeResult:
        train, test = (summarised(held_samples(samples, part), mean_difference) for part in ("train", "test"))
        result = beta_vae_score(*train, *test, max_iterations=self.max_iterations)
        return replace(result, settings=result.settings | {"pairs": self.pairs})
