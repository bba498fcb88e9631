"""Downstream tasks: how well factors are predicted from codes, given few or many labels (Locatello et al. 2019).

Statistical efficiency is the accuracy from 100 labelled samples over the accuracy from 10 000.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.dci import Estimator, as_singles, boosted
from lddr.metrics.information import Floats, Whole, checked_parts
from lddr.metrics.metric import Progress, Result, Seed, UndefinedError, metric
from lddr.metrics.probes import fit_in_parallel, score_on_test, varying_factors

LearnerName = Literal["logistic", "boosting"]
How = tuple[LearnerName, int, bool, Estimator]  # the seed of boosting, whether folds are stratified, whose trees
SIZES = (10, 100, 1_000, 10_000)
FEW, MANY = 100, 10_000  # the two sizes that statistical efficiency compares
STRENGTHS, FOLDS, ITERATIONS = 10, 5, 100  # the published logistic regression
LOGISTIC = {"strengths": STRENGTHS, "folds": FOLDS, "iterations": ITERATIONS}
TASK: Any = {"parts": {"train": lambda settings: max(settings["sizes"]), "test": 5_000}, "is_task": True}


@dataclass(frozen=True)
class DownstreamResult(Result):
    """The mean accuracy at the largest size, and the test accuracy of every size and factor behind it.

    `efficiency` is None where one of its two sizes was not fitted; `left_out` are the sizes that the train sample is
    too short for.
    """

    per_factor: tuple[float, ...]  # at the largest size
    sizes: tuple[int, ...]
    accuracy: Floats  # (sizes, factors)
    mean_accuracy: tuple[float, ...]  # (sizes,)
    efficiency: float | None
    left_out: tuple[int, ...]


@metric("downstream_boosting", "Gradient boosting", **TASK, seconds=700, learner="boosting", stratified=False)
@metric("downstream_logistic", "Logistic regression", **TASK, seconds=60, learner="logistic", estimator="published")
def downstream(
    codes_train: ArrayLike,
    factors_train: ArrayLike,
    codes_test: ArrayLike,
    factors_test: ArrayLike,
    learner: LearnerName = "logistic",
    sizes: Annotated[Sequence[int], {"at_least": 1}] = SIZES,
    seed: Seed = 0,
    stratified: bool = False,
    estimator: Estimator = "published",
    progress: Progress | None = None,
) -> DownstreamResult:
    """Mean test accuracy of a classifier per factor, from few and from many labels; and their ratio, the efficiency.

    The first samples of the train sample are fitted, which must be in random order. Where a factor has one value among
    them, that value is predicted; a value never seen in training counts as an error. Means are over the factors that
    vary in training. The folds that choose the strength of the regression are plain, as in disentanglement_lib; with
    `stratified` they have the shares of the values, and values that occur once are dropped, as the D-VAE's authors do.
    Boosting is scikit-learn's or, with the "fast" estimator, the same on codes that are sorted once (see `boosted`).

    Parameters
    ----------
    codes_train, factors_train, codes_test, factors_test : array
        (samples, latents), and whole numbers (samples, factors), to train and to test with.
    learner : {"logistic", "boosting"}
        Cross-validated logistic regression, or gradient boosting.
    sizes : tuple of int
        Numbers of training samples.
    seed : int
        Of the boosting.
    stratified : bool
        Whether the folds of logistic regression are stratified.
    estimator : {"published", "fast"}
        Whose gradient boosting.
    progress : callable, optional
        Called with the share of the work that has just been finished.

    Returns
    -------
    DownstreamResult
        The mean accuracy at the largest size, the `accuracy` (sizes, factors), and the `efficiency`.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import downstream
    >>> factors = np.random.default_rng(0).integers(2, size=(2_000, 2))
    >>> codes = factors * 0.5
    >>> downstream(codes[:1_000], factors[:1_000], codes[1_000:], factors[1_000:], sizes=(100,)).mean_accuracy
    (1.0,)
    """
    parts = checked_parts(codes_train, factors_train, codes_test, factors_test)
    train, test = parts[:2], parts[2:]
    varies = varying_factors(train[1], "accuracy needs a latent, and")
    if learner == "boosting":
        _ = as_singles(train[0]), as_singles(test[0])  # refuse codes that are too large before anything is fitted
    fitted = tuple(sorted({size for size in sizes if size <= len(train[0])}))
    left_out = tuple(sorted({size for size in sizes if size > len(train[0])}))
    if not fitted:
        raise UndefinedError(
            f"the train sample has {len(train[0])} samples, fewer than the smallest size, {left_out[0]}"
        )
    how = learner, seed, stratified, estimator
    pairs = [(size, factor) for size in fitted for factor in range(train[1].shape[1])]
    tasks = [(how, train[0][:size], train[1][:size, factor], test[0], test[1][:, factor]) for size, factor in pairs]
    costs = np.array([size * len(np.unique(train[1][:size, factor])) for size, factor in pairs])
    order = np.argsort(-costs, kind="stable")  # the longest fits start first, so that no core waits for one at the end
    found = np.empty(len(tasks))
    found[order] = fit_in_parallel(accuracy_of, [tasks[task] for task in order], costs[order].tolist(), progress)
    accuracy = found.reshape(len(fitted), -1)
    means = dict(zip(fitted, accuracy[:, varies].mean(axis=1).tolist(), strict=True))
    return DownstreamResult(
        score=means[fitted[-1]],
        per_factor=tuple(accuracy[-1].tolist()),
        sizes=fitted,
        accuracy=accuracy,
        mean_accuracy=tuple(means.values()),
        efficiency=means[FEW] / means[MANY] if FEW in means and means.get(MANY) else None,
        left_out=left_out,
        settings={"train": len(train[0]), "test": len(test[0])} | (LOGISTIC if learner == "logistic" else {}),
    )


def accuracy_of(how: How, codes: Floats, labels: Whole, codes_test: Floats, labels_test: Whole) -> float:
    """Return the share of test samples whose label is predicted from their code."""
    learner, seed, stratified, estimator = how
    if stratified:
        codes, labels = _without_singles(codes, labels)
    if (labels == labels[0]).all():  # nothing to fit: scikit-learn refuses one class
        return float(np.mean(labels_test == labels[0]))
    if (learner, estimator) == ("boosting", "fast"):
        _, _, predicted = boosted(codes.astype(np.float32), labels, codes_test.astype(np.float32), seed)
        return float(np.mean(predicted == labels_test))
    with warnings.catch_warnings():
        # Few labels are the point: 60 samples may well have 40 classes.
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%", UserWarning)
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        # scikit-learn 1.8 and 1.9 announce another spelling of the same penalty, and of attributes not read here.
        warnings.filterwarnings("ignore", "The (default value for l1_ratios|fitted attributes)", FutureWarning)
        # The published protocol stops L-BFGS after 100 steps, on codes as they are: ending on the way is part of it.
        return score_on_test(_estimator(learner, seed, labels, stratified), codes, labels, codes_test, labels_test)


def _without_singles(codes: Floats, labels: Whole) -> tuple[Floats, Whole]:
    """Return the samples of values that occur at least twice; all samples if there are none."""
    _, places, counts = np.unique(labels, return_inverse=True, return_counts=True)
    several = counts[places] > 1
    return (codes[several], labels[several]) if several.any() else (codes, labels)


def _estimator(learner: LearnerName, seed: int, labels: Whole, stratified: bool) -> Any:
    """Return the published classifier; with fewer samples than folds, each sample is a fold.

    In plain folds a class that a fold lacks keeps its place and is never predicted there, which is what lets 10
    samples of 40 classes be fitted at all; stratified ones are as many as the most frequent class has samples.
    """
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import KFold, StratifiedKFold

    if learner == "boosting":
        return GradientBoostingClassifier(random_state=seed)
    largest = np.unique(labels, return_counts=True)[1].max()
    folds = StratifiedKFold(min(FOLDS, largest)) if stratified and largest > 1 else KFold(min(FOLDS, len(labels)))
    return LogisticRegressionCV(Cs=STRENGTHS, cv=folds, max_iter=ITERATIONS, scoring="accuracy")
