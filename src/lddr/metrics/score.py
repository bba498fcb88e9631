"""Scores of codes that come from anywhere, as arrays."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lddr.console import TaskBars
from lddr.data.columns import factor_table_of
from lddr.data.factors import FactorTable
from lddr.metrics.bootstrap import Bootstrap
from lddr.metrics.choice import MetricSettings, Names, configured
from lddr.metrics.evaluate import Entries, draw_settings, entries_of, of_few_labels, warn_of_few
from lddr.metrics.fitting import cores
from lddr.metrics.information import checked
from lddr.metrics.metric import Metric, Result, Tell, UndefinedError
from lddr.metrics.plan import check_factors, divided, labelled, scorable
from lddr.metrics.samples import EncodedImages


def score_codes(
    codes: ArrayLike,
    factors: Any,
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

    `factors` may also be a DataFrame or a dict of columns. A value is unknown if it is NaN, None or "", or -1 in a
    column without other negative numbers; samples with an unknown value are left out where factors are needed.

    Metrics that train have the samples divided at random, in the proportion of the published sizes and never above
    them. `bins` is how many bins a continuous factor is put into (None: it is left out); `bootstrap` is how many
    resamples of the rows give every score a 90 % interval, under "bootstrap" of its entry (0: none).
    """
    common, resampling = draw_settings(seed, bins), Bootstrap(bootstrap, seed)
    table = factors if isinstance(factors, FactorTable) else factor_table_of(factors)
    space, left_out = scorable(table, bins)
    values, _ = checked(codes, np.zeros((space.size, 1), np.int64))
    encoded = EncodedImages(space, np.arange(space.size), values)
    known, rows = labelled(space)

    def result(metric: Metric, told: Tell) -> Result:
        if metric.needs == "interventions":
            raise UndefinedError(
                f"{metric.title} looks at images with one factor held: it needs the dataset and a way to encode it, "
                "with lddr evaluate RUN or lddr.evaluate(dataset, represent)"
            )
        check_factors(metric, known)
        if metric.labels and rows is not None:
            draws = {part: rows[numbers] for part, numbers in divided(metric, len(rows), seed).items()}
        else:
            draws = divided(metric, space.size, seed)
        return resampling.scored(metric, encoded.samples(draws), told, bars.line)

    few = of_few_labels(space, "samples")
    with TaskBars(quiet) as bars, cores(jobs):
        entries = entries_of(configured(names, settings), result, common, left_out, bars, resampling, few)
    warn_of_few(entries)
    return entries
