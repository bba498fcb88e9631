"""Figures, drawn from codes and scores."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GRID_COLOURS = ("#0072b2", "#d55e00")  # blue and vermilion: told apart by everyone, and in grey
MARGIN = 0.05


def latent_spaces(spaces: Mapping[str, NDArray], title: str = "") -> "Figure":
    """Grids of points side by side, each (rows, columns, 2), with the lines between neighbours (paper, Figure 3)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.2 * len(spaces), 3.5), layout="constrained")
    for axes, (name, points) in zip(figure.subplots(1, len(spaces), squeeze=False)[0], spaces.items(), strict=True):
        _draw_grid(axes, points)
        axes.set_title(name)
    if title:
        figure.suptitle(title)
    return figure


def _draw_grid(axes: "Axes", points: NDArray) -> None:
    """Lines along the first factor in one colour, along the second in the other, and the points where they meet."""
    for lines, colour in zip((points, points.swapaxes(0, 1)), GRID_COLOURS, strict=True):
        for line in lines:
            axes.plot(*line.T, color=colour, linewidth=0.9)
    axes.plot(*points.reshape(-1, 2).T, "o", color="black", markersize=1.6)
    low, high = points.min((0, 1)), points.max((0, 1))
    room = MARGIN * np.maximum(high - low, 1e-6)
    axes.set_xlim(low[0] - room[0], high[0] + room[0])
    axes.set_ylim(low[1] - room[1], high[1] + room[1])
    axes.set_aspect("equal", adjustable="box")
    axes.set_xticks([])
    axes.set_yticks([])
