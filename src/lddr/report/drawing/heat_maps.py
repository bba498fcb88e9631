"""Matrices of numbers as colours, with the numbers in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lddr.metrics.information import Floats
from lddr.report.ranks import RunColumns, spearman
from lddr.report.style import DIVERGING, INK, PAPER, Axes, Figure, house_style, paneled, text_width

if TYPE_CHECKING:
    from matplotlib.colorbar import Colorbar


@dataclass(frozen=True)
class HeatMap:
    """Rank correlations of row scores with column scores; NaN where there are too few runs or all are alike."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Floats  # (rows, columns)


def correlations(left: RunColumns, right: RunColumns, title: str = "") -> HeatMap:
    """Every score of the left, as rows, with every one of the right, as columns."""
    values = [[spearman(row, column) for column in right.values()] for row in left.values()]
    return HeatMap(title, tuple(left), tuple(right), np.array(values).reshape(len(left), len(right)))


@house_style()
def heat_maps(maps: Sequence[HeatMap]) -> Figure:
    """Heat maps side by side, at most three in a row, under one colour bar."""
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
    """A cell for each number, from `lowest` to 1."""
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
    """What the colours of all panels mean."""
    bar = figure.colorbar(panels[0].images[0], ax=panels, label=label, shrink=0.8, aspect=30, pad=0.02)
    bar.outline.set_visible(False)
    return bar
