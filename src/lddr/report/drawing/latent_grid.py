"""A plane of positions in a latent space, drawn as the image of a grid."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lddr.metrics.metric import UndefinedError
from lddr.report.loaded import LoadedRun
from lddr.report.style import FIRST, SECOND, Axes, Figure, house_style, paneled
from lddr.runs.index import Run

GRID = np.arange(0, 40, 3)  # which of the 40 values of x and y make the grid of the picture
MARGIN = 0.05
_SPACES: dict[Path, tuple[int, NDArray]] = {}  # by folder, each with the time its model was written
PARALLEL = 10  # degrees from an axis up to which a line of the grid is parallel to it


@house_style()
def latent_spaces(spaces: Mapping[str, NDArray], title: str = "") -> Figure:
    """Grids of points side by side, each (rows, columns, 2), with the lines between neighbours."""
    figure, panels = paneled(len(spaces), len(spaces), (3.2, 3.5))
    for axes, (name, points) in zip(panels, spaces.items(), strict=True):
        draw_grid(axes, points)
        axes.set_title(name)
    if title:
        figure.suptitle(title)
    return figure


def space_of(run: Run) -> NDArray:
    """Where a run's model puts the grid of circles: (grid, grid, latents); worked out once for a model."""
    model = run.files.model_file
    written = model.stat().st_mtime_ns if model.exists() else 0
    if run.folder not in _SPACES or _SPACES[run.folder][0] != written:
        _SPACES[run.folder] = written, _space(run)
    return _SPACES[run.folder][1]


def _space(run: Run) -> NDArray:
    loaded = LoadedRun(run)
    if loaded.model.num_latents != 2:
        raise UndefinedError(f"{run.name} has {loaded.model.num_latents} latents; a latent space is drawn with two")
    indices = loaded.dataset.space.indices_of(np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1))
    return loaded.model.represent(loaded.dataset.images(indices.ravel())).reshape(len(GRID), len(GRID), 2)


def axis_angle(points: NDArray) -> float:
    """How far a grid is turned: the root mean square angle, in degrees, of its lines with an axis of their own."""
    return _angle(np.array([(np.diff(points, axis=way) ** 2).sum((0, 1)) for way in (0, 1)]))


def grid_turn(points: NDArray) -> float:
    """How far a grid is turned as a whole: the same of the plane that fits it best, so that bends do not count."""
    rows, columns = points.shape[:2]
    places = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), axis=-1).reshape(-1, 2)
    slopes = np.linalg.lstsq(places - places.mean(0), points.reshape(-1, 2) - points.mean((0, 1)), rcond=None)[0]
    return _angle(slopes**2)


def _angle(moved: NDArray) -> float:
    """From how far each factor moves each latent, squared, (factors, latents): the further turned of the two."""
    shares = moved / np.maximum(moved.sum(1, keepdims=True), 1e-12)
    share = max(min(shares[0, 0], shares[1, 1]), min(shares[0, 1], shares[1, 0]))
    return float(np.degrees(np.arccos(np.sqrt(share))))


def draw_grid(axes: Axes, points: NDArray, width: float = 0.9, dots: bool = True) -> None:
    """Lines along the first factor in one colour, along the second in the other, and the points where they meet."""
    for lines, line_colour in zip((points, points.swapaxes(0, 1)), (FIRST, SECOND), strict=True):
        for line in lines:
            axes.plot(*line.T, color=line_colour, linewidth=width)
    if dots:
        axes.plot(*points.reshape(-1, 2).T, "o", color="black", markersize=1.6)
    low, high = points.min((0, 1)), points.max((0, 1))
    reach = (0.5 + MARGIN) * max(float((high - low).max()), 1e-6)  # a square, so that all panels are alike
    across, up = (low + high) / 2
    axes.set(xlim=(across - reach, across + reach), ylim=(up - reach, up + reach))
    axes.set_aspect("equal", adjustable="box")
    axes.spines[:].set_visible(True)
    axes.set(xticks=(), yticks=())
