"""The paper's Figure 1: four observations that differ in two factors, and where two families of latents put them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from lddr.data.dataset import Images
from lddr.metrics.information import Floats
from lddr.report.figures.figure import Drawn, check_wanted, figures
from lddr.report.groups import Group
from lddr.report.palette import colour
from lddr.report.style import FAINT, INK, Axes, new_figure

CORNERS = np.array([(0, 0), (1, 0), (0, 1), (1, 1)])  # shape across, azimuth up
NAMES = ("O", "A", "B", "C")
ANGLE, SIDE, SPREAD = 0.5, 1.6, 0.35  # of the Gaussian example: turned in radians, distance, standard deviation
CATEGORIES = 4
TOLD = (
    "A sketch, as the paper's Figure 1. Left: four rooms that differ in the object's shape (across) and the "
    "viewing angle (up). Middle: four Gaussian posteriors; turned as a whole they cost the same, so nothing ties "
    "them to the axes. Right: the same four as ordered categories; the nearest neighbours of a point on the grid "
    "lie along the axes, and a diagonal step is √2 times as long."
)


@dataclass(frozen=True)
class Observations:
    """The four images and their latent positions in both families: (4, 2) each."""

    images: Images
    gaussian: Floats
    discrete: Floats  # whole numbers: categories


@cache  # drawing the rooms takes seconds
def observations() -> Observations:
    """Four rooms; a Gaussian code that is as good turned as straight, and neighbouring categories on the grid."""
    from lddr.data.rendered.rooms import Rooms

    rooms = Rooms(64)
    factors = np.array([(1, 5, 0, 6, 2 * shape, 3 + 8 * azimuth) for shape, azimuth in CORNERS])
    turn = np.array([(np.cos(ANGLE), np.sin(ANGLE)), (-np.sin(ANGLE), np.cos(ANGLE))])
    images = rooms.images(rooms.space.indices_of(factors))
    return Observations(images, SIDE * (CORNERS - 0.5) @ turn, CORNERS + 1.0)


@figures.add("observations", "Four observations in two latent spaces", 10)
def four_observations(groups: Sequence[Group] = ()) -> Drawn:
    """The images, the Gaussian positions, the discrete positions; it needs no runs."""
    check_wanted(groups)
    shown = observations()
    figure = new_figure(9, 3)
    left, middle, right = figure.subplots(1, 3)
    _draw_images(left, shown.images)
    _draw_gaussian(middle, shown.gaussian)
    _draw_discrete(right, shown.discrete)
    return Drawn(figure, TOLD)


def _draw_images(axes: Axes, images: Images) -> None:
    size, step = 0.84, 1.12
    for image, corner, name in zip(images, CORNERS * step, NAMES, strict=True):
        axes.imshow(image, extent=(corner[0], corner[0] + size, corner[1], corner[1] + size))
        axes.text(corner[0] + 0.04, corner[1] + size - 0.04, name, color="white", va="top", fontweight="bold")
    middle, gap = size / 2, step
    for start, end in (((size, middle), (gap, middle)), ((middle, size), (middle, gap)), ((size, size), (gap, gap))):
        _arrow(axes, start, end)
    axes.set(xlim=(0, step + size), ylim=(0, step + size), aspect="equal", xlabel="shape →", ylabel="azimuth →")
    axes.set(title="observations", xticks=(), yticks=())
    axes.spines[:].set_visible(False)


def _draw_gaussian(axes: Axes, points: Floats) -> None:
    from matplotlib.patches import Circle

    for point in points:
        for deviations, strength in ((2, 0.12), (1, 0.22)):
            axes.add_patch(Circle(point, deviations * SPREAD, color=colour("vae"), alpha=strength, linewidth=0))
    _draw_points(axes, points, colour("vae"), 0.28)
    axes.axhline(0, color=FAINT, linewidth=0.6, zorder=0)
    axes.axvline(0, color=FAINT, linewidth=0.6, zorder=0)
    axes.set(xlim=(-2.2, 2.2), ylim=(-2.2, 2.2), aspect="equal", xlabel="z₁", ylabel="z₂")
    axes.set(title="Gaussian: distances do not change when turned", xticks=(), yticks=())


def _draw_discrete(axes: Axes, points: Floats) -> None:
    grid = np.arange(CATEGORIES)
    for value in grid:
        axes.plot((value, value), (0, CATEGORIES - 1), color="#dddddd", linewidth=0.7, zorder=0)
        axes.plot((0, CATEGORIES - 1), (value, value), color="#dddddd", linewidth=0.7, zorder=0)
    axes.plot(*np.stack(np.meshgrid(grid, grid)).reshape(2, -1), "o", color=FAINT, markersize=2.5, zorder=1)
    _draw_points(axes, points, colour("dvae"), 0.2)
    for place, text in (((1.5, 0.84), "1"), ((0.88, 1.5), "1"), ((1.66, 1.42), "√2")):
        axes.text(*place, text, ha="center", va="center")
    axes.set(xlim=(-0.3, 3.3), ylim=(-0.3, 3.3), aspect="equal", xlabel="category of z₁", ylabel="category of z₂")
    axes.set(title="discrete: neighbours lie along the axes", xticks=grid, yticks=grid)


def _draw_points(axes: Axes, points: Floats, fill: str, away: float) -> None:
    for end in points[1:]:
        _arrow(axes, points[0], end)
    axes.scatter(points[:, 0], points[:, 1], s=70, color=fill, edgecolor=INK, zorder=3)
    outwards = points - points.mean(axis=0)
    outwards /= np.linalg.norm(outwards, axis=1, keepdims=True)
    for place, name in zip(points + away * outwards, NAMES, strict=True):
        axes.text(place[0], place[1], name, fontweight="bold", ha="center", va="center", zorder=4)


def _arrow(axes: Axes, start: Sequence[float] | Floats, end: Sequence[float] | Floats) -> None:
    style = {"arrowstyle": "-|>", "color": INK, "linewidth": 1.1, "shrinkA": 3, "shrinkB": 5}
    axes.annotate("", xy=tuple(end), xytext=tuple(start), arrowprops=style, zorder=2)
