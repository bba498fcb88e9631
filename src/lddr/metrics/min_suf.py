"""Minimality and sufficiency: scores that stay valid if factors depend on each other (Almudévar & Ortega 2025)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import ArrayLike

from lddr.errors import UserError
from lddr.metrics.information import (
    Floats,
    discretised,
    entropies_of,
    histogram_facts,
    histogram_information,
    shares_of,
)
from lddr.metrics.metric import Count, Result, metric


@dataclass(frozen=True)
class MinSufResult(Result):
    """√(minimality · sufficiency), both terms, and those of every latent and factor; 0 for a constant one."""

    minimality: float
    sufficiency: float
    per_latent: tuple[float, ...]  # minimality
    per_factor: tuple[float, ...]  # sufficiency
    mutual_information: Floats  # (latents, factors), nats


@metric("min_suf", "Minimality and sufficiency", parts={"samples": 10_000})
def min_suf(
    codes: ArrayLike,
    factors: ArrayLike,
    num_bins: Count = 15,
    derived: Annotated[Sequence[int], {"at_least": 0}] = (),
) -> MinSufResult:
    """√(M·S): minimality M is the mean of max I / H(latent), sufficiency S the mean of max I / H(factor).

    A latent is minimal if it encodes only one factor, and sufficient if it encodes all of it. Unlike the gaps of MIG
    and SAP, neither decreases because factors share information. Almudévar & Ortega (2025) report M and S; their
    geometric mean is ours. Constant latents and factors do not count; without others the score is 0.
    S leaves out the factors named in `derived`, which are functions of others: an image is fully described without
    them, so that no latent has to encode them. A latent that does is still minimal.

    Parameters
    ----------
    codes, factors : array
        (samples, latents), and whole numbers (samples, factors).
    num_bins : int
        Bins of the histogram of each latent.
    derived : tuple of int
        The places of factors, from 0, that follow from the others; published scores have none. For `pendulum`, where
        light and pendulum cause the shadow: (2, 3).

    Returns
    -------
    MinSufResult
        The score, `minimality`, `sufficiency`, `per_latent`, `per_factor` and `mutual_information` (latents, factors).

    Examples
    --------
    >>> import numpy as np
    >>> from lddr.metrics import mig, min_suf
    >>> cause = np.random.default_rng(0).integers(8, size=2_000)
    >>> factors = np.stack([cause, cause // 2], axis=1)  # the second factor depends on the first
    >>> round(min_suf(factors, factors).score, 2), round(mig(factors, factors).score, 2)
    (1.0, 0.17)
    """
    values, truth, information, entropies = histogram_information(codes, factors, num_bins)
    if derived and max(derived) >= truth.shape[1]:
        raise UserError(f"factor {max(derived)} cannot be derived: there are {truth.shape[1]}, numbered from 0")
    of_latents = entropies_of(discretised(values, num_bins))
    minimal, sufficient = shares_of(information.max(axis=1), of_latents), shares_of(information.max(axis=0), entropies)
    minimality = _mean(minimal[of_latents > 0])
    sufficiency = _mean(sufficient[(entropies > 0) & ~np.isin(np.arange(len(entropies)), derived)])
    return MinSufResult(
        float(np.sqrt(minimality * sufficiency)),
        minimality,
        sufficiency,
        tuple(minimal.tolist()),
        tuple(sufficient.tolist()),
        information,
        settings=histogram_facts(values),
    )


def _mean(shares: Floats) -> float:
    return float(shares.mean()) if shares.size else 0.0
