"""Interventional robustness: does a latent stay put while all factors but its own change? (Suter et al. 2019)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.factors import FactorSpace
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole, checked, in_column
from lddr.metrics.interventions import held_samples, holdable, occurring
from lddr.metrics.metric import Result, Samples, metric
from lddr.metrics.samples import Draws
from lddr.metrics.signature import Count, Share


def drawn_values(
    space: FactorSpace, generator: np.random.Generator, samples: Count = 10_000, max_values: Count = 50
) -> Draws:
    """About as many images for each factor, equally many of each value, whose factor is in the name of the part."""
    draws: Draws = {}
    for factor in holdable(space, at_least=1):
        values = evenly_chosen(occurring(space, factor), max_values)
        draws[f"factor {factor}"] = space.sample_with(generator, factor, np.repeat(values, -(-samples // len(values))))
    return draws


def evenly_chosen(values: Whole, at_most: int) -> Whole:
    """All values, or evenly chosen ones where there are too many."""
    return values[np.linspace(0, len(values) - 1, min(len(values), at_most)).round().astype(np.int64)]


def codes_by_factor(samples: Samples) -> list[Any]:
    """The codes and the values held of every factor that could be."""
    held = held_samples(samples, "factor")
    factors = {factor: sample.factors for factor, sample in held.items()}
    codes = [sample.codes for sample in held.values()]
    values = [column[:, factor] for factor, column in factors.items()]
    return [codes, values, list(held), next(iter(factors.values())).shape[-1]]


@dataclass(frozen=True)
class IrsResult(Result):
    """The weighted mean, the score and the weight of every latent, and the robustness (latents, factors) behind it."""

    per_latent: tuple[float, ...]
    weights: tuple[float, ...]
    robustness: Floats


@metric("irs", "IRS", draw=drawn_values, inputs=codes_by_factor)
def irs(
    codes: Sequence[ArrayLike],
    values: Sequence[ArrayLike],
    held: Sequence[int] | None = None,
    num_factors: int | None = None,
    quantile: Share = 0.99,
) -> IrsResult:
    """Interventional robustness: how little a latent moves when all factors but its own change; mean over latents.

    `codes[i]` (samples, latents) are those of images in which factor i (or `held[i]` of `num_factors`) was set to
    `values[i]` (samples,) and the others left free. The robustness of a latent z, if g is held, is
    1 - E_g[Q(|z - E[z|g]|)] / max |z - E[z]|, with Q the quantile; it is 0 for a latent that never varies and for a
    factor that was set to one value only, or never. The mean is weighted by the largest deviations.
    """
    if len(codes) != len(values) or not len(codes):
        raise UserError(f"expected codes and values for every factor, got them for {len(codes)} and {len(values)}")
    given = [checked(one, in_column(value)) for one, value in zip(codes, values, strict=True)]
    largest = largest_deviation(np.concatenate([one for one, _ in given]))  # (latents,)
    deviations = np.stack([expected_deviation(one, value[:, 0], quantile) for one, value in given], axis=1)
    shares = np.divide(deviations, largest[:, None], out=np.ones_like(deviations), where=largest[:, None] > 0)
    varied = np.array([len(np.unique(value)) > 1 for _, value in given])
    found = np.where(varied & (largest[:, None] > 0), 1 - shares, 0.0)
    robustness = np.zeros((len(found), num_factors or len(given)))
    robustness[:, range(len(given)) if held is None else held] = found
    scores = found.max(axis=1)
    score = float(np.average(scores, weights=largest)) if largest.any() else 0.0
    sizes = {"images": [len(one) for one, _ in given]}
    return IrsResult(score, tuple(scores.tolist()), tuple(largest.tolist()), robustness, settings=sizes)


def largest_deviation(codes: Floats) -> Floats:
    """The largest distance of a code from the mean of its latent, exactly 0 for a constant one: (latents,)."""
    return np.where(np.ptp(codes, axis=0) > 0, np.abs(codes - codes.mean(axis=0)).max(axis=0), 0.0)


def expected_deviation(codes: Floats, values: Whole, quantile: float) -> Floats:
    """The quantile of the distance from the mean of the images with the same value, mean over all: (latents,)."""
    order = np.argsort(values, kind="stable")
    starts = np.unique(values[order], return_index=True)[1]
    groups = np.split(codes[order], starts[1:])
    quantiles = [np.quantile(np.abs(group - group.mean(axis=0)), quantile, axis=0) for group in groups]
    return np.average(quantiles, axis=0, weights=[len(group) for group in groups])
