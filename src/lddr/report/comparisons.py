"""Gaussian against discrete: the scores of all runs as half violins, and which has the better median how often."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from lddr.metrics.information import Floats
from lddr.metrics.metric import UndefinedError
from lddr.report.figures import by_dataset, figure, figures, of_model, scores_of, unsupervised
from lddr.report.style import (
    INK,
    PAPER,
    SIX_METRICS,
    colour,
    dataset_title,
    metric_title,
    model_title,
    new_figure,
    styled,
)
from lddr.runs.index import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAIRS = (  # the same objective with Gaussian and with discrete latents
    ("vae", "dvae"),
    ("factor-vae", "factor-dvae"),
    ("beta-vae", "beta-dvae"),
    ("annealed-vae", "annealed-dvae"),
    ("beta-tcvae", "tc-dvae"),
    ("dip-vae-i", "dip-dvae-i"),
    ("dip-vae-ii", "dip-dvae-ii"),
)
FEWEST = 2  # runs of each
HALF = 0.42  # the width of half a violin


@dataclass(frozen=True)
class Case:
    """One metric on one dataset: the scores of two models."""

    dataset: str
    metric: str
    models: tuple[str, str]
    gaussian: tuple[float, ...]
    discrete: tuple[float, ...]

    @property
    def medians(self) -> tuple[float, float]:
        return float(np.median(self.gaussian)), float(np.median(self.discrete))

    @property
    def gain(self) -> float | None:
        """The improvement of the median, in percent; None over a median of 0."""
        before, after = self.medians
        return 100 * (after / before - 1) if before > 0 else None

    @property
    def is_won(self) -> bool:
        """Whether the discrete model has the larger median."""
        return self.medians[1] > self.medians[0]


def cases(runs: Sequence[Run], models: tuple[str, str], names: Sequence[str] = SIX_METRICS) -> list[Case]:
    """Every dataset and metric for which both models have runs."""
    found = []
    for (dataset, members), metric in product(by_dataset(unsupervised(runs)).items(), names):
        scores = [tuple(scores_of(of_model(members, model), metric)) for model in models]
        if min(map(len, scores)) >= FEWEST:
            found.append(Case(dataset, metric, models, *scores))
    return found


def wins(compared: Sequence[Case]) -> str:
    """How often the discrete model is ahead."""
    return f"better in {sum(case.is_won for case in compared)} of {len(compared)} cases"


def _required(runs: Sequence[Run], pairs: Sequence[tuple[str, str]], names: Sequence[str]) -> list[list[Case]]:
    found = [compared for models in pairs if (compared := cases(runs, models, names))]
    if not found:
        both = " or ".join(f"{model_title(left)} and {model_title(right)}" for left, right in pairs[:2])
        raise UndefinedError(f"there are no two runs each of {both} with the same metric on one dataset")
    return found


# figures


def _metrics_caption(runs: Sequence[Run]) -> str:
    compared = _required(runs, PAIRS[:1], SIX_METRICS)[0]
    return (
        f"{_told(compared)} A row per dataset, a column per metric, with the change of the median below; "
        f"taking all together, the discrete model is {wins(compared)}."
    )


@figure(figures, "metrics", "VAE and D-VAE by every metric on every dataset", 50, _metrics_caption)
def by_metric(runs: Sequence[Run]) -> "Figure":
    """Half violins of the unregularised models, datasets by metrics (paper, Figure 5 left, appendix)."""
    return metric_violins(_required(runs, PAIRS[:1], SIX_METRICS)[0])


def _mig_caption(runs: Sequence[Run]) -> str:
    found = _required(runs, PAIRS, ["mig"])
    return " ".join(f"{_told(compared)} The discrete model is {wins(compared)}." for compared in found)


@figure(figures, "mig", "Gaussian and discrete models by MIG", 51, _mig_caption)
def by_mig(runs: Sequence[Run]) -> "Figure":
    """A panel for each objective, a violin for each dataset (paper, Figures 5 and 6 right)."""
    return dataset_violins(_required(runs, PAIRS, ["mig"]))


def _told(compared: Sequence[Case]) -> str:
    left, right = (model_title(model) for model in compared[0].models)
    counts = [len(case.gaussian) + len(case.discrete) for case in compared]
    many = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    return f"{left} (dark) and {right} (light), {many} runs to a violin; lines are medians."


@styled
def metric_violins(compared: Sequence[Case]) -> "Figure":
    """A row of panels for each dataset, one panel with an axis of its own for each metric."""
    rows = list(dict.fromkeys(case.dataset for case in compared))
    columns = list(dict.fromkeys(case.metric for case in compared))
    drawing = new_figure(1.0 + 1.35 * len(columns), 0.7 + 1.85 * len(rows))
    panels = drawing.subplots(len(rows), len(columns), squeeze=False)
    for axes in panels.ravel():
        axes.set_axis_off()
    for case in compared:
        axes = panels[rows.index(case.dataset), columns.index(case.metric)]
        axes.set_axis_on()
        draw_violins(axes, [case])
        axes.set(xlim=(-0.6, 0.6), xticks=(), xlabel=_gain(case))
        if case is next(other for other in compared if other.metric == case.metric):
            axes.set_title(metric_title(case.metric))
    for row, dataset in zip(panels, rows, strict=True):
        row[0].set_ylabel(dataset_title(dataset), fontweight="bold")
    _legend(drawing, compared[0].models, wins(compared))
    return drawing


@styled
def dataset_violins(found: Sequence[Sequence[Case]]) -> "Figure":
    """A panel for each pair of models, with the datasets along its axis."""
    columns = min(2, len(found))
    widest = max(len(compared) for compared in found)
    drawing = new_figure(columns * (1.2 + 1.15 * max(widest, 2)), 3.1 * ceil(len(found) / columns))
    panels = drawing.subplots(ceil(len(found) / columns), columns, squeeze=False).ravel()
    for axes in panels[len(found) :]:
        axes.set_axis_off()
    for axes, compared in zip(panels, found, strict=False):
        draw_violins(axes, compared)
        labels = [f"{dataset_title(case.dataset)}\n{_gain(case)}" for case in compared]
        axes.set_xticks(range(len(compared)), labels)
        top = max(max(case.gaussian + case.discrete) for case in compared)
        axes.set(xlim=(-0.6, len(compared) - 0.4), ylim=(0, 1.2 * top), ylabel=metric_title(compared[0].metric))
        axes.set_title(f"{model_title(compared[0].models[1])} {wins(compared)}")
        axes.legend(handles=_handles(compared[0].models), loc="upper center", ncols=2)
    return drawing


def draw_violins(axes: "Axes", compared: Sequence[Case]) -> None:
    """A violin per case: the Gaussian's half to the left, the discrete one's to the right, with medians."""
    for place, case in enumerate(compared):
        scores = case.gaussian, case.discrete
        for model, values, side, median in zip(case.models, scores, (-1, 1), case.medians, strict=True):
            heights, widths = profile(np.array(values))
            axes.fill_betweenx(heights, place, place + side * HALF * widths, color=colour(model), linewidth=0)
            axes.plot(place + side * HALF * widths, heights, color=INK, linewidth=0.5)
            end = place + side * HALF * np.interp(median, heights, widths)
            ink = INK if side > 0 else PAPER  # on light, on dark
            axes.plot((place, end), (median, median), color=ink, linewidth=1.8, solid_capstyle="butt")
    axes.grid(axis="y")
    axes.tick_params(axis="x", length=0)


def profile(values: Floats, points: int = 101) -> tuple[Floats, Floats]:
    """A kernel density estimate from the smallest to the largest score, its maximum 1: (points,) each."""
    from scipy.stats import gaussian_kde

    low, high = values.min(), values.max()
    if high - low < 1e-9:  # all alike: a thin line
        return np.array([low - 1e-3, low + 1e-3]), np.ones(2)
    heights = np.linspace(low, high, points)
    widths = gaussian_kde(values)(heights)
    return heights, widths / widths.max()


def _gain(case: Case) -> str:
    return "" if case.gain is None else f"{case.gain:+.0f} %".replace("-", "−")


def _handles(models: tuple[str, str]) -> list:
    from matplotlib.patches import Patch

    return [Patch(facecolor=colour(model), edgecolor=INK, linewidth=0.5, label=model_title(model)) for model in models]


def _legend(drawing: "Figure", models: tuple[str, str], told: str) -> None:
    title = f"{model_title(models[1])} {told}; below each panel: change of the median"
    drawing.legend(handles=_handles(models), loc="outside lower center", ncols=2, title=title, title_fontsize=9)
