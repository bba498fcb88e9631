"""SAP: by how much the best single latent predicts a factor better than the second best does (Kumar et al. 2018)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.information import Floats, checked_parts
from lddr.metrics.metric import Positive, Progress, Result, Seed, metric
from lddr.metrics.mig import two_largest
from lddr.metrics.probes import fit_in_parallel, score_on_test, varying_factors

SMALLEST = 1e-100  # smaller codes are set to 0: the solver does not stop when their squares underflow


@dataclass(frozen=True)
class SapResult(Result):
    """The mean gap, the gap of every factor, and the test accuracies (latents, factors) behind it."""

    per_factor: tuple[float, ...]
    accuracy: Floats


@metric("sap", "SAP", seconds=2, parts={"train": 10_000, "test": 5_000})
def sap(
    codes_train: ArrayLike,
    factors_train: ArrayLike,
    codes_test: ArrayLike,
    factors_test: ArrayLike,
    regularisation: Positive = 0.01,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> SapResult:
    """Gap of the two best test accuracies of a linear classifier on one latent, mean over the factors that vary.

    Kumar et al. (2018). Constant latents count like any other, as in the reference; a single latent has a gap to 0.
    A factor that does not vary has accuracies and a gap of 0, and is no part of the mean.

    Parameters
    ----------
    codes_train, factors_train, codes_test, factors_test : array
        (samples, latents), and whole numbers (samples, factors), to train and to test with.
    regularisation : float
        C of the linear support vector machine.
    seed : int
        Of the solver.
    progress : callable, optional
        Called with the share of the work that has just been finished.

    Returns
    -------
    SapResult
        The score, `per_factor`, and the test `accuracy` (latents, factors).

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import sap
    >>> factors = np.random.default_rng(0).integers(2, size=(2_000, 2))
    >>> codes = 2.0 * factors - 1
    >>> round(sap(codes[:1_000], factors[:1_000], codes[1_000:], factors[1_000:]).score, 1)
    0.5
    """
    from sklearn.svm import LinearSVC

    train, truth, test, truth_test = checked_parts(codes_train, factors_train, codes_test, factors_test)
    varies = varying_factors(truth, "SAP needs")
    train, test = (np.where(np.abs(codes) < SMALLEST, 0.0, codes) for codes in (train, test))
    model = LinearSVC(C=regularisation, class_weight="balanced", random_state=seed)  # 1,000 iterations, as published
    pairs = [(latent, factor) for latent in range(train.shape[1]) for factor in varies]
    tasks = [(model, train[:, [i]], truth[:, k], test[:, [i]], truth_test[:, k]) for i, k in pairs]
    costs = [float(len(np.unique(truth[:, factor]))) for _, factor in pairs]
    accuracy = np.zeros((train.shape[1], truth.shape[1]))
    accuracy[:, varies] = np.reshape(fit_in_parallel(score_on_test, tasks, costs, progress), (-1, len(varies)))
    first, second = two_largest(accuracy)
    gaps, sizes = first - second, {"train": len(train), "test": len(test)}
    return SapResult(float(gaps[varies].mean()), tuple(gaps.tolist()), accuracy, settings=sizes)
