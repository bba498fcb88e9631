"""The paper's figures that show latent spaces."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from itertools import product
from math import ceil, inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lddr.data.dataset import Images, stream
from lddr.metrics.information import Floats
from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import Drawn, UnwantedError, figures
from lddr.report.groups import Group, scores_of
from lddr.report.style import (
    FAINT,
    FIRST,
    HIGHLIGHT,
    INK,
    SECOND,
    SMALL_TEXT,
    Axes,
    Figure,
    colour,
    few_mark,
    few_note,
    house_style,
    is_discrete,
    model_title,
    new_figure,
    paneled,
)
from lddr.report.traversals import LoadedRun, draw_picture, draw_traversal, traversals, traversals_caption
from lddr.runs.index import Run, common_elbo, read_run
from lddr_paper.comparisons import model_pairs

GRID = np.arange(0, 40, 3)  # the values of x and y, of 40, that form the grid of circles
MARGIN = 0.05  # around a grid, as a share of its size


@house_style()
def latent_spaces(spaces: Mapping[str, NDArray], title: str = "") -> Figure:
    """Draw grids of points side by side, each (rows, columns, 2), with lines between neighbours."""
    figure, panels = paneled(len(spaces), len(spaces), (3.2, 3.5))
    for axes, (name, points) in zip(panels, spaces.items(), strict=True):
        draw_grid(axes, points)
        axes.set_title(name)
    if title:
        figure.suptitle(title)
    return figure


def space_of(run: Run) -> NDArray:
    """Return the codes of the grid of circles: (grid, grid, latents); cached per model."""
    model = run.files.model_file
    return _space(run.folder, model.stat().st_mtime_ns if model.exists() else 0)


@cache
def _space(folder: Path, written: int) -> NDArray:
    run = read_run(folder)
    loaded = LoadedRun(run)
    if loaded.model.num_latents != 2:
        raise UndefinedError(f"{run.name} has {loaded.model.num_latents} latents; a latent space is drawn with two")
    indices = loaded.dataset.space.indices_of(np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1))
    return loaded.model.represent(loaded.dataset.images(indices.ravel())).reshape(len(GRID), len(GRID), 2)


def draw_grid(axes: Axes, points: NDArray, width: float = 0.9, dots: bool = True) -> None:
    """Draw lines along each of the two factors in one colour each, and the points where they meet."""
    for lines, line_colour in zip((points, points.swapaxes(0, 1)), (FIRST, SECOND), strict=True):
        for line in lines:
            axes.plot(*line.T, color=line_colour, linewidth=width)
    if dots:
        axes.plot(*points.reshape(-1, 2).T, "o", color="black", markersize=1.6)
    low, high = points.min((0, 1)), points.max((0, 1))
    reach = (0.5 + MARGIN) * max(float((high - low).max()), 1e-6)  # a square, so that all panels have the same shape
    across, up = (low + high) / 2
    axes.set(xlim=(across - reach, across + reach), ylim=(up - reach, up + reach))
    axes.set_aspect("equal", adjustable="box")
    axes.spines[:].set_visible(True)
    axes.set(xticks=(), yticks=())


PARALLEL = 10  # degrees: a line of the grid within this angle of an axis counts as parallel to it


def axis_angle(points: NDArray) -> float:
    """Return how far the lines of a grid are from the axes: the RMS angle in degrees."""
    return _angle(np.array([(np.diff(points, axis=way) ** 2).sum((0, 1)) for way in (0, 1)]))


def grid_turn(points: NDArray) -> float:
    """Return the rotation of a grid as a whole: the angle of the best-fitting plane, so that bends do not count."""
    rows, columns = points.shape[:2]
    places = np.stack(np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"), axis=-1).reshape(-1, 2)
    slopes = np.linalg.lstsq(places - places.mean(0), points.reshape(-1, 2) - points.mean((0, 1)), rcond=None)[0]
    return _angle(slopes**2)


def _angle(moved: NDArray) -> float:
    """Return the larger angle of the two factors, from their squared effects on each latent, (factors, latents)."""
    shares = moved / np.maximum(moved.sum(1, keepdims=True), 1e-12)
    share = max(min(shares[0, 0], shares[1, 1]), min(shares[0, 1], shares[1, 0]))
    return float(np.degrees(np.arccos(np.sqrt(share))))


SHOWN = (1, 5, 10)  # the ranks whose latent spaces are shown
UNIT_SQUARE: Any = {"xlim": (0, 1), "ylim": (0, 1), "xticks": (0, 0.5, 1), "yticks": (0, 0.5, 1)}


@figures.add("circles", "Geometry of the latent spaces on Circles", 30)
def circles(groups: Sequence[Group]) -> Drawn:
    """Draw a row for each latent type: data, MIG of all runs, latent spaces of the best, the 5th and the 10th."""
    families = {model: ranked(groups, model) for model in model_pairs()[0]}
    columns = 2 + max(len(shown_places(len(members))) for members in families.values())
    figure = new_figure(2.15 * columns, 4.5)
    panels = figure.subplots(2, columns, squeeze=False)
    _draw_data(panels[0, 0], panels[1, 0])
    top = max(run.scores["mig"] for members in families.values() for run in members)
    for row, (model, members) in zip(panels, families.items(), strict=True):
        _draw_scores(row[1], model, members, top)
        _draw_spaces(row[2:], members)
    counts = " and ".join(
        f"{len(members)} runs of the {model_title(model)} (median MIG {_median(members)})"
        for model, members in families.items()
    )
    caption = (
        "Column 1: circles as they are drawn, and a grid of their positions. "
        f"Column 2: the MIG of {counts}, best first; the star is the median. "
        "The others: the same grid in the latent spaces of some of them, the ringed ones."
        f"{few_note(counts)}"
    )
    return Drawn(figure, caption)


def ranked(groups: Sequence[Group], model: str) -> list[Run]:
    """Return the circles runs of a model that have a MIG, best first."""
    runs = [run for group in groups if group.dataset == "circles" for run in group.unsupervised(model)]
    scored = [run for run in runs if run.number("mig") is not None]
    if not scored:
        raise UndefinedError(
            f"there is no run of the {model_title(model)} on circles with a MIG; "
            f"get one with: lddr train --model {model} --dataset circles, then lddr evaluate RUN --metrics mig"
        )
    return sorted(scored, key=lambda run: (-run.scores["mig"], run.name))


def shown_places(count: int) -> list[int]:
    """Return the ranks to show: best, 5th and 10th; with fewer than ten runs the best, the middle one and the last."""
    places = SHOWN if count >= max(SHOWN) else (1, ceil(count / 2), count)
    return sorted(set(places))


def _draw_data(top: Axes, bottom: Axes) -> None:
    """Draw positions as training samples them, and their grid."""
    from lddr.data.drawn.circles import HIGH, LOW, VALUES

    top.plot(*stream(0, "figure").uniform(LOW, HIGH, (2, 2000)), "o", color=INK, markersize=0.9, alpha=0.6)
    top.set(title="positions drawn", xlabel="x", ylabel="y", aspect="equal", **UNIT_SQUARE)
    draw_grid(bottom, np.stack(np.meshgrid(*2 * [np.linspace(LOW, HIGH, VALUES)[GRID]], indexing="ij"), axis=-1))
    bottom.set(title="grid of positions", xlabel="x", ylabel="y", **UNIT_SQUARE)


def _draw_scores(axes: Axes, model: str, members: Sequence[Run], top: float) -> None:
    """Draw the MIG of all runs, best first, with rings around the shown ones and a star at the median."""
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
    """Format a rank: 1 → "best", 2 → "2nd", 5 → "5th"."""
    if place == 1:
        return "best"
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


ACROSS = 10


def sheet(groups: Sequence[Group], model: str) -> Drawn:
    """Draw all runs of a model, best MIG first."""
    members = ranked(groups, model)
    figure, panels = paneled(len(members), ACROSS, (1.15, 1.4), (0, 0.3))
    for axes, run in zip(panels, members, strict=True):
        draw_grid(axes, space_of(run), 0.5, dots=False)
        dci = "" if run.number("dci") is None else f" · DCI {100 * run.scores['dci']:.0f}"
        axes.set_title(f"MIG {100 * run.scores['mig']:.0f}{dci}", fontsize=SMALL_TEXT, pad=3)
    figure.suptitle(f"{model_title(model)} on Circles, sorted by MIG (scores in %)", fontsize=9)
    with_dci = " and DCI" if all(run.number("dci") is not None for run in members) else ""
    caption = (
        f"The latent spaces of all {len(members)} runs of the {model_title(model)}, with MIG{with_dci} in percent."
    )
    return Drawn(figure, caption)


for _place, _model in enumerate(model_pairs()[0]):
    _title = f"All latent spaces of the {model_title(_model)} on Circles"
    figures.add(f"circles-{_model}", _title, 31 + _place)(partial(sheet, model=_model))


@figures.add("traversals", "Reconstructions and latent categories", 70)
def best_traversals(groups: Sequence[Group]) -> Drawn:
    """Draw inputs and outputs in the first two columns, then the names, then the traversals."""
    group, run = exemplary(groups)
    loaded = LoadedRun(run)
    rows = traversals(loaded).rows
    images = loaded.images(len(rows))
    columns = max(len(row.pictures) for row in rows)
    figure = new_figure(2.9 + 0.85 * columns, 1.05 * len(rows))
    panels = figure.subplots(len(rows), columns + 3, squeeze=False, width_ratios=(1, 1, 0.1, *columns * (1,)))
    for line, image, output, row in zip(panels, images, loaded.model.reconstruct(images), rows, strict=True):
        draw_picture(line[0], image)
        draw_picture(line[1], output)
        line[2].set_axis_off()
        draw_traversal(line[3:], row)
    panels[0, 0].set_title("input", fontsize=SMALL_TEXT, pad=2)
    panels[0, 1].set_title("output", fontsize=SMALL_TEXT, pad=2)
    return Drawn(figure, f"{group.title}, {run.name}. {traversals_caption(loaded)}")


def exemplary(groups: Sequence[Group]) -> tuple[Group, Run]:
    """Return a masked D-VAE if there is one, else the most similar run; among several, the one with the best score.

    The best score is the lowest R_s, else the smallest gap, else the largest ELBO. Collapsed models are excluded,
    and the first dataset that has such a run is used.
    """
    kinds: list[Callable[[Run], bool]] = [
        lambda run: run.value("supervision") == "masked" and run.value("model") == "dvae",
        lambda run: run.value("supervision") == "masked",
        lambda run: run.value("supervision") is not None,
        lambda run: is_discrete(str(run.value("model"))),
        lambda run: True,
    ]
    for kind, group in product(kinds, groups):
        if members := [run for run in group.runs if kind(run) and not run.collapsed]:
            bound = common_elbo(members)
            return group, min(members, key=lambda run: _preference(run, bound))
    raise UndefinedError("there is no finished run whose model could be shown")


def _preference(run: Run, bound: str) -> tuple[float, float, float, str]:
    risk, gap = (run.scores.get(name, inf) for name in ("validation_risk", "gap"))
    return risk, gap, -run.scores.get(bound, -inf), run.name


# The paper prints no numbers: these have the properties it names. Classes 3 and 5 are swapped between (a) and (b).
CASES = {
    "(a) two classes, far apart": (0.01, 0.485, 0.01, 0.01, 0.485),
    "(b) two classes, neighbours": (0.01, 0.485, 0.485, 0.01, 0.01),
    "(c) one class": (0.001, 0.001, 0.996, 0.001, 0.001),
}
SAMPLES, BINS, SEED = 1_000_000, 80, 0
GUMBEL_CAPTION = (
    "Top: the normalised parameters of one Gumbel-softmax variable with five classes. Bottom: the density of the "
    f"one-dimensional variable z̄ it is mapped to, from {SAMPLES:,} samples; the dashed line is the representation, "
    "z̄ without noise. From (a) to (b) the parameters of classes 3 and 5 change places: the KL divergence stays, "
    "the spread shrinks. (c) is almost discrete. The paper (Figure 2) prints no parameters; these have the "
    "properties it names."
)


def check_wanted(groups: Sequence[Group]) -> None:
    """Raise UnwantedError for a sketch of the paper if all images are a user's own."""
    if groups and all(group.is_own for group in groups):
        raise UnwantedError("the runs are on images of one's own")


def class_positions(classes: int) -> Floats:
    """Return v_j = (j - 1) / (m - 1)."""
    return np.linspace(0, 1, classes)


def sampled(alpha: ArrayLike, samples: int = SAMPLES, seed: int = SEED) -> Floats:
    """Sample z̄ = Σ_j v_j softmax(log α + g)_j with Gumbel noise g: (samples,)."""
    weights = np.asarray(alpha, np.float64)
    noise = stream(seed, "gumbel").exponential(size=(samples, len(weights)))  # exp(g) = 1 / an exponential variable
    drawn = weights / noise
    return drawn @ class_positions(len(weights)) / drawn.sum(axis=1)


def density(alpha: ArrayLike, bins: int = BINS, samples: int = SAMPLES) -> tuple[Floats, Floats]:
    """Estimate the density of z̄ on [0, 1] by sampling: its values (bins,) and the bin edges (bins + 1,)."""
    return np.histogram(sampled(alpha, samples), bins=bins, range=(0, 1), density=True)


@figures.add("gumbel-softmax", "Gumbel-softmax parameters and the variable they become", 20)
def gumbel_softmax(groups: Sequence[Group] = ()) -> Drawn:
    """Draw parameters (top) and densities (bottom), a column for each case; it needs no runs."""
    check_wanted(groups)
    figure = new_figure(8, 3.9)
    panels = figure.subplots(2, len(CASES), height_ratios=(1, 1.25))
    for column, (title, alpha) in enumerate(CASES.items()):
        _draw_parameters(panels[0, column], np.array(alpha))
        _draw_density(panels[1, column], np.array(alpha))
        panels[0, column].set_title(title)
    panels[0, 0].set_ylabel("normalised αʲ")
    panels[1, 0].set_ylabel("density of z̄")
    figure.align_ylabels()
    return Drawn(figure, GUMBEL_CAPTION)


def _draw_parameters(axes: Axes, alpha: Floats) -> None:
    classes = np.arange(1, len(alpha) + 1)
    axes.bar(classes, alpha / alpha.sum(), width=0.6, color=SECOND)
    axes.set(ylim=(0, 1.05), yticks=(0, 0.5, 1), xticks=classes, xlabel="class j")


def _draw_density(axes: Axes, alpha: Floats) -> None:
    values, edges = density(alpha)
    axes.stairs(values, edges, fill=True, color=FIRST, alpha=0.35)
    axes.stairs(values, edges, color=FIRST, linewidth=1)
    axes.axvline(alpha @ class_positions(len(alpha)) / alpha.sum(), color=HIGHLIGHT, linestyle="--", linewidth=1.2)
    axes.vlines(
        class_positions(len(alpha)), 0, 1, INK, linestyles=":", linewidth=0.6, transform=axes.get_xaxis_transform()
    )
    axes.set(xlim=(-0.02, 1.02), ylim=(0, None), xlabel="z̄", xticks=class_positions(len(alpha)))


CORNERS = np.array([(0, 0), (1, 0), (0, 1), (1, 1)])  # shape across, azimuth up
NAMES = ("O", "A", "B", "C")
ANGLE, SIDE, SPREAD = 0.5, 1.6, 0.35  # of the Gaussian example: rotation in radians, distance, standard deviation
CATEGORIES = 4
OBSERVATIONS_CAPTION = (
    "A sketch, as the paper's Figure 1. Left: four rooms that differ in the object's shape (across) and the "
    "viewing angle (up). Middle: four Gaussian posteriors; rotated together they cost the same, so nothing ties "
    "them to the axes. Right: the same four as ordered categories; the nearest neighbours of a point on the grid "
    "lie along the axes, and a diagonal step is √2 times as long."
)


@cache  # drawing the rooms takes seconds
def observed_rooms() -> Images:
    """Return four rooms, a corner each: two shapes by two viewing angles."""
    from lddr.data.drawn.rooms import Rooms

    rooms = Rooms(64)
    factors = np.array([(1, 5, 0, 6, 2 * shape, 3 + 8 * azimuth) for shape, azimuth in CORNERS])
    return rooms.images(rooms.space.indices_of(factors))


@figures.add("observations", "Four observations in two latent spaces", 10)
def four_observations(groups: Sequence[Group] = ()) -> Drawn:
    """Draw the images, the Gaussian positions and the discrete positions; it needs no runs."""
    check_wanted(groups)
    figure = new_figure(9, 3)
    left, middle, right = figure.subplots(1, 3)
    _draw_images(left, observed_rooms())
    rotation = np.array([(np.cos(ANGLE), np.sin(ANGLE)), (-np.sin(ANGLE), np.cos(ANGLE))])
    _draw_gaussian(middle, SIDE * (CORNERS - 0.5) @ rotation)
    _draw_discrete(right, CORNERS + 1.0)
    return Drawn(figure, OBSERVATIONS_CAPTION)


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
    axes.set(title="Gaussian: rotation keeps all distances", xticks=(), yticks=())


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
