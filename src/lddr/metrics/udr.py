"""Unsupervised disentanglement ranking: models that disentangle agree up to order and sign (Duan et al. 2020).

It compares models that saw the same data, usually one setting trained with several seeds, by their codes of the
same images; no labels are needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.arrays import as_array
from lddr.errors import UserError
from lddr.metrics.information import Floats, as_floats
from lddr.metrics.metric import Result

Similarity = Literal["lasso", "spearman"]
SWEEPS, TOLERANCE = 1_000, 1e-9  # of the coordinate descent


@dataclass(frozen=True)
class UdrResult(Result):
    """The best model's score, the score of every model, and the scores of all pairs behind it.

    `pairs[i, j]` scores model i against model j; the diagonal, which is unused, is 0.
    """

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
    """A model's median agreement with the others; codes are (samples, latents) of the same images.

    `active` masks the informative latents of every model (the paper: KL > 0.01); without it those are the latents
    whose variance is above `min_variance`. Exact copies score 1 - alpha with "lasso"; with "spearman" they score 1
    if their latents are uncorrelated. A model without an active latent scores 0.
    """
    models = _checked_models(codes_of_models, similarity)
    masks = [_varying(codes, min_variance) for codes in models] if active is None else _checked_masks(active, models)
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
    models = [as_floats(codes) for codes in codes_of_models]
    if similarity not in get_args(Similarity):
        raise UserError(f"no similarity is called {similarity!r}; choose one of {', '.join(get_args(Similarity))}")
    if len(models) < 2:
        raise UserError(f"UDR compares models with each other: give the codes of at least two, not {len(models)}")
    if any(codes.ndim != 2 or not len(codes) or len(codes) != len(models[0]) for codes in models):
        shapes = ", ".join(str(codes.shape) for codes in models)
        raise UserError(f"expected codes (samples, latents) of the same samples from every model, got {shapes}")
    if not all(np.isfinite(codes).all() for codes in models):
        raise UserError("the codes hold values that are not finite; mend them before they are scored")
    return models


def _checked_masks(active: Sequence[ArrayLike], models: list[Floats]) -> list[NDArray[np.bool_]]:
    masks = [as_array(mask) for mask in active]
    if [mask.shape for mask in masks] != [codes.shape[1:] for codes in models] or any(
        mask.dtype != bool for mask in masks
    ):
        raise UserError("active must hold one mask per model, with True or False for each of its latents")
    return masks


def _varying(codes: Floats, min_variance: float) -> NDArray[np.bool_]:
    return (codes.var(axis=0) > min_variance) & (np.ptp(codes, axis=0) > 0)  # rounding gives a constant some variance


def _pair_scores(models: list[Floats], similarity: Similarity, alpha: float) -> Floats:
    """Return (models, models): row i, column j is the agreement of model i, predicted from model j."""
    correlation = correlations(np.concatenate(models, axis=1), ranked=similarity == "spearman")
    edges = np.cumsum([codes.shape[1] for codes in models])[:-1]
    pairs = np.zeros((len(models), len(models)))
    for source, block in enumerate(np.split(correlation, edges)):  # (latents of the source, latents of all)
        inner = np.split(block, edges, axis=1)[source]
        weights = np.abs(lasso_weights(inner, block, alpha) if similarity == "lasso" else block)
        for target, strengths in enumerate(np.split(weights, edges, axis=1)):
            pairs[target, source] = 0.0 if target == source else agreement(strengths)
    return pairs


def correlations(codes: Floats, ranked: bool) -> Floats:
    """Return correlations (latents, latents) of the values or of their ranks; 0 for a constant latent."""
    values = _ranks(codes) if ranked else codes
    varies = np.ptp(values, axis=0) > 0
    centred = (values - values.mean(axis=0)) * varies  # exact zeros, where rounding would leave a residue
    standard = centred / np.where(varies, values.std(axis=0), 1.0)
    return standard.T @ standard / len(standard)


def _ranks(codes: Floats) -> Floats:
    from scipy.stats import rankdata

    return rankdata(codes, axis=0)


def lasso_weights(inner: Floats, cross: Floats, alpha: float) -> Floats:
    """Return (sources, targets): argmin over w of ½ mean (y - x·w)² + alpha |w|₁, for all targets at once.

    Coordinate descent needs no samples, only the correlations of the sources with each other (`inner`) and with
    the targets (`cross`).
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


def agreement(strengths: Floats) -> float:
    """Return how close to one-to-one a matrix (a, b) of strengths R ≥ 0 is.

    1 / (d_a + d_b) · [ Σ_b (max_a R)² / Σ_a R + Σ_a (max_b R)² / Σ_b R ], where a latent without any strength adds 0.
    """
    if not strengths.size:
        return 0.0
    shares = [_peak_share(strengths, axis) for axis in (0, 1)]
    return float(np.concatenate(shares).mean())


def _peak_share(strengths: Floats, axis: int) -> Floats:
    total, peak = strengths.sum(axis=axis), strengths.max(axis=axis)
    return np.divide(peak**2, total, out=np.zeros_like(total), where=total > 0)
