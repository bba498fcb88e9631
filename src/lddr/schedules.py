"""Schedules: settings that change while a model trains, as functions of the step alone."""

import math


def cosine(start: float, end: float, step: int, steps: int) -> float:
    """Return half a cosine from `start` at step 0 to `end` at step `steps`, just after the last one; constant outside.

    The paper's Gumbel scale goes from 0.5 to 2.0 this way over all training steps, as in the authors' code.
    """
    return _between(start, end, (1 - math.cos(math.pi * _fraction(step, steps))) / 2)


def linear(start: float, end: float, step: int, steps: int) -> float:
    """Return a line from `start` at step 0 to `end` at step `steps`, constant outside: AnnealedVAE's capacity."""
    return _between(start, end, _fraction(step, steps))


def _fraction(step: int, steps: int) -> float:
    return min(max(step / max(steps, 1), 0.0), 1.0)


def _between(start: float, end: float, weight: float) -> float:
    return (1 - weight) * start + weight * end  # exact at both ends, which start + weight * (end - start) is not
