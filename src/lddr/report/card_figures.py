"""The figures of a run's card."""

from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lddr.errors import UserError
from lddr.metrics.information import Floats
from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import Drawn, card_figures
from lddr.report.style import (
    HIGHLIGHT,
    INK,
    MUTED,
    PAPER,
    SECOND,
    SEQUENTIAL,
    SMALL_TEXT,
    Axes,
    Figure,
    colour,
    dataset_title,
    house_style,
    method_title,
    new_figure,
    paneled,
)
from lddr.report.traversals import COLUMNS, LoadedRun, draw_picture, draw_traversal, traversals, traversals_caption
from lddr.runs.index import Run
from lddr.runs.information import information_of

if TYPE_CHECKING:
    from matplotlib.colorbar import Colorbar


def draw_matrix(
    axes: Axes,
    values: Floats,
    rows: Sequence[str],
    columns: Sequence[str],
    colours: str,
    lowest: float,
    grey: NDArray[np.bool_] | None = None,
) -> None:
    """Draw a cell for each number, with colours from `lowest` to 1, and those in `grey` without colour."""
    import matplotlib

    colour_map = matplotlib.colormaps[colours].with_extremes(bad="#f2f2f2")
    grey = np.zeros(values.shape, bool) if grey is None else grey
    axes.imshow(np.where(grey, np.nan, values), cmap=colour_map, vmin=lowest, vmax=1, aspect="auto")
    for (row, column), value in np.ndenumerate(values):
        ink = MUTED if grey[row, column] else PAPER if abs(value) > 0.65 else INK
        text = "–" if np.isnan(value) else f"{value:.2f}".replace("-", "−")
        axes.text(column, row, text, ha="center", va="center", fontsize=SMALL_TEXT, color=ink)
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


NOISE_NOTE = (
    "While the noise grows, a discrete model's training ELBO falls although the model may still improve: every "
    "reconstruction is made from a noisier code. The score elbo_noiseless is without noise."
)
LARGEST_TERM = 1e30  # nats
SHORT_LOG = 15  # records: the curves of longer logs are cut at their start


def log_columns(run: Run) -> dict[str, Floats]:
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
    return float(value) if type(value) in (int, float) and abs(value) < LARGEST_TERM else np.nan


def noise_scale(run: Run, steps: Floats) -> Floats | None:
    """Return the latent's noise scale at these steps; None if it is constant."""
    with suppress(UserError):
        latent, last = run.files.config.latent.build(), run.files.config.training.steps
        if latent.noise_scale(0, last) != latent.noise_scale(last, last):
            return np.array([latent.noise_scale(int(step), last) for step in steps])
    return None


def settled_range(values: Floats) -> tuple[float, float]:
    """Return the range without the first tenth, which is steep and would flatten the rest."""
    later = values[len(values) // 10 if len(values) > SHORT_LOG else 0 :]
    room = 0.06 * max(float(np.ptp(later)), 0.01 * float(np.abs(later).max()), 1e-6)  # a constant is a line, not noise
    return float(later.min()) - room, float(later.max()) + room


@card_figures.add("traversals", "Traversals of the latents", 30)
def latent_traversals(loaded: LoadedRun) -> Drawn:
    """Draw the start image and its reconstruction, then a row of pictures for each latent, with its values above."""
    found = traversals(loaded)
    rows = [found.start, *found.rows]
    columns, alike = max(len(row.pictures) for row in rows), len({row.labels for row in found.rows}) == 1
    figure = new_figure(1.5 + 0.85 * columns, (0.87 if alike else 1.1) * len(rows) + 0.4)
    panels = figure.subplots(len(rows), columns, squeeze=False)
    for row, line in zip(rows, panels, strict=True):
        draw_traversal(line, row)
    if alike:  # one line of labels is enough
        for axes in panels[2:].ravel():
            axes.set_title("")
    return Drawn(figure, traversals_caption(loaded))


@card_figures.add("reconstructions", "Reconstructions", 20)
def reconstructions(loaded: LoadedRun) -> Drawn:
    """Draw images above, reconstructions below."""
    images = loaded.images(min(COLUMNS, len(loaded.dataset)))
    figure = new_figure(0.7 + 0.85 * len(images), 0.9 * 2)
    rows: dict[str, NDArray] = {"input": images, "output": loaded.model.reconstruct(images)}
    for (name, pictures), row in zip(rows.items(), figure.subplots(2, len(images), squeeze=False), strict=True):
        for axes, picture in zip(row, pictures, strict=True):
            draw_picture(axes, picture)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    dataset = dataset_title(str(loaded.run.value("dataset")))
    return Drawn(figure, f"Images of {dataset} (top) and their reconstructions by {method_title(loaded.run)}.")


INFORMATION_CAPTION = (
    "Mutual information of each latent with each factor, as a share of the factor's entropy; the framed latents "
    "encode most of a factor. The MIG is the mean difference between the framed and the next best latent."
)


@card_figures.add("information", "Information about the factors", 40)
def information(loaded: LoadedRun) -> Drawn:
    """Draw latents by factors, from the MIG's matrix; the best latent of each factor is framed."""
    from matplotlib.patches import Rectangle

    known = information_of(loaded.run.folder)
    latents, factors = known.matrix.shape
    figure = new_figure(1.6 + 0.72 * factors, 1.0 + 0.32 * latents)
    axes = figure.subplots()
    names = [name.replace("_", " ") for name in known.factors]
    draw_matrix(axes, known.shares, [f"latent {latent}" for latent in range(latents)], names, SEQUENTIAL, 0)
    for factor, latent in enumerate(known.shares.argmax(axis=0)):
        place = factor - 0.48, latent - 0.46
        axes.add_patch(Rectangle(place, 0.96, 0.92, fill=False, edgecolor=HIGHLIGHT, linewidth=1.6))
    colour_bar(figure, [axes], "share of the factor's entropy")
    return Drawn(figure, INFORMATION_CAPTION)


CAPITALS = ("elbo", "kl")
NOT_SHOWN = ("step", "loss")  # the loss is the sum of the others
NOISE = "noise scale"


@card_figures.add("curves", "Training", 10)
def training_curves(loaded: LoadedRun) -> Drawn:
    """Draw each term of the loss over the steps."""
    from matplotlib.ticker import EngFormatter

    columns = log_columns(loaded.run)
    terms = {name: values for name, values in columns.items() if name not in NOT_SHOWN}
    scale = noise_scale(loaded.run, columns["step"])
    terms |= {} if scale is None else {NOISE: scale}
    figure, panels = paneled(len(terms), ceil(len(terms) / ceil(len(terms) / 4)), (2.5, 2.0))
    for axes, (name, values) in zip(panels, terms.items(), strict=True):
        seen = ~np.isnan(values)
        line_colour = SECOND if name == NOISE else colour(str(loaded.run.value("model")))
        axes.plot(columns["step"][seen], values[seen], color=line_colour)
        axes.set(title=name.upper() if name in CAPITALS else name.replace("_", " "), xlabel="step")
        axes.grid(visible=True)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.locator_params(axis="x", nbins=4)
        axes.set_ylim(*settled_range(values[seen]))
    noise = "" if scale is None else f" The noise scale multiplies the noise of the latents. {NOISE_NOTE}"
    return Drawn(figure, f"Terms of the loss in nats per image, each averaged since the previous point.{noise}")


IMAGES = 200  # whose posteriors are shown
POSTERIOR_CAPTION = (
    "The probability of every category (across) for {count} images (down, sorted by code), latent by latent: a "
    "sharp line means that the latent is discrete, a uniform grey that it is inactive. Above each: the mean of "
    "the largest probability, and how many categories are the most probable one for some image."
)


@card_figures.add("posterior", "Is it discrete yet?", 50)
def posterior(loaded: LoadedRun) -> Drawn:
    """Draw a panel for each latent with the posteriors of many images."""
    model = loaded.model
    if not model.is_discrete:
        raise UndefinedError(f"{model.vae.latent.title} latents have no categories")
    images = loaded.images(min(IMAGES, len(loaded.dataset)))
    panels = posterior_panels(model.posterior(images), model.vae.latent.active.numpy())
    return Drawn(panels, POSTERIOR_CAPTION.format(count=len(images)))


@house_style()
def posterior_panels(probabilities: NDArray, active: NDArray[np.bool_]) -> Figure:
    """Draw probabilities (images, latents, categories) of the active categories (latents, categories)."""
    figure, panels = paneled(probabilities.shape[1], 5, (1.75, 2.15), (0.8, 0))
    for latent, axes in enumerate(panels):
        table = probabilities[:, latent][:, active[latent]]  # (images, active categories)
        count, used = table.shape[1], len(np.unique(table.argmax(axis=1)))
        by_code = np.argsort(table @ np.arange(count), kind="stable")
        axes.imshow(table[by_code], cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axes.set_title(f"latent {latent}: {table.max(axis=1).mean():.2f}, {used} of {count}", fontsize=SMALL_TEXT)
        axes.set(xlabel="category", yticks=(), xticks=(0, count - 1))
        axes.spines[:].set_visible(True)
    colour_bar(figure, panels, "probability")
    return figure
