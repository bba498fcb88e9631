"""Modularity, explicitness and compactness: of Ridgeway & Mozer (2018), and as InfoMEC (Hsu et al. 2023)."""

from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from lddr.metrics.information import (
    Floats,
    Whole,
    checked_parts,
    discretised,
    entropies_of,
    histogram_facts,
    histogram_information,
    mutual_information,
    shares_of,
)
from lddr.metrics.metric import Count, NotNegative, Progress, Result, Seed, Share, UndefinedError, metric
from lddr.metrics.probes import fit_in_parallel, fitted, standardised

ROUNDING = 1e-12  # nats: less than this is rounding error, not information
Estimator = Literal["neighbours", "binned", "categories"]


@dataclass(frozen=True)
class ModularityResult(Result):
    """The mean, the modularity of every latent, and their mutual information (latents, factors) in nats."""

    per_latent: tuple[float, ...]
    mutual_information: Floats


@metric("modularity", "Modularity", parts={"samples": 10_000})
def modularity(codes: ArrayLike, factors: ArrayLike, num_bins: Count = 20) -> ModularityResult:
    """Each latent encodes one factor only: 1 - Σ I² of the others / (I² of the best · (F - 1)), mean over latents.

    F counts the factors that vary. A latent without any information counts as 0, as published; with F = 1 there is no
    other factor, and an informative latent counts as 1. Noise does not score 0: its spurious I have a maximum, too.

    Parameters
    ----------
    codes, factors : array
        (samples, latents), and whole numbers (samples, factors).
    num_bins : int
        Bins of the histogram of each latent.

    Returns
    -------
    ModularityResult
        The score, `per_latent`, and `mutual_information` (latents, factors).

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import modularity
    >>> factors = np.random.default_rng(0).integers(4, size=(2_000, 2))
    >>> round(modularity(factors * 0.5, factors).score, 3)
    1.0
    """
    values, truth, information, _ = histogram_information(codes, factors, num_bins)
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

    Parameters
    ----------
    codes_train, factors_train, codes_test, factors_test : array
        (samples, latents), and whole numbers (samples, factors), to train and to test with.
    regularisation : float
        1 / C of the regression.
    iterations : int
        Largest number of iterations of its solver.
    progress : callable, optional
        Called with the share of the work that has just been finished.

    Returns
    -------
    ExplicitnessResult
        The score, `per_factor` and `area`.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import explicitness
    >>> factors = np.random.default_rng(0).integers(2, size=(2_000, 2))
    >>> explicitness(factors[:1_000] * 0.5, factors[:1_000], factors[1_000:] * 0.5, factors[1_000:]).score
    1.0
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


def probabilities(
    model: Any,  # a classifier of scikit-learn
    train: Any,  # (samples, columns), sparse or not
    factor: Whole,
    test: Any,
    values: Whole,
) -> Floats:
    """Return a fitted model's probability of every value, (samples of `test`, values); 0 for an unseen value."""
    seen = np.unique(factor)
    found = np.ones((test.shape[0], 1))  # a model of one value has no choice
    if len(seen) > 1:
        found = fitted(model, train, factor).predict_proba(test)
    place = np.searchsorted(seen, values).clip(max=len(seen) - 1)
    return np.where(seen[place] == values, found[:, place], 0.0)


@dataclass(frozen=True)
class InfomecResult(Result):
    """InfoM (the score, mean over active latents), InfoC and InfoE (means over factors that vary), and their parts."""

    infoc: float
    infoe: float
    infom_per_latent: tuple[float, ...]
    infoc_per_factor: tuple[float, ...]
    infoe_per_factor: tuple[float, ...]
    active: tuple[bool, ...]
    mutual_information: Floats
    entropies: tuple[float, ...]


@metric("infomec", "InfoMEC", seconds=5, parts={"samples": 10_000, "test": 0})
def infomec(
    codes: ArrayLike,
    factors: ArrayLike,
    codes_test: ArrayLike | None = None,
    factors_test: ArrayLike | None = None,
    estimator: Estimator = "neighbours",
    num_neighbours: Count = 10,
    num_bins: Count = 20,
    active_range: Share = 0.05,
    iterations: Count = 100,
    seed: Seed = 0,
    progress: Progress | None = None,
) -> InfomecResult:
    """InfoM and InfoC are concentrations of I / H(factor), InfoE is 1 - H(factor | codes) / H(factor).

    A concentration is (largest / sum - 1/n) / (1 - 1/n): of a latent over the n factors that vary (InfoM), of a factor
    over the n active latents (InfoC); 0 without any information, 1 where n = 1 and there is some. The spurious
    information of noise is concentrated, too: InfoM of noise is not 0. A latent is active if its range is above 1/20 of
    the largest one. The estimators of I: nearest "neighbours" (Ross 2014) for continuous codes, as published; "binned",
    a histogram as for MIG; "categories", the distinct values, as published for categorical codes, which are active if
    they vary at all and one-hot for InfoE. InfoE comes from a logistic regression without penalty and with balanced
    classes, so that H(factor), its loss without codes, is log(number of values). As published, its loss is that on the
    training sample; with a test sample it is computed there, and can fall below 0.

    Parameters
    ----------
    codes, factors, codes_test, factors_test : array
        (samples, latents), and whole numbers (samples, factors); the test sample is optional.
    estimator : {"neighbours", "binned", "categories"}
        The estimator of mutual information.
    num_neighbours, num_bins : int
        Of the estimators of these names.
    active_range : float
        The share of the largest range above which a latent is active.
    iterations : int
        Largest number of iterations of the regression.
    seed : int
        Of the noise that breaks ties between neighbours.
    progress : callable, optional
        Called with the share of the work that has just been finished.

    Returns
    -------
    InfomecResult
        InfoM as the score, `infoc`, `infoe`, and the values behind them.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import infomec
    >>> factors = np.random.default_rng(0).integers(4, size=(2_000, 2))
    >>> found = infomec(factors, factors, estimator="categories")
    >>> [round(value, 2) for value in (found.score, found.infoc, found.infoe)]
    [1.0, 1.0, 1.0]
    """
    test = (codes, factors) if codes_test is None or factors_test is None else (codes_test, factors_test)
    values, truth, probed, asked = checked_parts(codes, factors, *test)
    counts = [np.unique(column, return_counts=True)[1] for column in truth.T]
    if all(len(count) == 1 for count in counts):
        raise UndefinedError("InfoMEC needs a factor that varies, and none of them does in the sample")
    if estimator == "neighbours" and any(count.max() == 1 for count in counts):
        raise UndefinedError("no value of a factor occurs twice, so it has no neighbours; use the binned estimator")
    inputs = (one_hot if estimator == "categories" else standardised)(values, probed)
    symbols = _symbols(values, estimator, num_bins)
    options = {"neighbours": num_neighbours, "iterations": iterations, "seed": seed}
    tasks = [(symbols, *inputs, column, wanted, options) for column, wanted in zip(truth.T, asked.T, strict=True)]
    found = fit_in_parallel(_factor_scores, tasks, [len(count) for count in counts], progress)
    information, infoe = np.stack([column for column, _ in found], axis=1), np.array([share for _, share in found])
    ranges = np.ptp(values, axis=0)
    active = ranges > (0.0 if estimator == "categories" else active_range) * ranges.max(initial=0.0)
    entropies = entropies_of(truth)
    varies, shares = entropies > 0, shares_of(information, entropies)
    infom, infoc = concentration(shares[:, varies]), concentration(shares[active].T)
    sizes = histogram_facts(values) if estimator == "binned" else {"samples": len(values)}
    return InfomecResult(
        float(infom[active].mean()) if active.any() else 0.0,
        float(infoc[varies].mean()),
        float(infoe[varies].mean()),
        tuple(infom.tolist()),
        tuple(infoc.tolist()),
        tuple(infoe.tolist()),
        tuple(active.tolist()),
        information,
        tuple(entropies.tolist()),
        settings=sizes | {"test": 0 if codes_test is None else len(probed)},
    )


def concentration(shares: Floats) -> Floats:
    """(rows, n) → (largest / sum - 1/n) / (1 - 1/n) of every row."""
    total, count = shares.sum(axis=1), shares.shape[1]
    known = total > ROUNDING
    if count < 2:
        return known.astype(np.float64)
    top = np.divide(shares.max(axis=1), total, out=np.full_like(total, 1 / count), where=known)
    return (top - 1 / count) / (1 - 1 / count)


def _symbols(codes: Floats, estimator: str, num_bins: int) -> Floats | Whole:
    """Return the codes as the estimator of mutual information takes them."""
    if estimator == "neighbours":
        return standardised(codes, codes)[0]
    if estimator == "binned":
        return discretised(codes, num_bins)
    return np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T], axis=1)


def one_hot(train: Floats, test: Floats) -> tuple[Any, Any]:
    """Encode both samples with a one per latent, at its value; with none for a value that is not in the first."""
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(handle_unknown="ignore").fit(train)
    return encoder.transform(train), encoder.transform(test)


def _factor_scores(
    symbols: Floats | Whole, train: Any, test: Any, factor: Whole, asked: Whole, options: dict[str, int]
) -> tuple[Floats, float]:
    """Return the information of every latent on one factor, and the share of its entropy that is predicted."""
    from sklearn.feature_selection import mutual_info_classif

    if len(np.unique(factor)) == 1:
        return np.zeros(symbols.shape[1]), 0.0
    if symbols.dtype == np.float64:
        settings = {"n_neighbors": options["neighbours"], "random_state": options["seed"], "n_jobs": 1}
        nearest = partial(mutual_info_classif, discrete_features=False, **settings)  # Ross (2014)
        columns = [float(nearest(column[:, None], factor)[0]) for column in symbols.T]
    else:
        columns = [mutual_information(column, factor) for column in symbols.T]
    return np.array(columns), predicted_share(train, factor, test, asked, options["iterations"])


def predicted_share(train: Any, factor: Whole, test: Any, asked: Whole, iterations: int) -> float:
    """Return 1 - log loss / log(number of values); test samples with a value missing from training are left out."""
    from sklearn.linear_model import LogisticRegression

    values = np.unique(factor)
    known = np.isin(asked, values)
    if not known.any():
        return 0.0
    model = LogisticRegression(C=np.inf, class_weight="balanced", max_iter=iterations)
    found = probabilities(model, train, factor, test[known], values)
    right = found[np.arange(len(found)), np.searchsorted(values, asked[known])]
    loss = -np.log(np.maximum(right, np.finfo(np.float64).eps)).mean()
    return float(1 - loss / np.log(len(values)))
