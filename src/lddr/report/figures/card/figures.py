"""The figures of a run's card."""

from math import ceil

import numpy as np
from numpy.typing import NDArray

from lddr.metrics.information import Floats
from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.charts import NOISE_TOLD, colour_bar, draw_matrix, logged, noise_scale, settled
from lddr.report.drawing.traversals import COLUMNS, draw_picture, draw_traversal, traversals, traversals_told
from lddr.report.figures.figure import Drawn, card_figures
from lddr.report.loaded import LoadedRun
from lddr.report.palette import colour
from lddr.report.style import HIGHLIGHT, SECOND, SEQUENTIAL, Axes, Figure, house_style, new_figure, paneled
from lddr.report.titles import dataset_title, method_title
from lddr.runs.information import information_of


@card_figures.add("traversals", "Traversals of the latents", 30)
def latent_traversals(loaded: LoadedRun) -> Drawn:
    """A row of pictures for each latent, its values above the pictures."""
    rows = traversals(loaded)
    columns, alike = max(len(row.pictures) for row in rows), len({row.labels for row in rows}) == 1
    figure = new_figure(1.2 + 0.85 * columns, (0.87 if alike else 1.05) * len(rows) + 0.2)
    panels = figure.subplots(len(rows), columns, squeeze=False)
    for row, line in zip(rows, panels, strict=True):
        draw_traversal(line, row)
    if alike:  # said once is enough
        for axes in panels[1:].ravel():
            axes.set_title("")
    return Drawn(figure, traversals_told(loaded.run))


@card_figures.add("reconstructions", "Reconstructions", 20)
def reconstructions(loaded: LoadedRun) -> Drawn:
    """Images above, reconstructions below."""
    images = loaded.images(COLUMNS)
    figure = new_figure(0.7 + 0.85 * COLUMNS, 0.9 * 2)
    rows: dict[str, NDArray] = {"input": images, "output": loaded.model.reconstruct(images)}
    for (name, pictures), row in zip(rows.items(), figure.subplots(2, COLUMNS, squeeze=False), strict=True):
        for axes, picture in zip(row, pictures, strict=True):
            draw_picture(axes, picture)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    dataset = dataset_title(str(loaded.run.value("dataset")))
    return Drawn(figure, f"Images of {dataset} (top) and what {method_title(loaded.run)} makes of them.")


INFORMATION_CAPTION = (
    "Mutual information of each latent with each factor, as a share of the factor's entropy; the framed latents "
    "know most of a factor. The MIG is the mean lead of the framed over the next best."
)


@card_figures.add("information", "Information about the factors", 40)
def information(loaded: LoadedRun) -> Drawn:
    """Latents by factors, from the MIG's matrix; the best latent of each factor is framed."""
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
    """Lines over steps."""
    columns = logged(loaded.run)
    terms = {name: values for name, values in columns.items() if name not in NOT_SHOWN}
    scale = noise_scale(loaded.run, columns["step"])
    terms |= {} if scale is None else {NOISE: scale}
    figure, panels = paneled(len(terms), ceil(len(terms) / ceil(len(terms) / 4)), (2.5, 2.0))
    for axes, (name, values) in zip(panels, terms.items(), strict=True):
        seen = ~np.isnan(values)
        line_colour = SECOND if name == NOISE else colour(str(loaded.run.value("model")))
        axes.plot(columns["step"][seen], values[seen], color=line_colour)
        axes.set(title=name.upper() if name in CAPITALS else name.replace("_", " "), xlabel="step")
        _tidy(axes, values[seen])
    noise = "" if scale is None else f" The noise scale multiplies the noise of the latents. {NOISE_TOLD}"
    return Drawn(figure, f"Terms of the loss in nats per image, each the mean since the point before.{noise}")


def _tidy(axes: Axes, values: Floats) -> None:
    from matplotlib.ticker import EngFormatter

    axes.grid(visible=True)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.locator_params(axis="x", nbins=4)
    axes.set_ylim(*settled(values))


IMAGES = 200  # whose posteriors are shown
POSTERIOR_CAPTION = (
    f"The probability of every category (across) for {IMAGES} images (down, sorted by code), latent by latent: a "
    "sharp line means that the latent is discrete by now, grey all over that it is idle. Above each: the mean of "
    "the largest probability, and how many of the categories are ever the most probable."
)


@card_figures.add("posterior", "Is it discrete yet?", 50)
def posterior(loaded: LoadedRun) -> Drawn:
    """A panel for each latent with the posteriors of many images."""
    model = loaded.model
    if not model.is_discrete:
        raise UndefinedError(f"{model.vae.latent.title} latents have no categories")
    return Drawn(
        posterior_panels(model.posterior(loaded.images(IMAGES)), model.vae.latent.active.numpy()), POSTERIOR_CAPTION
    )


@house_style()
def posterior_panels(probabilities: NDArray, active: NDArray[np.bool_]) -> Figure:
    """(images, latents, categories), with the categories that are not masked: (latents, categories)."""
    figure, panels = paneled(probabilities.shape[1], 5, (1.75, 2.15), (0.8, 0))
    for latent, axes in enumerate(panels):
        _draw_posterior(axes, probabilities[:, latent][:, active[latent]], latent)
    colour_bar(figure, panels, "probability")
    return figure


def _draw_posterior(axes: Axes, table: NDArray, latent: int) -> None:
    """Images, sorted by their code, by categories."""
    count = table.shape[1]
    order = np.argsort(table @ np.arange(count), kind="stable")
    axes.imshow(table[order], cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    used = len(np.unique(table.argmax(axis=1)))
    axes.set_title(f"latent {latent}: {table.max(axis=1).mean():.2f}, {used} of {count}", fontsize=8)
    axes.set(xlabel="category", yticks=(), xticks=(0, count - 1))
    axes.spines[:].set_visible(True)
