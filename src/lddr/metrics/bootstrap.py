"""How much a score would change with other rows: intervals from resampled rows of the one table of codes."""

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from itertools import chain
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lddr.console import LONG, clock
from lddr.data.dataset import stream
from lddr.data.factors import Indices
from lddr.errors import UserError
from lddr.metrics.fitting import side_by_side
from lddr.metrics.metric import Metric, Result, Samples, Tell, UndefinedError
from lddr.metrics.signature import FewSamplesWarning
from lddr.settings import Rule

SHARE = 0.9  # of the resamples lie in the interval
FEWEST, MOST = 20, 100_000  # resamples; fewer have no tails of 5 %


@dataclass(frozen=True)
class Bootstrap:
    """How many resamples there are, none for 0, and the seed that decides which."""

    resamples: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.resamples != 0:
            Rule(0, "", int, at_least=FEWEST, at_most=MOST).fitting("bootstrap", self.resamples)

    def applies_to(self, metric: Metric) -> bool:
        """Whether a metric gets intervals: whatever is worked out from codes."""
        return self.resamples > 0 and metric.needs != "model"

    def settings_of(self, metric: Metric) -> dict[str, int]:
        """What stands in the settings of an entry."""
        return {"bootstrap": self.resamples} if self.applies_to(metric) else {}

    def scored(self, metric: Metric, samples: Samples, told: Tell, say: Callable[[str], None]) -> Result:
        """The result of a metric, with intervals if they are asked for; `say` hears what they will cost."""
        if not self.applies_to(metric):
            return metric.score(samples, told)
        _check_rows(metric, samples)
        rest = self.resamples - 1
        result = metric.score(samples, lambda part: told(part / (2 + rest)))
        begun, first = perf_counter(), _numbers_of_resamples(metric, samples, self.seed, range(1))
        seconds = perf_counter() - begun
        if seconds * rest > LONG:
            say(f"{metric.name}: {self.resamples} resamples, ETA {clock(seconds * rest)}")
        chunks = _chunks(range(1, self.resamples), seconds)
        tasks, costs = (
            [(metric, samples, self.seed, chunk) for chunk in chunks],
            [float(len(chunk)) for chunk in chunks],
        )
        others = side_by_side(_numbers_of_resamples, tasks, costs, lambda part: told(part * rest / (2 + rest)))
        found = [*first, *chain.from_iterable(others)]
        return replace(result, bootstrap=_summary(_numbers(result), found, metric.labels))


def _check_rows(metric: Metric, samples: Samples) -> None:
    for part, sample in samples.items():
        if metric.needs == "codes" and len(sample) < 2:
            raise UserError(
                f"an interval of {metric.name} comes from resampled rows, and its {part!r} has {len(sample)} row; "
                "give more rows, or leave bootstrap out"
            )


def resampled(samples: Samples, generator: np.random.Generator) -> Samples:
    """As many rows of each part, drawn from that part with replacement: no row gets from one part into another."""
    return {part: sample[drawn_rows(len(sample), generator)] for part, sample in samples.items()}


def drawn_rows(count: int, generator: np.random.Generator) -> Indices:
    """With replacement, in random order but for copies of a row, which stay together.

    So they are in one fold where training rows are divided into folds again.
    """
    times = np.bincount(generator.integers(count, size=count), minlength=count)
    order = generator.permutation(count)
    return np.repeat(order, times[order])


def _chunks(numbers: range, seconds: float) -> list[range]:
    """Resamples that are done in one go, for about half a second: to hand each over alone takes longer than a MIG."""
    size = 1 + min(len(numbers) // 8, int(0.5 / max(seconds, 1e-6)))
    return [numbers[first : first + size] for first in range(0, len(numbers), size)]


def _numbers_of_resamples(metric: Metric, samples: Samples, seed: int, numbers: range) -> list[dict[str, float]]:
    """Those for which the metric is defined; it may not be, say because no factor varies any more."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FewSamplesWarning)  # said of the score itself
        for number in numbers:
            with suppress(UndefinedError):
                drawn = resampled(samples, stream(seed, f"bootstrap {metric.name}", number))
                found.append(_numbers(metric.score(drawn)))
    return found


def _numbers(result: Result) -> dict[str, float]:
    """The score and what else is a single number."""
    values = {entry.name: getattr(result, entry.name) for entry in fields(result)}
    return {name: value for name, value in values.items() if isinstance(value, float)}


def _summary(score: dict[str, float], resamples: list[dict[str, float]], is_share: bool) -> dict[str, Any]:
    facts: dict[str, Any] = {"share": SHARE, "resamples": len(resamples), "intervals": {}, "shifts": {}}
    for name, value in score.items():
        found = np.array([one[name] for one in resamples if name in one])
        if len(found) >= FEWEST:
            facts["intervals"][name], facts["shifts"][name] = interval(value, found, is_share)
    if not facts["intervals"]:
        facts["reason"] = (
            f"only {len(resamples)} of the resamples have a score: too few rows, or factors that hardly vary"
        )
    return facts


def interval(value: float, resamples: NDArray[np.float64], is_share: bool) -> tuple[tuple[float, float], float]:
    """The middle 90 % of the resamples, moved so that their median is the value, and by how much they were off.

    A resample has 63 % of the distinct rows, which moves all of them: information seems more, classifiers learn less.
    What lies in [0, 1] by nature stays there.
    """
    low, middle, high = np.quantile(resamples, [(1 - SHARE) / 2, 0.5, (1 + SHARE) / 2])
    shift = middle - value
    least = 0.0 if min(resamples.min(), value) >= 0 else -np.inf
    most = 1.0 if is_share and max(resamples.max(), value) <= 1 else np.inf
    return (float(max(low - shift, least)), float(min(high - shift, most))), float(shift)
