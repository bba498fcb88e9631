"""Interventional robustness: does a latent stay put while all factors but its own change? (Suter et al. 2019)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.factors import FactorSpace
from lddr.errors import UserError
from lddr.metrics.information import Floats, Whole, checked
from lddr.metrics.interventions import held_samples, holdable, occurring
from lddr.metrics.metric import Draws, Metric, Result, Sample, metrics


@dataclass(frozen=True)
class IrsResult(Result):
    """The weighted mean, the score and the weight of every latent, and the robustness (latents, factors) behind it."""

    per_latent: tuple[float, ...]
    weights: tuple[float, ...]
    robustness: Floats


def irs(codes: Sequence[ArrayLike], values: Sequence[ArrayLike], quantile: float = 0.99) -> IrsResult:
    """The robustness of each latent to all factors but its best, averaged over the latents by their largest deviation.

    `codes[i]` (samples, latents) are those of images in which factor i was set to `values[i]` (samples,) and the
    others left free. The robustness of a latent z, if g is held, is 1 - E_g[Q(|z - E[z|g]|)] / max |z - E[z]|, with Q
    the quantile; it is 0 for a latent that never varies and for a factor that was set to one value only.
    """
    if len(codes) != len(values) or not len(codes):
        raise UserError(f"expected codes and values for every factor, got them for {len(codes)} and {len(values)}")
    held = [checked(one, np.reshape(value, (-1, 1))) for one, value in zip(codes, values, strict=True)]
    largest = largest_deviation(np.concatenate([one for one, _ in held]))  # (latents,)
    deviations = np.stack([expected_deviation(one, value[:, 0], quantile) for one, value in held], axis=1)
    shares = np.divide(deviations, largest[:, None], out=np.ones_like(deviations), where=largest[:, None] > 0)
    varied = np.array([len(np.unique(value)) > 1 for _, value in held])
    robustness = np.where(varied & (largest[:, None] > 0), 1 - shares, 0.0)
    scores = robustness.max(axis=1)
    score = float(np.average(scores, weights=largest)) if largest.any() else 0.0
    settings = {"quantile": quantile, "images": [len(one) for one, _ in held]}
    return IrsResult(score, tuple(scores.tolist()), tuple(largest.tolist()), robustness, settings=settings)


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


def evenly_chosen(values: Whole, at_most: int) -> Whole:
    """All values, or evenly chosen ones where there are too many."""
    return values[np.linspace(0, len(values) - 1, min(len(values), at_most)).round().astype(np.int64)]


@metrics.register("irs")
@dataclass(frozen=True)
class Irs(Metric):
    """The interventional robustness score, from about `samples` images per factor, equally many of each value."""

    title = "IRS"
    needs = "interventions"
    samples: int = 10_000
    max_values: int = 50
    quantile: float = 0.99

    def draw(self, space: FactorSpace, generator: np.random.Generator) -> Draws:
        draws: Draws = {}
        for factor in holdable(space, at_least=1):
            values = evenly_chosen(occurring(space, factor), self.max_values)
            images = -(-self.samples // len(values))
            draws[f"factor {factor}"] = space.sample_with(generator, factor, np.repeat(values, images))
        return draws

    def score(self, samples: Mapping[str, Sample]) -> IrsResult:
        held = held_samples(samples, "factor")
        values = [sample.factors[:, factor] for factor, sample in held.items()]
        result = irs([sample.codes for sample in held.values()], values, self.quantile)
        num_factors = next(iter(held.values())).factors.shape[-1]
        robustness = np.zeros((len(result.robustness), num_factors))
        robustness[:, list(held)] = result.robustness
        settings = result.settings | {"samples": self.samples, "max_values": self.max_values}
        return replace(result, robustness=robustness, settings=settings)
