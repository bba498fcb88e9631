"""Scores of codes that come from anywhere: arrays, or an .npz file that any framework can write."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.console import TaskBars
from lddr.data.columns import columns_of_npz, factor_table
from lddr.data.dataset import stream
from lddr.data.factors import FactorTable, Indices
from lddr.errors import UserError
from lddr.metrics.choice import MetricSettings, configured
from lddr.metrics.evaluate import Entries, entries_of
from lddr.metrics.fitting import cores
from lddr.metrics.information import checked
from lddr.metrics.metric import Metric, Result, Tell, UndefinedError
from lddr.metrics.plan import check_factors, scorable
from lddr.metrics.samples import Draws, EncodedImages


def score_codes(
    codes: ArrayLike,
    factors: ArrayLike | FactorTable,
    names: Iterable[str] | None = None,
    *,
    settings: MetricSettings | None = None,
    seed: int = 0,
    jobs: int = -1,
    bins: int | None = None,
    quiet: bool = False,
) -> Entries:
    """Scores of codes (samples, latents) with factors (samples, factors); what needs images or a model says so.

    Metrics that train have the samples divided at random, in the proportion of the published sizes and never above
    them. `bins` is how many bins a continuous factor is put into (None: it is left out).
    """
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
        return metric.score(known.samples(divided(metric, space.size, seed)), told)

    with TaskBars(quiet) as bars, cores(jobs):
        return entries_of(configured(names, settings), result, {"draw_seed": seed, "bins": bins}, left_out, bars)


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


def read_codes(path: Path) -> tuple[NDArray, FactorTable]:
    """The arrays `codes` (samples, latents), `factors` (samples, factors) and `factor_names` of an .npz file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            if "codes" not in file:
                raise UserError(f"{path} has no array 'codes'; it has: {', '.join(file.files) or 'nothing'}")
            codes = file["codes"]
    except FileNotFoundError as error:
        raise UserError(f"there is no file {path}") from error
    except (ValueError, OSError) as error:
        raise UserError(f"{path} cannot be read as an .npz file of numbers ({error})") from error
    if codes.ndim != 2:
        raise UserError(f"'codes' in {path} has the shape {codes.shape}; save it as (samples, latents)")
    return codes, factor_table(columns_of_npz(path, len(codes)), len(codes))


def _table(factors: ArrayLike) -> FactorTable:
    array = np.asarray(factors)
    if array.ndim != 2:
        raise UserError(f"expected factors of shape (samples, factors), got {array.shape}")
    return factor_table({f"factor {place}": column for place, column in enumerate(array.T)}, len(array))
