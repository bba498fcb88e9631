"""Circles: what models make of a plane of positions, and how often it is parallel to the axes (paper, Figure 3)."""

from collections.abc import Sequence
from math import ceil
from typing import Any

import numpy as np

from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.latent_grid import GRID, draw_grid, space_of
from lddr.report.few import few_mark, few_told
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group, scores_of
from lddr.report.pairs import pairs
from lddr.report.palette import colour
from lddr.report.style import HIGHLIGHT, INK, Axes, new_figure
from lddr.report.titles import model_title
from lddr.runs.index import Run

SHOWN = (1, 5, 10)  # the places whose latent spaces are shown
UNIT_SQUARE: Any = {"xlim": (0, 1), "ylim": (0, 1), "xticks": (0, 0.5, 1), "yticks": (0, 0.5, 1)}


@figures.add("circles", "Geometry of the latent spaces on Circles", 30)
def circles(groups: Sequence[Group]) -> Drawn:
    """A row for each family: data, MIG of all runs, latent spaces of the best, the 5th and the 10th."""
    families = {model: ranked(groups, model) for model in pairs()[0]}
    columns = 2 + max(len(shown_places(len(members))) for members in families.values())
    figure = new_figure(2.15 * columns, 4.5)
    panels = figure.subplots(2, columns, squeeze=False)
    _draw_positions(panels[0, 0])
    _draw_factor_grid(panels[1, 0])
    top = max(run.scores["mig"] for members in families.values() for run in members)
    for row, (model, members) in zip(panels, families.items(), strict=True):
        _draw_scores(row[1], model, members, top)
        _draw_spaces(row[2:], members)
    told = " and ".join(
        f"{len(members)} runs of the {model_title(model)} (median MIG {_median(members)})"
        for model, members in families.items()
    )
    caption = (
        f"Column 1: circles as they are drawn, and a grid of their positions. Column 2: the MIG of {told}, best first; "
        "the star is the median. The others: the same grid in the latent spaces of some of them, the ringed ones."
        f"{few_told(told)}"
    )
    return Drawn(figure, caption)


def ranked(groups: Sequence[Group], model: str) -> list[Run]:
    """The circles runs of a model that have a MIG, best first."""
    runs = [run for group in groups if group.dataset == "circles" for run in group.unsupervised(model)]
    scored = [run for run in runs if run.number("mig") is not None]
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


def _draw_positions(axes: Axes) -> None:
    """Positions as training draws them."""
    from lddr.data.dataset import stream
    from lddr.data.rendered.circles import HIGH, LOW

    axes.plot(*stream(0, "figure").uniform(LOW, HIGH, (2, 2000)), "o", color=INK, markersize=0.9, alpha=0.6)
    axes.set(title="positions drawn", xlabel="x", ylabel="y", aspect="equal", **UNIT_SQUARE)


def _draw_factor_grid(axes: Axes) -> None:
    from lddr.data.rendered.circles import HIGH, LOW, VALUES

    draw_grid(axes, np.stack(np.meshgrid(*2 * [np.linspace(LOW, HIGH, VALUES)[GRID]], indexing="ij"), axis=-1))
    axes.set(title="grid of positions", xlabel="x", ylabel="y", **UNIT_SQUARE)


def _draw_scores(axes: Axes, model: str, members: Sequence[Run], top: float) -> None:
    """The MIG of all runs, best first, the shown ones ringed, the median starred."""
    scores = np.array([run.scores["mig"] for run in members])
    places = np.arange(1, len(members) + 1)
    shown = np.array(shown_places(len(members)))
    axes.plot(places, scores, "o", color=colour(model), markeredgecolor=INK, markeredgewidth=0.4, markersize=4.5)
    axes.plot(shown, scores[shown - 1], "o", color="none", markeredgecolor=INK, markersize=9, label="shown")
    axes.plot((len(members) + 1) / 2, np.median(scores), "*", color=HIGHLIGHT, markersize=13, label="median")
    note: Any = {"xycoords": "axes fraction", "ha": "right", "va": "top", "color": HIGHLIGHT}
    axes.annotate(f"median {_median(members)}", (0.97, 0.95), **note)
    axes.grid(axis="y")
    axes.set(title=f"{model_title(model)}: {len(members)} runs", xlabel="place", ylabel="MIG")
    axes.set(xlim=(0, len(members) + 1), ylim=(0, max(1.25 * top, 0.1)), box_aspect=1)


def _median(members: Sequence[Run]) -> str:
    return f"{np.median(scores_of(members, 'mig')):.2f}{few_mark(len(members))}"


def _draw_spaces(row: Sequence[Axes], members: Sequence[Run]) -> None:
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
