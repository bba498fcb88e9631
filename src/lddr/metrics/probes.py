"""Probes: the classifiers and regressions of scikit-learn that predict factors from codes."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lddr.metrics.information import Floats, Whole
from lddr.metrics.metric import Progress, UndefinedError, reporting

T = TypeVar("T")


def fitted(model: Any, codes: Any, labels: NDArray) -> Any:
    """Fit a classifier or regression of scikit-learn; its number of iterations is published, or a setting."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(codes, labels)


def score_on_test(model: Any, codes: Floats, labels: NDArray, codes_test: Floats, labels_test: NDArray) -> float:
    """Return the score of a model of scikit-learn on the test sample: the accuracy, or R² of a regression."""
    from sklearn.base import clone

    return float(fitted(clone(model), codes, labels).score(codes_test, labels_test))


def varying_factors(factors: Whole, needs: str) -> Whole:
    """Return the columns with more than one value; `needs` begins the error if there is none: "SAP needs"."""
    varies = np.flatnonzero(np.ptp(factors, axis=0) > 0)
    if not len(varies):
        raise UndefinedError(f"{needs} a factor with more than one value among the train samples")
    return varies


def standardised(train: Floats, test: Floats) -> tuple[Floats, Floats]:
    """Scale both samples to mean 0 and variance 1 in the first; a latent that is constant there becomes 0 there."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(train)
    return scaler.transform(train), scaler.transform(test)


def fit_in_parallel(
    fit: Callable[..., T], tasks: Iterable[Sequence[Any]], costs: Sequence[float], progress: Progress | None = None
) -> list[T]:
    """Return `fit(*task)` for every task, in order; `progress` is called with each finished task's share of `costs`."""
    from joblib import Parallel, delayed

    total = sum(costs) or 1.0
    fits = Parallel(return_as="generator")(delayed(_on_one_thread)(fit, *task) for task in tasks)
    return list(reporting(fits, [cost / total for cost in costs], progress))


def _on_one_thread(fit: Callable[..., T], *task: Any) -> T:
    """Fit with one thread: otherwise, the last digits of sums would depend on the number of threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return fit(*task)
