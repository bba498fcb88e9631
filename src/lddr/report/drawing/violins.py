"""Scores of two families as half violins, the Gaussian's half to the left and the discrete one's to the right."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lddr.metrics.information import Floats
from lddr.report.few import few_mark, few_told
from lddr.report.pairs import Case, Pair, wins
from lddr.report.palette import colour
from lddr.report.style import INK, PAPER, Axes
from lddr.report.titles import model_title

if TYPE_CHECKING:
    from matplotlib.patches import Patch

HALF = 0.42  # the width of half a violin


def draw_violins(axes: Axes, cases: Sequence[Case]) -> None:
    """A violin per case, with medians; points for a model with few runs."""
    for place, case in enumerate(cases):
        scores = case.gaussian, case.discrete
        for model, values, side, median in zip(case.models, scores, (-1, 1), case.medians, strict=True):
            if few_mark(len(values)):
                look: Any = {"color": colour(model), "markeredgecolor": INK, "markeredgewidth": 0.4, "markersize": 4.5}
                axes.plot(np.full(len(values), place + side * HALF / 2), values, "o", **look)
                axes.plot((place, place + side * HALF), (median, median), color=INK, linewidth=1.8)
                continue
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


def handles(models: Pair) -> list["Patch"]:
    """What a legend shows of two models."""
    from matplotlib.patches import Patch

    return [Patch(facecolor=colour(model), edgecolor=INK, linewidth=0.5, label=model_title(model)) for model in models]


def gain_text(case: Case) -> str:
    """The change of the median as it stands beside a violin."""
    return "" if case.gain is None else f"{case.gain:+.0f} %{few_mark(case.fewest)}".replace("-", "−")


def violins_told(cases: Sequence[Case]) -> str:
    """What the halves are, and of how many runs."""
    left, right = (model_title(model) for model in cases[0].models)
    counts = [len(case.gaussian) + len(case.discrete) for case in cases]
    many = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    few = few_told(wins(cases)).replace(":", " and points:", 1)
    return f"{left} (dark) and {right} (light), {many} runs to a violin; lines are medians.{few}"
