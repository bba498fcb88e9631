"""DCI: disentanglement, completeness and informativeness from boosted trees (Eastwood & Williams 2018)."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.errors import UserError
from lddr.metrics.boosting import Fitted, Singles, boosted
from lddr.metrics.fitting import side_by_side
from lddr.metrics.information import Floats, Whole, checked_parts
from lddr.metrics.metric import Result, Tell, UndefinedError, metric
from lddr.metrics.signature import Seed

Estimator = Literal["published", "fast"]


@dataclass(frozen=True)
class DciResult(Result):
    """The disentanglement as the score; entries of factors that do not vary are 0, and no part of any mean."""

    disentanglement: float
    completeness: float
    informativeness: float  # mean accuracy on the test codes
    informativeness_train: float
    per_latent: tuple[float, ...]  # disentanglement
    per_factor: tuple[float, ...]  # completeness
    accuracies: tuple[float, ...]  # on the test codes, one per factor
    importance: Floats  # (latents, factors)


@metric("dci", "DCI", seconds=600, parts={"train": 10_000, "test": 5_000})
def dci(
    codes_train: ArrayLike,
    factors_train: ArrayLike,
    codes_test: ArrayLike,
    factors_test: ArrayLike,
    estimator: Estimator = "published",
    seed: Seed = 0,
    told: Tell | None = None,
) -> DciResult:
    """Disentanglement: 1 - entropy of the importances of a latent for boosted trees; also completeness and accuracy.

    The mean over latents is weighted by their importance.

    "published" is scikit-learn's GradientBoostingClassifier with its defaults, one per factor. "fast" is the same
    algorithm on codes that are sorted once (see `boosted`); its scores are 0.001 away on average, 0.008 at most, over
    the 20 representations of benchmarks/dci.json.
    Where there is one factor (one latent), nothing can be mixed: the entropy is 0 and the disentanglement
    (completeness) 1 of what has any importance. Codes that tell nothing score 0.
    """
    train, truth, test, truth_test = checked_parts(codes_train, factors_train, codes_test, factors_test)
    classes = np.array([len(np.unique(column)) for column in truth.T])
    varies = classes > 1
    if not varies.any():
        raise UndefinedError("DCI needs a factor with more than one value among the train samples")
    inputs = _singles(train), _singles(test)
    tasks = [(*inputs, truth[:, k], truth_test[:, k], estimator, seed) for k in np.flatnonzero(varies)]
    fits = side_by_side(_fitted, tasks, classes[varies].tolist(), told)
    importances, accuracies_train, accuracies = (np.array(column) for column in zip(*fits, strict=True))
    sizes = {"train": len(train), "test": len(test)}
    return _result(importances, accuracies_train, accuracies, varies, sizes)


def _singles(codes: Floats) -> Singles:
    """Codes in the 32 bits the trees work with."""
    if np.abs(codes).max(initial=0) > np.finfo(np.float32).max:
        raise UserError("the codes are too large for boosted trees, which work in 32 bits; scale them down")
    return codes.astype(np.float32)


def _fitted(
    train: Singles, test: Singles, labels: Whole, labels_test: Whole, estimator: Estimator, seed: int
) -> tuple[Floats, float, float]:
    """The importance of every latent for one factor, and the accuracy on the train and the test codes."""
    fit = published if estimator == "published" else boosted
    importance, predicted, predicted_test = fit(train, labels, test, seed)
    return importance, float(np.mean(predicted == labels)), float(np.mean(predicted_test == labels_test))


def _result(
    importances: Floats, train: Floats, test: Floats, varies: NDArray[np.bool_], sizes: dict[str, int]
) -> DciResult:
    """From the importances (factors that vary, latents) and the accuracies of the factors that vary."""
    per_latent, disentanglement = concentration(importances.T)
    per_factor, completeness = concentration(importances)
    return DciResult(
        disentanglement,
        disentanglement=disentanglement,
        completeness=completeness,
        informativeness=float(test.mean()),
        informativeness_train=float(train.mean()),
        per_latent=tuple(per_latent.tolist()),
        per_factor=tuple(_among_all(per_factor, varies).tolist()),
        accuracies=tuple(_among_all(test, varies).tolist()),
        importance=_among_all(importances, varies).T,
        settings=sizes,
    )


def _among_all(rows: Floats, varies: NDArray[np.bool_]) -> Floats:
    """The rows of the factors that vary in their places, and zeros for the others."""
    places = np.zeros((len(varies), *rows.shape[1:]))
    places[varies] = rows
    return places


def concentration(importance: Floats) -> tuple[Floats, float]:
    """1 - entropy of every row's shares, in units of the entropy of even shares; and its mean weighted by the rows."""
    totals = importance.sum(axis=1)
    shares = np.divide(
        importance, totals[:, np.newaxis], out=np.zeros_like(importance), where=totals[:, np.newaxis] > 0
    )
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    entropies = -(shares * logs).sum(axis=1) / np.log(max(2, importance.shape[1]))  # one column: 0, whatever the base
    rows = np.where(totals > 0, 1 - entropies, 0.0)
    return rows, float(rows @ totals / totals.sum()) if totals.any() else 0.0


def published(train: Singles, labels: Whole, test: Singles, seed: int) -> Fitted:
    """What the published scores were made with."""
    from sklearn.ensemble import GradientBoostingClassifier

    model = GradientBoostingClassifier(random_state=seed).fit(train, labels)
    with np.errstate(invalid="ignore"):
        importance = np.nan_to_num(np.abs(model.feature_importances_))  # 0/0 if no split is worth anything
    return importance, model.predict(train), model.predict(test)
