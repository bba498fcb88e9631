"""Modularity: a latent informs of one factor only; explicitness: a linear map finds it (Ridgeway & Mozer 2018)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.information import (
    Floats,
    Whole,
    checked,
    checked_parts,
    discretised,
    histogram_facts,
    mutual_information_matrix,
)
from lddr.metrics.metric import Count, NotNegative, Progress, Result, UndefinedError, fit_in_parallel, metric
from lddr.metrics.probe import probabilities, standardised

ROUNDING = 1e-12  # nats: less than this is rounding error, not information


@dataclass(frozen=True)
class ModularityResult(Result):
    """The mean, the modularity of every latent, and their mutual information (latents, factors) in nats."""

    per_latent: tuple[float, ...]
    mutual_information: Floats


@metric("modularity", "Modularity", parts={"samples": 10_000})
def modularity(codes: ArrayLike, factors: ArrayLike, num_bins: Count = 20) -> ModularityResult:
    """A latent tells of one factor only: 1 - Σ I² of the others / (I² of the best · (F - 1)), mean over latents.

    F counts the factors that vary. A latent without any information counts as 0, as published; with F = 1 there is no
    other factor, and an informative latent counts as 1. Noise does not score 0: its spurious I have a maximum, too.
    """
    values, truth = checked(codes, factors)
    information = mutual_information_matrix(discretised(values, num_bins), truth)
    per_latent = modularities(information[:, np.ptp(truth, axis=0) > 0])
    return ModularityResult(
        float(per_latent.mean()), tuple(per_latent.tolist()), information, settings=histogram_facts(values)
    )


def modularities(information: Floats) -> Floats:
    """(latents, factors) → (latents)."""
    squares = np.where(information > ROUNDING, information, 0.0) ** 2
    best = squares.max(axis=1, initial=0.0)
    others = max(squares.shape[1] - 1, 1)
    deviation = np.divide(squares.sum(axis=1) - best, best * others, out=np.ones_like(best), where=best > 0)
    return 1 - deviation


@dataclass(frozen=True)
class ExplicitnessResult(Result):
    """2·AUC - 1, mean over the factors that vary, that of every factor (0 for a constant one), and the mean AUC."""

    per_factor: tuple[float, ...]
    area: float


@metric("explicitness", "Explicitness", seconds=2, parts={"train": 10_000, "test": 5_000})
def explicitness(
    codes_train: ArrayLike,
    factors_train: ArrayLike,
    codes_test: ArrayLike,
    factors_test: ArrayLike,
    regularisation: NotNegative = 1.0,
    iterations: Count = 100,
    progress: Progress | None = None,
) -> ExplicitnessResult:
    """2·AUC - 1 of linear classifiers of each value of a factor against the others, mean over values and factors.

    The scores come from one multinomial logistic regression per factor on the standardised codes, as in
    disentanglement_lib. Its code and the authors' report the AUC itself, for which chance is ½: that is `area`; on the
    scale of `score` chance is 0 (Carbonneau et al. 2022). A value missing from the training set scores at chance.
    """
    train, truth, test, asked = checked_parts(codes_train, factors_train, codes_test, factors_test)
    scaled = standardised(train, test)
    tasks = [(*scaled, left, right, regularisation, iterations) for left, right in zip(truth.T, asked.T, strict=True)]
    areas = fit_in_parallel(_area, tasks, [len(np.unique(column)) for column in truth.T], progress)
    defined = [area for area in areas if area is not None]
    if not defined:
        raise UndefinedError("explicitness needs a factor that varies, and none of them does in the test sample")
    area = float(np.mean(defined))
    per_factor = tuple(0.0 if found is None else 2 * found - 1 for found in areas)
    return ExplicitnessResult(2 * area - 1, per_factor, area, settings={"train": len(train), "test": len(test)})


def _area(
    train: Floats, test: Floats, factor: Whole, asked: Whole, regularisation: float, iterations: int
) -> float | None:
    """Return the mean area under the ROC curve over the values in the test sample; None if there is only one."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    values = np.unique(asked)
    if len(values) < 2:
        return None
    model = LogisticRegression(C=1 / regularisation if regularisation else np.inf, max_iter=iterations)
    found = probabilities(model, train, factor, test, values)
    return float(np.mean([roc_auc_score(asked == value, found[:, place]) for place, value in enumerate(values)]))
