"""Circles: what a model makes of a plane of positions, drawn as the image of a grid (paper, Figure 3 and appendix)."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lddr.metrics.metric import UndefinedError
from lddr.report.figures import by_dataset, dataset_of, figure, figures, model_of, of_model, unsupervised
from lddr.report.style import FIRST, HIGHLIGHT, INK, SECOND, colour, model_title, new_figure, styled
from lddr.runs.index import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAMILIES = ("vae", "dvae")
GRID = np.arange(0, 40, 3)  # which of the 40 values of x and y make the grid of the picture
SHOWN = (1, 5, 10)  # the places whose latent spaces are shown
SHEET_COLUMNS = 10
MARGIN = 0.05
UNIT_SQUARE: Any = {"xlim": (0, 1), "ylim": (0, 1), "xticks": (0, 0.5, 1), "yticks": (0, 0.5, 1)}


@styled
def latent_spaces(spaces: Mapping[str, NDArray], title: str = "") -> "Figure":
    """Grids of points side by side, each (rows, columns, 2), with the lines between neighbours."""
    drawing = new_figure(3.2 * len(spaces), 3.5)
    for axes, (name, points) in zip(drawing.subplots(1, len(spaces), squeeze=False)[0], spaces.items(), strict=True):
        draw_grid(axes, points)
        axes.set_title(name)
    if title:
        drawing.suptitle(title)
    return drawing


def ranked(runs: Sequence[Run], model: str) -> list[Run]:
    """The circles runs of a model that have a MIG, best first."""
    circles = by_dataset([run for run in unsupervised(runs) if run.value("dataset") == "circles"]).get("circles", [])
    scored = [run for run in of_model(circles, model) if run.number("mig") is not None]
    if not scored:
        raise UndefinedError(
            f"there is no run of the {model_title(model)} on circles with a MIG; "
            f"get one with: lddr train --model {model} --dataset circles, then lddr evaluate RUN --metrics mig"
        )
    return sorted(scored, key=lambda run: (-run.scores["mig"], run.name))


def shown_places(count: int) -> list[int]:
    """Best, 5th and 10th; of fewer than ten runs the best, the middle one and the last."""
    places = SHOWN if count >= max(SHOWN) else (1, ceil(count / 2), count)
    return sorted(set(places))


def space_of(run: Run) -> NDArray:
    """Where a run's model puts the grid of circles: (grid, grid, latents)."""
    model, dataset = model_of(run), dataset_of(run)
    if model.num_latents != 2:
        raise UndefinedError(f"{run.name} has {model.num_latents} latents; a latent space is drawn with two")
    indices = dataset.space.indices_of(np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1))
    return model.represent(dataset.images(indices.ravel())).reshape(len(GRID), len(GRID), 2)


def _caption(runs: Sequence[Run]) -> str:
    counts = {model: len(ranked(runs, model)) for model in FAMILIES}
    medians = {model: np.median([run.scores["mig"] for run in ranked(runs, model)]) for model in FAMILIES}
    told = " and ".join(f"{counts[m]} runs of the {model_title(m)} (median MIG {medians[m]:.2f})" for m in FAMILIES)
    return (
        f"Column 1: circles as they are drawn, and a grid of their positions. Column 2: the MIG of {told}, best first; "
        "the star is the median. The others: the same grid in the latent spaces of some of them, the ringed ones."
    )


@figure(figures, "circles", "Geometry of the latent spaces on Circles", 30, _caption)
def circles(runs: Sequence[Run]) -> "Figure":
    """A row for each family: data, MIG of all runs, latent spaces of the best, the 5th and the 10th."""
    families = {model: ranked(runs, model) for model in FAMILIES}
    columns = 2 + max(len(shown_places(len(members))) for members in families.values())
    drawing = new_figure(2.15 * columns, 4.5)
    panels = drawing.subplots(2, columns, squeeze=False)
    _draw_positions(panels[0, 0])
    _draw_factor_grid(panels[1, 0])
    top = max(run.scores["mig"] for members in families.values() for run in members)
    for row, (model, members) in zip(panels, families.items(), strict=True):
        _draw_scores(row[1], model, members, top)
        _draw_spaces(row[2:], members)
    return drawing


def _draw_positions(axes: "Axes") -> None:
    """Positions as training draws them."""
    from lddr.data.dataset import stream
    from lddr.data.rendered.circles import HIGH, LOW

    axes.plot(*stream(0, "figure").uniform(LOW, HIGH, (2, 2000)), "o", color=INK, markersize=0.9, alpha=0.6)
    axes.set(title="positions drawn", xlabel="x", ylabel="y", aspect="equal", **UNIT_SQUARE)


def _draw_factor_grid(axes: "Axes") -> None:
    from lddr.data.rendered.circles import HIGH, LOW, VALUES

    draw_grid(axes, np.stack(np.meshgrid(*2 * [np.linspace(LOW, HIGH, VALUES)[GRID]], indexing="ij"), axis=-1))
    axes.set(title="grid of positions", xlabel="x", ylabel="y", **UNIT_SQUARE)


def _draw_scores(axes: "Axes", model: str, members: Sequence[Run], top: float) -> None:
    """The MIG of all runs, best first, the shown ones ringed, the median starred."""
    scores = np.array([run.scores["mig"] for run in members])
    places = np.arange(1, len(members) + 1)
    shown = np.array(shown_places(len(members)))
    axes.plot(places, scores, "o", color=colour(model), markeredgecolor=INK, markeredgewidth=0.4, markersize=4.5)
    axes.plot(shown, scores[shown - 1], "o", color="none", markeredgecolor=INK, markersize=9, label="shown")
    axes.plot((len(members) + 1) / 2, np.median(scores), "*", color=HIGHLIGHT, markersize=13, label="median")
    axes.annotate(
        f"median {np.median(scores):.2f}", (0.97, 0.95), xycoords="axes fraction", ha="right", va="top", color=HIGHLIGHT
    )
    axes.grid(axis="y")
    axes.set(title=f"{model_title(model)}: {len(members)} runs", xlabel="place", ylabel="MIG")
    axes.set(xlim=(0, len(members) + 1), ylim=(0, max(1.25 * top, 0.1)), box_aspect=1)


def _draw_spaces(row: Sequence["Axes"], members: Sequence[Run]) -> None:
    for axes in row:
        axes.set_axis_off()
    for axes, place in zip(row, shown_places(len(members)), strict=False):
        axes.set_axis_on()
        draw_grid(axes, space_of(members[place - 1]))
        axes.set_title(f"{ordinal(place)}: MIG {members[place - 1].scores['mig']:.2f}")


def ordinal(place: int) -> str:
    """1 → "best", 2 → "2nd", 5 → "5th"."""
    if place == 1:
        return "best"
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def sheet(runs: Sequence[Run], model: str) -> "Figure":
    """The latent spaces of all runs of a model, best MIG first."""
    members = ranked(runs, model)
    columns = min(SHEET_COLUMNS, len(members))
    rows = ceil(len(members) / columns)
    drawing = new_figure(1.15 * columns, 1.4 * rows + 0.3)
    panels = drawing.subplots(rows, columns, squeeze=False).ravel()
    for axes in panels[len(members) :]:
        axes.set_axis_off()
    for axes, run in zip(panels, members, strict=False):
        draw_grid(axes, space_of(run), 0.5, dots=False)
        axes.set_title(_scores_line(run), fontsize=7, pad=3)
    drawing.suptitle(f"{model_title(model)} on Circles, sorted by MIG (scores in %)", fontsize=9)
    return drawing


def _scores_line(run: Run) -> str:
    dci = run.number("dci")
    return f"MIG {100 * run.scores['mig']:.0f}" + ("" if dci is None else f" · DCI {100 * dci:.0f}")


def _sheet_caption(runs: Sequence[Run], model: str) -> str:
    members = ranked(runs, model)
    with_dci = " and DCI" if all(run.number("dci") is not None for run in members) else ""
    return f"The latent spaces of all {len(members)} runs of the {model_title(model)}, with MIG{with_dci} in percent."


@figure(figures, "circles-vae", "All latent spaces of the VAE on Circles", 31, lambda runs: _sheet_caption(runs, "vae"))
def gaussian_sheet(runs: Sequence[Run]) -> "Figure":
    """The paper's appendix, Gaussian."""
    return sheet(runs, "vae")


@figure(
    figures, "circles-dvae", "All latent spaces of the D-VAE on Circles", 32, lambda runs: _sheet_caption(runs, "dvae")
)
def discrete_sheet(runs: Sequence[Run]) -> "Figure":
    """The paper's appendix, discrete."""
    return sheet(runs, "dvae")


def draw_grid(axes: "Axes", points: NDArray, width: float = 0.9, dots: bool = True) -> None:
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
