"""Violins, heat maps and curves."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lddr.errors import UserError
from lddr.metrics.information import Floats
from lddr.metrics.metric import UndefinedError
from lddr.report.pairs import Case, Pair, wins
from lddr.report.palette import colour, marker
from lddr.report.ranks import RunColumns, spearman
from lddr.report.style import DIVERGING, INK, PAPER, Axes, Figure, house_style, paneled, text_width
from lddr.report.titles import few_mark, few_told, model_title
from lddr.runs.index import Run

if TYPE_CHECKING:
    from matplotlib.colorbar import Colorbar
    from matplotlib.patches import Patch

HALF = 0.42  # half the width of a violin


def draw_violins(axes: Axes, cases: Sequence[Case]) -> None:
    """Draw a violin per case, with medians; a model with few runs gets points."""
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
    """Return a kernel density estimate between the smallest and largest score, with maximum 1: (points,) each."""
    from scipy.stats import gaussian_kde

    low, high = values.min(), values.max()
    if high - low < 1e-9:  # all equal: a thin line
        return np.array([low - 1e-3, low + 1e-3]), np.ones(2)
    heights = np.linspace(low, high, points)
    widths = gaussian_kde(values)(heights)
    return heights, widths / widths.max()


def handles(models: Pair) -> list["Patch"]:
    """Return the legend entries of two models."""
    from matplotlib.patches import Patch

    return [Patch(facecolor=colour(model), edgecolor=INK, linewidth=0.5, label=model_title(model)) for model in models]


def gain_text(case: Case) -> str:
    """Format the change of the median that is printed next to a violin."""
    return "" if case.gain is None else f"{case.gain:+.0f} %{few_mark(case.fewest)}".replace("-", "−")


def violins_told(cases: Sequence[Case]) -> str:
    """Describe the halves of the violins, and the number of runs."""
    left, right = (model_title(model) for model in cases[0].models)
    counts = [len(case.gaussian) + len(case.discrete) for case in cases]
    many = f"{min(counts)}" if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    few = few_told(wins(cases)).replace(":", " and points:", 1)
    return f"{left} (dark) and {right} (light), {many} runs to a violin; lines are medians.{few}"


@dataclass(frozen=True)
class HeatMap:
    """Rank correlations of row scores with column scores; NaN if there are too few runs or all are equal."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats  # (rows, columns)


def correlations(left: RunColumns, right: RunColumns, title: str = "") -> HeatMap:
    """Correlate every score of `left` (rows) with every score of `right` (columns)."""
    values = [[spearman(row, column) for column in right.values()] for row in left.values()]
    return HeatMap(title, tuple(left), tuple(right), np.array(values).reshape(len(left), len(right)))


@house_style()
def heat_maps(maps: Sequence[HeatMap]) -> Figure:
    """Draw heat maps side by side, at most three in a row, with one colour bar."""
    rows, columns = max(len(drawn.rows) for drawn in maps), max(len(drawn.columns) for drawn in maps)
    widest = max(text_width(drawn.title) for drawn in maps)
    size, alike = (max(0.52 * columns + 0.3, widest + 0.2), 0.34 * rows + 0.9), len({drawn.rows for drawn in maps}) == 1
    figure, panels = paneled(len(maps), 3, size, (1.7, 1.1), sharey=alike)
    for axes, drawn in zip(panels, maps, strict=True):
        draw_matrix(axes, drawn.values, drawn.rows, drawn.columns, DIVERGING, -1)
        axes.set_title(drawn.title)
    colour_bar(figure, panels, "Spearman correlation")
    return figure


def draw_matrix(
    axes: Axes, values: Floats, rows: Sequence[str], columns: Sequence[str], colours: str, lowest: float
) -> None:
    """Draw a cell for each number, with colours from `lowest` to 1."""
    import matplotlib

    colour_map = matplotlib.colormaps[colours].with_extremes(bad="#eeeeee")
    axes.imshow(values, cmap=colour_map, vmin=lowest, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        ink = PAPER if abs(value) > 0.65 else INK
        text = "–" if np.isnan(value) else f"{value:.2f}".replace("-", "−")
        axes.text(column, row, text, ha="center", va="center", fontsize=7.5, color=ink)
    axes.set_xticks(range(len(columns)), columns, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(np.arange(1, len(columns)) - 0.5, minor=True)
    axes.set_yticks(np.arange(1, len(rows)) - 0.5, minor=True)
    axes.grid(which="minor", color=PAPER, linewidth=1.5)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)


def colour_bar(figure: Figure, panels: Sequence[Axes], label: str) -> "Colorbar":
    """Draw the colour bar of all panels."""
    bar = figure.colorbar(panels[0].images[0], ax=panels, label=label, shrink=0.8, aspect=30, pad=0.02)
    bar.outline.set_visible(False)
    return bar


NOISE_TOLD = (
    "While the noise grows, a discrete model's training ELBO falls although the model may go on improving: every "
    "reconstruction is made from a noisier code. The score elbo_noiseless is without noise."
)
ENDLESS = 1e30  # nats: no loss term is this large
SHORT = 15  # with at most this many records, all are shown


def logged(run: Run) -> dict[str, Floats]:
    """Return every recorded loss term, and the steps, as columns; NaN where a record has no value."""
    records = [record for record in run.files.log if np.isfinite(_number(record["step"]))]
    names = dict.fromkeys(name for record in records for name in record if name.isprintable())
    columns = {name: np.array([_number(record.get(name)) for record in records]) for name in names}
    kept = {name: values for name, values in columns.items() if np.isfinite(values).any()}
    if kept.keys() <= {"step", "loss"}:
        raise UndefinedError(f"the log of {run.name} is empty; train it further")
    return kept


def _number(value: Any) -> float:
    """Return NaN for anything that cannot be drawn: values that are not numbers, or implausibly large."""
    return float(value) if type(value) in (int, float) and abs(value) < ENDLESS else np.nan


def noise_scale(run: Run, steps: Floats) -> Floats | None:
    """Return the latent's noise scale at these steps; None if it is constant."""
    with suppress(UserError):
        latent, last = run.files.config.latent.build(), run.files.config.training.steps
        if latent.noise_scale(0, last) != latent.noise_scale(last, last):
            return np.array([latent.noise_scale(int(step), last) for step in steps])
    return None


def settled(values: Floats) -> tuple[float, float]:
    """Return the range without the first tenth, which is steep and would flatten the rest."""
    later = values[len(values) // 10 if len(values) > SHORT else 0 :]
    room = 0.06 * max(float(np.ptp(later)), 0.01 * float(np.abs(later).max()), 1e-6)  # a constant is a line, not noise
    return float(later.min()) - room, float(later.max()) + room


def model_legend(axes: Axes, runs: Sequence[Run], points: bool = False) -> None:
    """Add a legend entry for each model, in the colour, and with the marker, that it has in all figures."""
    from matplotlib.lines import Line2D

    handles = []
    for model in sorted({str(run.value("model")) for run in runs}):
        look: Any = {"marker": marker(model), "linestyle": "none"} if points else {}
        handles.append(Line2D([], [], color=colour(model), label=model_title(model), **look))
    axes.legend(handles=handles, frameon=True, framealpha=0.9, edgecolor="none")
