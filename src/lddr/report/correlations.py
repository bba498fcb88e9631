"""Spearman heat maps: selectors against metrics, metrics against statistical efficiency (paper, Figures 4 and 6)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from lddr.metrics.information import Floats
from lddr.metrics.metric import UndefinedError
from lddr.report.figures import by_dataset, figure, figures, of_model, unsupervised
from lddr.report.style import (
    DIVERGING,
    PAPER,
    SIX_METRICS,
    dataset_title,
    is_discrete,
    metric_title,
    model_title,
    new_figure,
    styled,
)
from lddr.runs.index import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS = (*SIX_METRICS, "explicitness", "mig_sup", "infomec", "irs")
EFFICIENCIES = {
    "downstream_logistic.efficiency": "logistic regression",
    "downstream_boosting.efficiency": "gradient boosted trees",
}
FEWEST = 3  # runs a rank correlation is worked out from
SELECTOR_TITLES = {
    "gap": "Gap$_{ST}$",
    "relative": "Gap$_{ST}$, relative",
    "discreteness": "confidence",
    "elbo": "ELBO",
    "reconstruction": "reconstruction",
    "independence": "total correlation",
}


@dataclass(frozen=True)
class HeatMap:
    """Rank correlations of row scores with column scores; NaN where there are too few runs or all are alike."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats  # (rows, columns)


def spearman(left: Sequence[float | None], right: Sequence[float | None]) -> float:
    """The rank correlation over the runs that have both scores; NaN where it says nothing."""
    from scipy.stats import rankdata

    pairs = np.array([(a, b) for a, b in zip(left, right, strict=True) if a is not None and b is not None], np.float64)
    if len(pairs) < FEWEST or (pairs == pairs[0]).all(axis=0).any():
        return float("nan")
    return float(np.corrcoef(rankdata(pairs, axis=0).T)[0, 1])


def correlations(left: Mapping[str, Sequence], right: Mapping[str, Sequence], title: str = "") -> HeatMap:
    """Every score of the left, as rows, with every one of the right, as columns."""
    values = [[spearman(row, column) for column in right.values()] for row in left.values()]
    return HeatMap(title, tuple(left), tuple(right), np.array(values).reshape(len(left), len(right)))


@styled
def heat_maps(maps: Sequence[HeatMap], row_label: str = "", column_label: str = "") -> "Figure":
    """Heat maps side by side, at most three in a row, under one colour bar."""
    columns = min(3, len(maps))
    rows = ceil(len(maps) / columns)
    shape = max(len(drawn.rows) for drawn in maps), max(len(drawn.columns) for drawn in maps)
    drawing = new_figure(1.7 + columns * (0.52 * shape[1] + 0.3), 1.1 + rows * (0.34 * shape[0] + 0.9))
    panels = drawing.subplots(rows, columns, squeeze=False, sharey=len({drawn.rows for drawn in maps}) == 1)
    for axes in panels.ravel()[len(maps) :]:
        axes.set_axis_off()
    for axes, drawn in zip(panels.ravel(), maps, strict=False):
        _draw_map(axes, drawn, column_label)
    for axes in panels[:, 0]:
        axes.set_ylabel(row_label)
    bar = drawing.colorbar(panels[0, 0].images[0], ax=panels, shrink=0.8, aspect=30, pad=0.02)
    bar.set_label("Spearman correlation")
    bar.outline.set_visible(False)
    return drawing


def _draw_map(axes: "Axes", drawn: HeatMap, label: str) -> None:
    import matplotlib

    colours = matplotlib.colormaps[DIVERGING].with_extremes(bad="#eeeeee")
    axes.imshow(drawn.values, cmap=colours, vmin=-1, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(drawn.values):
        ink = PAPER if abs(value) > 0.65 else "#222222"
        text = "–" if np.isnan(value) else f"{value:.2f}".replace("-", "−")
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=ink)
    axes.set_xticks(range(len(drawn.columns)), drawn.columns, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(drawn.rows)), drawn.rows)
    axes.set_xticks(np.arange(1, len(drawn.columns)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(drawn.rows)) - 0.5, minor=True)
    axes.grid(which="minor", color=PAPER, linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
    axes.set(title=drawn.title, xlabel=label)


# selectors


def selector_columns(runs: Sequence[Run]) -> dict[str, list[float | None]]:
    """Each selector that needs nothing but scores, turned so that larger means chosen first."""
    from lddr.sweeps.selectors import Candidates, selectors

    columns: dict[str, list[float | None]] = {}
    for name, title in SELECTOR_TITLES.items():
        selector = selectors[name]
        verdicts = selector.measure(Candidates(runs, lambda run: "is not encoded for a report"))
        values = [None if isinstance(verdict, str) else selector.sign * verdict for verdict in verdicts]
        if any(value is not None for value in values):
            columns[f"{'small' if selector.sign < 0 else 'large'} {title}"] = values
    return columns


def metric_columns(runs: Sequence[Run]) -> dict[str, list[float | None]]:
    """The metrics that some run has, by their titles."""
    columns = {metric_title(metric): [run.number(metric) for run in runs] for metric in METRICS}
    return {title: values for title, values in columns.items() if any(value is not None for value in values)}


def selector_maps(runs: Sequence[Run], models: Sequence[str] | None = None) -> list[HeatMap]:
    """A map per dataset, of all discrete models together or of those named."""
    maps = []
    discrete = [run for run in unsupervised(runs) if is_discrete(str(run.value("model")))]
    for dataset, members in by_dataset(
        [run for run in discrete if models is None or run.value("model") in models]
    ).items():
        left, right = selector_columns(members), metric_columns(members)
        if len(members) >= FEWEST and left and right:
            maps.append(correlations(left, right, f"{dataset_title(dataset)} ({len(members)} runs)"))
    return maps


def _kinds(runs: Sequence[Run]) -> list[str]:
    """The discrete models among the runs."""
    found = dict.fromkeys(str(run.value("model")) for run in unsupervised(runs))
    return [model for model in found if is_discrete(model)]


SELECTORS_TOLD = (
    "Spearman correlation of what can be known without labels with what needs them. Selectors are turned so that a "
    "positive number means that the choice is good: a small Gap_ST goes with a large score."
)


@figure(figures, "selectors", "Choosing a D-VAE without labels", 40, lambda runs: SELECTORS_TOLD)
def selectors_of_dvae(runs: Sequence[Run]) -> "Figure":
    """Selectors against metrics, D-VAE only (paper, Figure 4 left)."""
    maps = selector_maps(runs, ["dvae"])
    if not maps:
        raise UndefinedError(
            f"there are no {FEWEST} runs of the D-VAE on one dataset with metrics; "
            "train more seeds, then: lddr evaluate RUN --metrics gap,mig"
        )
    return heat_maps(maps)


def _combined_caption(runs: Sequence[Run]) -> str:
    return f"{SELECTORS_TOLD} Models: {', '.join(map(model_title, _kinds(runs)))}, ranked together."


@figure(figures, "selectors-combined", "Choosing among all discrete models without labels", 41, _combined_caption)
def selectors_of_all(runs: Sequence[Run]) -> "Figure":
    """Selectors against metrics, all discrete models together (paper, Figure 6 left)."""
    maps = selector_maps(runs) if len(_kinds(runs)) > 1 else []
    if not maps:
        raise UndefinedError("there are no runs of two discrete models, D-VAE and FactorDVAE say, on one dataset")
    return heat_maps(maps)


# statistical efficiency


def efficiency_maps(runs: Sequence[Run]) -> list[HeatMap]:
    """A map per learner, of the D-VAE: metrics as rows, datasets as columns."""
    chosen = of_model(unsupervised(runs), "dvae")
    groups, titles = by_dataset(chosen), list(metric_columns(chosen))
    maps = []
    for score, learner in EFFICIENCIES.items():
        columns = {
            dataset_title(dataset): [
                spearman(
                    metric_columns(members).get(title, [None] * len(members)), [run.number(score) for run in members]
                )
                for title in titles
            ]
            for dataset, members in groups.items()
        }
        known = {dataset: values for dataset, values in columns.items() if not np.isnan(values).all()}
        if known:
            maps.append(HeatMap(learner, tuple(titles), tuple(known), np.array(list(known.values())).T))
    return maps


EFFICIENCY_TOLD = (
    "Spearman correlation of the metrics of the D-VAE with its statistical efficiency: the accuracy of predicting the "
    "factors from 100 labelled codes over the accuracy from 10 000."
)


@figure(figures, "efficiency", "Metrics against statistical efficiency of the D-VAE", 42, lambda runs: EFFICIENCY_TOLD)
def efficiency(runs: Sequence[Run]) -> "Figure":
    """Metrics against efficiency for both learners (paper, Figure 4 right, appendix)."""
    maps = efficiency_maps(runs)
    if not maps:
        raise UndefinedError(
            f"there are no {FEWEST} runs of the D-VAE on one dataset with metrics and downstream scores; "
            "get them with: lddr evaluate RUN --metrics mig,downstream_logistic"
        )
    return heat_maps(maps)
