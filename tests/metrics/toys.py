"""Codes with known answers: a function of the factors, or a table with a row per image."""

import numpy as np

from lddr.data.factors import Factor, FactorTable
from lddr.metrics.metric import EncodedImages, SampleSet


class Toy(EncodedImages):
    """Codes that are worked out when they are looked up; it remembers its largest look-up."""

    def __init__(self, space, code):
        self.space, self.code, self.largest = space, code, 0

    def codes_of(self, indices):
        self.largest = max(self.largest, indices.size)
        return self.code(self.space.factors_of(indices).astype(float)) if callable(self.code) else self.code[indices]


def sample_of(codes, factors):
    """Given codes and factors, as a drawn part."""
    space = FactorTable(
        [Factor(f"factor {place}", int(column.max()) + 1) for place, column in enumerate(factors.T)], factors
    )
    return SampleSet(np.arange(len(codes)), EncodedImages(space, np.arange(len(codes)), codes))


def scored(metric, space, code, seed=0):
    """The result of a metric that draws from a space whose codes these are."""
    table = code if isinstance(code, Toy) else Toy(space, code)
    return metric.score(table.samples(metric.draw(space, np.random.default_rng(seed))))


def mixed(factors):
    """Four factors in three latents that each have something of all."""
    return factors @ np.random.default_rng(2).normal(size=(4, 3))
