"""Scores of codes that come from anywhere, as arrays."""

import numpy as np
from numpy.typing import ArrayLike

from lddr.arrays import as_array
from lddr.console import TaskBars
from lddr.data.columns import factor_table
from lddr.data.dataset import stream
from lddr.data.factors import FactorTable, Indices
from lddr.errors import UserError
from lddr.metrics.bootstrap import Bootstrap
from lddr.metrics.choice import MetricSettings, Names, configured
from lddr.metrics.evaluate import Entries, draw_settings, entries_of, warn_of_few
from lddr.metrics.fitting import cores
from lddr.metrics.information import checked
from lddr.metrics.metric import Metric, Result, Tell, UndefinedError
from lddr.metrics.plan import check_factors, scorable
from lddr.metrics.samples import Draws, EncodedImages


def score_codes(
    codes: ArrayLike,
    factors: ArrayLike | FactorTable,
    names: Names = None,
    *,
    settings: MetricSettings | None = None,
    seed: int = 0,
    jobs: int = -1,
    bins: int | None = None,
    bootstrap: int = 0,
    quiet: bool = False,
) -> Entries:
    """Scores of codes (samples, latents) with factors (samples, factors); what needs images or a model says so.

    Metrics that train have the samples divided at random, in the proportion of the published sizes and never above
    them. `bins` is how many bins a continuous factor is put into (None: it is left out); `bootstrap` is how many
    resamples of the rows give every score a 90 % interval, under "bootstrap" of its entry (0: none).
    """
    common, resampling = draw_settings(seed, bins), Bootstrap(bootstrap, seed)
    table = factors if isinstance(factors, FactorTable) else _table(factors)
    space, left_out = scorable(table, bins)
    values, _ = checked(codes, np.zeros((space.size, 1), np.int64))
    known = EncodedImages(space, np.arange(space.size), values)

    def result(metric: Metric, told: Tell) -> Result:
        if metric.needs == "interventions":
            raise UndefinedError(
                f"{metric.title} looks at images with one factor held: it needs the dataset and a way to encode it, "
                "with lddr evaluate RUN or lddr.evaluate(dataset, represent)"
            )
        check_factors(metric, space)
        return resampling.scored(metric, known.samples(divided(metric, space.size, seed)), told, bars.line)

    with TaskBars(quiet) as bars, cores(jobs):
        entries = entries_of(configured(names, settings), result, common, left_out, bars, resampling)
    warn_of_few(entries)
    return entries


def divided(metric: Metric, count: int, seed: int) -> Draws:
    """Samples 0 … count - 1, each in at most one part of the metric, in the proportion of the parts' sizes."""
    wanted = metric.parts
    if not wanted:
        return {}
    share = min(1.0, count / sum(wanted.values()))
    order: Indices = stream(seed, f"metric {metric.name}").permutation(count)
    ends = np.cumsum([round(share * size) for size in wanted.values()])
    if share < 1:
        ends[-1] = count
    return {part: order[first:last] for part, first, last in zip(wanted, [0, *ends], ends, strict=False)}


def _table(factors: ArrayLike) -> FactorTable:
    array = as_array(factors)
    if array.ndim != 2:
        raise UserError(f"expected factors of shape (samples, factors), got {array.shape}")
    return factor_table({f"factor {place}": column for place, column in enumerate(array.T)}, len(array))
