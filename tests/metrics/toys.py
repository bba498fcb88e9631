"""Codes with known answers: a function of the factors, or a table with a row per image."""

import numpy as np

from lddr.metrics.metric import CodeTable, Sample


class Toy(CodeTable):
    """It remembers its largest look-up."""

    def __init__(self, space, code):
        self.space, self.code, self.largest = space, code, 0

    def codes_of(self, indices):
        self.largest = max(self.largest, indices.size)
        return self.code(self.space.factors_of(indices).astype(float)) if callable(self.code) else self.code[indices]

    def factors_of(self, indices):
        return self.space.factors_of(indices)


def scored(metric, space, code, seed=0):
    """The result of a metric that draws from a space whose codes these are."""
    table = code if isinstance(code, Toy) else Toy(space, code)
    draws = metric.draw(space, np.random.default_rng(seed))
    return metric.score({part: Sample(indices, table) for part, indices in draws.items()})


def mixed(factors):
    """Four factors in three latents that each have something of all."""
    return factors @ np.random.default_rng(2).normal(size=(4, 3))
