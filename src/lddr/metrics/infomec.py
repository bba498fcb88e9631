"""InfoMEC: modularity, explicitness and compactness as shares of the factors' entropies (Hsu et al. 2023)."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.metrics.information import (
    Floats,
    Whole,
    checked_parts,
    discretised,
    entropy,
    histogram_facts,
    mutual_information,
)
from lddr.metrics.metric import Count, Progress, Result, Seed, Share, UndefinedError, fit_in_parallel, metric
from lddr.metrics.modularity import ROUNDING
from lddr.metrics.probe import probabilities, standardised

Estimator = Literal["neighbours", "binned", "categories"]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class InfomecResult(Result):
    """InfoM (the score), InfoC and InfoE, and the mutual information (latents, factors) in nats behind the first two.

    InfoM is the mean over the `active` latents; InfoC and InfoE are means over the factors that vary.
    """

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
    over the n active latents (InfoC); 0 where nothing is known, 1 where n = 1 and something is. The little that noise
    seems to tell is concentrated, too: InfoM of noise is not 0. A latent is active if its range is above 1/20 of the
    largest one. The estimators of I: nearest "neighbours" (Ross 2014) for continuous
    codes, as published; "binned", a histogram as for MIG; "categories", the distinct values, as published for
    categorical codes, which are active if they vary at all and one-hot for InfoE.
    InfoE is of a logistic regression without penalty and with equal weights of the values, so that H(factor), its loss
    without codes, is log(number of values). As published its loss is taken on the sample it was fitted to; with
    a test sample it is taken there, and can fall below 0.
    """
    values, truth, probed, asked = checked_parts(
        codes,
        factors,
        *((codes, factors) if codes_test is None or factors_test is None else (codes_test, factors_test)),
    )
    _check(estimator, truth)
    inputs = (one_hot if estimator == "categories" else standardised)(values, probed)
    symbols = _symbols(values, estimator, num_bins)
    options = {"neighbours": num_neighbours, "iterations": iterations, "seed": seed}
    tasks = [(symbols, *inputs, column, wanted, options) for column, wanted in zip(truth.T, asked.T, strict=True)]
    found = fit_in_parallel(_factor_scores, tasks, [len(np.unique(column)) for column in truth.T], progress)
    active = _active(values, 0.0 if estimator == "categories" else active_range)
    information = np.stack([column for column, _ in found], axis=1)
    sizes = histogram_facts(values) if estimator == "binned" else {"samples": len(values)}
    sizes |= {"test": 0 if codes_test is None else len(probed)}
    return _result(information, truth, active, np.array([share for _, share in found]), sizes)


def _result(information: Floats, truth: Whole, active: Flags, infoe: Floats, sizes: dict[str, int]) -> InfomecResult:
    entropies = np.array([entropy(column) for column in truth.T])
    varies = entropies > 0
    shares = np.divide(information, entropies, out=np.zeros_like(information), where=varies)
    infom, infoc = concentration(shares[:, varies]), concentration(shares[active].T)
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
        settings=sizes,
    )


def _check(estimator: str, factors: Whole) -> None:
    counts = [np.unique(column, return_counts=True)[1] for column in factors.T]
    if all(len(count) == 1 for count in counts):
        raise UndefinedError("InfoMEC needs a factor that varies, and none of them does in the sample")
    if estimator == "neighbours" and any(count.max() == 1 for count in counts):
        raise UndefinedError("no value of a factor occurs twice, so it has no neighbours; use the binned estimator")


def _active(codes: Floats, share: float) -> Flags:
    """Which latents have a range above this share of the largest one."""
    ranges = np.ptp(codes, axis=0)
    return ranges > share * ranges.max(initial=0.0)


def concentration(shares: Floats) -> Floats:
    """(rows, n) → (largest / sum - 1/n) / (1 - 1/n) of every row."""
    total, count = shares.sum(axis=1), shares.shape[1]
    known = total > ROUNDING
    if count < 2:
        return known.astype(np.float64)
    top = np.divide(shares.max(axis=1), total, out=np.full_like(total, 1 / count), where=known)
    return (top - 1 / count) / (1 - 1 / count)


def _symbols(codes: Floats, estimator: str, num_bins: int) -> Floats | Whole:
    """The codes as the estimator of mutual information takes them."""
    if estimator == "neighbours":
        return standardised(codes, codes)[0]
    if estimator == "binned":
        return discretised(codes, num_bins)
    return np.stack([np.unique(column, return_inverse=True)[1] for column in codes.T], axis=1)


def one_hot(train: Floats, test: Floats) -> tuple[Any, Any]:
    """Both samples as sparse rows with a one per latent, at its value; none for a value that is not in the first."""
    from sklearn.preprocessing import OneHotEncoder

    encoder = OneHotEncoder(handle_unknown="ignore").fit(train)
    return encoder.transform(train), encoder.transform(test)


def _factor_scores(
    symbols: Floats | Whole, train: Any, test: Any, factor: Whole, asked: Whole, options: dict[str, int]
) -> tuple[Floats, float]:
    """The information of every latent on one factor, and the share of its entropy that is predicted."""
    if len(np.unique(factor)) == 1:
        return np.zeros(symbols.shape[1]), 0.0
    if symbols.dtype == np.float64:
        columns = [_nearest(column, factor, options["neighbours"], options["seed"]) for column in symbols.T]
    else:
        columns = [mutual_information(column, factor) for column in symbols.T]
    return np.array(columns), predicted_share(train, factor, test, asked, options["iterations"])


def _nearest(code: Floats, factor: Whole, neighbours: int, seed: int) -> float:
    """Mutual information in nats from the distances to the nearest neighbours (Ross 2014)."""
    from sklearn.feature_selection import mutual_info_classif

    options = {"discrete_features": False, "n_neighbors": neighbours, "random_state": seed, "n_jobs": 1}
    return float(mutual_info_classif(code[:, None], factor, **options)[0])


def predicted_share(train: Any, factor: Whole, test: Any, asked: Whole, iterations: int) -> float:
    """1 - log loss / log(number of values); test samples with a value that training never saw are left out."""
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
