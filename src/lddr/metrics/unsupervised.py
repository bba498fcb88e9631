"""Scores without labels: dependence and activity of latents (Locatello et al. 2019), and UDR (Duan et al. 2020)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.arrays import as_array
from lddr.errors import UserError
from lddr.metrics.information import Floats, as_codes, checked, discretised, histogram_facts, mutual_information_matrix
from lddr.metrics.metric import Count, NotNegative, Positive, Result, metric

Similarity = Literal["lasso", "spearman"]
SWEEPS, TOLERANCE = 1_000, 1e-9  # of the coordinate descent


@dataclass(frozen=True)
class UnsupervisedResult(Result):
    """The total correlation in nats (the score), and other scores of the codes alone.

    Fewer `directions` than `active_units` means that active latents are collinear: their total correlation is
    infinite, and the score is what is left of it when no eigenvalue counts as less than the smallest one allowed.
    """

    mutual_information_score: float  # nats, mean over all pairs of latents
    wasserstein_correlation: float
    wasserstein_correlation_normalised: float  # by the sum of the variances
    active_units: int
    directions: int
    variances: tuple[float, ...]
    pairwise_information: Floats  # (latents, latents), nats


@metric("unsupervised", "Total correlation", parts={"samples": 10_000})
def unsupervised(
    codes: ArrayLike, num_bins: Count = 20, active_variance: NotNegative = 0.01, smallest_eigenvalue: Positive = 1e-12
) -> UnsupervisedResult:
    """Of a Gaussian with the covariance of the active latents, ½ (Σ log variance - log det); no factors are needed.

    A latent is active if its variance is above 0.01 (Burda et al. 2016). The other scores take all latents, as
    published; so does the total correlation with `active_variance=0`, as far as they vary.

    Parameters
    ----------
    codes : array (samples, latents)
        The codes.
    num_bins : int
        Bins of the histogram of each latent, for the mutual information of pairs.
    active_variance : float
        The variance above which a latent is active.
    smallest_eigenvalue : float
        Smaller eigenvalues of the correlation matrix count as this one.

    Returns
    -------
    UnsupervisedResult
        The total correlation as the score, further dependence scores, and `active_units`.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import unsupervised
    >>> codes = np.random.default_rng(0).normal(size=(10_000, 3))
    >>> round(unsupervised(codes).score, 2), unsupervised(codes).active_units
    (0.0, 3)
    """
    given = np.atleast_1d(as_codes(codes))
    values, _ = checked(given, np.zeros((len(given), 1), np.int64))
    active = active_latents(values, active_variance)
    eigenvalues = correlation_eigenvalues(values[:, active])
    information = mutual_information_matrix(*[discretised(values, num_bins)] * 2)
    distance, total = wasserstein_correlation(values), float(np.trace(code_covariance(values)))
    return UnsupervisedResult(
        gaussian_total_correlation(eigenvalues, smallest_eigenvalue),
        mean_off_diagonal(information),
        distance,
        distance / total if total > 0 else 0.0,
        int(active.sum()),
        int((eigenvalues > smallest_eigenvalue).sum()),
        tuple(values.var(axis=0).tolist()),
        information,
        settings=histogram_facts(values),
    )


def active_latents(codes: Floats, variance: float) -> NDArray[np.bool_]:
    """Return which latents have more than this variance."""
    return centred(codes).var(axis=0) > variance


def centred(codes: Floats) -> Floats:
    """Subtract the mean, and the first sample before that, so that constant latents are exactly 0."""
    moved = codes - codes[0]
    return moved - moved.mean(axis=0)


def code_covariance(codes: Floats) -> Floats:
    """Return the unbiased covariance (latents, latents); 0 for a single sample."""
    return centred(codes).T @ centred(codes) / max(len(codes) - 1, 1)


def correlation_eigenvalues(codes: Floats) -> Floats:
    """Return the eigenvalues of the correlations of latents that all vary, whose product is det Σ / Π variances."""
    scaled = centred(codes) / codes.std(axis=0)
    return np.asarray(np.linalg.eigvalsh(scaled.T @ scaled / len(codes)), np.float64)


def gaussian_total_correlation(eigenvalues: Floats, smallest: float) -> float:
    """Return -½ Σ log eigenvalue, with the smallest one allowed in place of smaller ones."""
    return max(0.0, float(-0.5 * np.log(np.maximum(eigenvalues, smallest)).sum()))


def wasserstein_correlation(codes: Floats) -> float:
    """Return the squared 2-Wasserstein distance of a Gaussian from its marginals: 2 tr Σ - 2 tr (D^½ Σ D^½)^½."""
    matrix = code_covariance(codes)
    deviation = np.sqrt(np.diag(matrix))
    eigenvalues = np.linalg.eigvalsh(deviation[:, None] * matrix * deviation)
    return max(0.0, float(2 * np.trace(matrix) - 2 * np.sqrt(np.maximum(eigenvalues, 0)).sum()))


def mean_off_diagonal(matrix: Floats) -> float:
    """Return the mean over pairs of different latents; 0 if there is only one latent."""
    pairs = len(matrix) * (len(matrix) - 1)
    return float((matrix.sum() - np.trace(matrix)) / pairs) if pairs else 0.0


@dataclass(frozen=True)
class UdrResult(Result):
    """The best model's score, all scores, and those of all pairs; `pairs[i, j]` scores model i against model j."""

    best: int
    scores: tuple[float, ...]  # (models,)
    pairs: Floats  # (models, models)
    num_active: tuple[int, ...]  # (models,)


def udr(
    codes_of_models: Sequence[ArrayLike],
    active: Sequence[ArrayLike] | None = None,
    similarity: Similarity = "lasso",
    alpha: float = 0.1,
    min_variance: float = 0.01,
) -> UdrResult:
    """Unsupervised disentanglement ranking: a model's median agreement with the others (Duan et al. 2020).

    Models that disentangle agree up to order and sign. UDR compares models that saw the same data, usually one setting
    trained with several seeds; it needs no labels. Exact copies score 1 - alpha with "lasso"; with "spearman" they
    score 1 if their latents are uncorrelated. A model without an active latent scores 0.

    Parameters
    ----------
    codes_of_models : sequence of arrays (samples, latents)
        The codes of the same images by every model.
    active : sequence of bool arrays (latents,), optional
        The informative latents of every model (the paper: KL > 0.01); by default, those with a variance above
        `min_variance`.
    similarity : {"lasso", "spearman"}
        The weights of lasso regressions between latents, or rank correlations.
    alpha : float
        The weight of the lasso's penalty.
    min_variance : float
        The variance above which a latent is active.

    Returns
    -------
    UdrResult
        The `best` model and its score, the `scores` of all, `pairs` (models, models) and `num_active`.

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import udr
    >>> codes = np.random.default_rng(0).normal(size=(2_000, 3))
    >>> round(udr([codes, -codes[:, ::-1]]).score, 2)
    0.9
    """
    models = _checked_models(codes_of_models, similarity)
    if active is None:  # rounding gives a constant latent some variance
        masks = [(codes.var(axis=0) > min_variance) & (np.ptp(codes, axis=0) > 0) for codes in models]
    else:
        masks = [as_array(mask) for mask in active]
        expected = [codes.shape[1:] for codes in models]
        if [mask.shape for mask in masks] != expected or any(mask.dtype != bool for mask in masks):
            raise UserError("active must hold one mask per model, with True or False for each of its latents")
    kept = [codes[:, mask] for codes, mask in zip(models, masks, strict=True)]
    pairs = _pair_scores(kept, similarity, alpha)
    others = ~np.eye(len(models), dtype=bool)
    scores = [float(np.median(row[other])) for row, other in zip(pairs, others, strict=True)]
    best = int(np.argmax(scores))
    settings: dict[str, Any] = {"similarity": similarity, "models": len(models), "samples": len(models[0])}
    settings |= {"alpha": alpha} if similarity == "lasso" else {}
    settings |= {"min_variance": min_variance} if active is None else {"active": "given"}
    counts = tuple(int(mask.sum()) for mask in masks)
    return UdrResult(scores[best], best, tuple(scores), pairs, counts, settings=settings)


def _checked_models(codes_of_models: Sequence[ArrayLike], similarity: str) -> list[Floats]:
    models = [as_codes(codes) for codes in codes_of_models]
    if similarity not in get_args(Similarity):
        raise UserError(f"no similarity is called {similarity!r}; choose one of {', '.join(get_args(Similarity))}")
    if len(models) < 2:
        raise UserError(f"UDR compares models with each other: give the codes of at least two, not {len(models)}")
    if any(codes.ndim != 2 or not len(codes) or len(codes) != len(models[0]) for codes in models):
        shapes = ", ".join(str(codes.shape) for codes in models)
        raise UserError(f"expected codes (samples, latents) of the same samples from every model, got {shapes}")
    if not all(np.isfinite(codes).all() for codes in models):
        raise UserError("the codes contain NaN or infinite values; fix them before they are scored")
    return models


def _pair_scores(models: list[Floats], similarity: Similarity, alpha: float) -> Floats:
    """Return (models, models): row i, column j is the agreement of model i, predicted from model j."""
    correlation = correlations(np.concatenate(models, axis=1), ranked=similarity == "spearman")
    edges = np.cumsum([codes.shape[1] for codes in models])[:-1]
    pairs = np.zeros((len(models), len(models)))
    for source, block in enumerate(np.split(correlation, edges)):  # (latents of the source, latents of all)
        inner = np.split(block, edges, axis=1)[source]
        weights = np.abs(lasso_weights(inner, block, alpha) if similarity == "lasso" else block)
        for target, strengths in enumerate(np.split(weights, edges, axis=1)):
            pairs[target, source] = 0.0 if target == source else udr_agreement(strengths)
    return pairs


def correlations(codes: Floats, ranked: bool) -> Floats:
    """Return correlations (latents, latents) of the values or of their ranks; 0 for a constant latent."""
    from scipy.stats import rankdata

    values = rankdata(codes, axis=0) if ranked else codes
    varies = np.ptp(values, axis=0) > 0
    centred = (values - values.mean(axis=0)) * varies  # exact zeros, where rounding would leave a residue
    standard = centred / np.where(varies, values.std(axis=0), 1.0)
    return standard.T @ standard / len(standard)


def lasso_weights(inner: Floats, cross: Floats, alpha: float) -> Floats:
    """Return (sources, targets): argmin over w of ½ mean (y - x·w)² + alpha |w|₁, for all targets at once.

    Coordinate descent needs no samples, only the correlations of the sources with each other (`inner`) and with the
    targets (`cross`). scikit-learn's Lasso with a Gram matrix differs by 2e-8 at its best, for half the time.
    """
    weights = np.zeros_like(cross)
    for _ in range(SWEEPS):
        before = weights.copy()
        for latent in np.flatnonzero(inner.diagonal() > 0):
            pull = cross[latent] - inner[latent] @ weights + inner[latent, latent] * weights[latent]
            weights[latent] = np.sign(pull) * np.maximum(np.abs(pull) - alpha, 0.0) / inner[latent, latent]
        if np.abs(weights - before).max(initial=0.0) < TOLERANCE:
            break
    return weights


def udr_agreement(strengths: Floats) -> float:
    """Return how close to one-to-one a matrix (a, b) of strengths R ≥ 0 is.

    1 / (d_a + d_b) · [ Σ_b (max_a R)² / Σ_a R + Σ_a (max_b R)² / Σ_b R ], where a latent without any strength adds 0.
    """
    if not strengths.size:
        return 0.0
    shares = []
    for axis in (0, 1):
        total, peak = strengths.sum(axis=axis), strengths.max(axis=axis)
        shares.append(np.divide(peak**2, total, out=np.zeros_like(total), where=total > 0))
    return float(np.concatenate(shares).mean())
