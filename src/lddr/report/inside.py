"""What a model's latents hold: information about each factor, and how sure the posterior is of its categories."""

from math import ceil
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lddr.errors import UserError
from lddr.metrics.information import Floats
from lddr.metrics.metric import UndefinedError
from lddr.report.figures import dataset_of, drawn_images, figure, model_of, run_figures
from lddr.report.style import HIGHLIGHT, INK, PAPER, SEQUENTIAL, new_figure, styled
from lddr.runs.index import Run
from lddr.runs.information import information_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IMAGES = 200  # whose posteriors are shown


def best_factors(run: Run) -> dict[int, str]:
    """What each latent knows most of, as far as that is known and worth a word: latent → factor."""
    try:
        known = information_of(run.folder)
    except UserError:
        return {}
    labels = {latent: known.label(latent) for latent in range(len(known.matrix))}
    return {latent: label[0].replace("_", " ") for latent, label in labels.items() if label}


def _information_caption(run: Run) -> str:
    return (
        "Mutual information of each latent with each factor, as a share of the factor's entropy; the framed latents "
        "know most of a factor. The MIG is the mean lead of the framed over the next best."
    )


@figure(run_figures, "information", "Information about the factors", 40, _information_caption)
def information(run: Run) -> "Figure":
    """Latents by factors, from the MIG's matrix."""
    known = information_of(run.folder)
    return information_matrix(known.shares, [name.replace("_", " ") for name in known.factors])


@styled
def information_matrix(shares: Floats, factors: list[str]) -> "Figure":  # (latents, factors)
    """A heat map with numbers; the best latent of each factor is framed."""
    from matplotlib.patches import Rectangle

    latents, columns = shares.shape
    drawing = new_figure(1.6 + 0.72 * columns, 1.0 + 0.32 * latents)
    axes = drawing.subplots()
    shown = axes.imshow(shares, cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto")
    for (latent, factor), share in np.ndenumerate(shares):
        ink = PAPER if share > 0.6 else INK
        axes.text(factor, latent, f"{share:.2f}", ha="center", va="center", fontsize=8, color=ink)
    for factor, latent in enumerate(shares.argmax(axis=0)):
        axes.add_patch(
            Rectangle((factor - 0.48, latent - 0.46), 0.96, 0.92, fill=False, edgecolor=HIGHLIGHT, linewidth=1.6)
        )
    axes.set_xticks(range(columns), factors, rotation=30, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(latents), [f"latent {latent}" for latent in range(latents)])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = drawing.colorbar(shown, label="share of the factor's entropy")
    bar.outline.set_visible(False)
    return drawing


def _posterior_caption(run: Run) -> str:
    return (
        f"The probability of every category (across) for {IMAGES} images (down, sorted by code), latent by latent: a "
        "sharp line means that the latent is discrete by now, grey all over that it is idle. Above each: the mean of "
        "the largest probability, and how many of the categories are ever the most probable."
    )


@figure(run_figures, "posterior", "Is it discrete yet?", 50, _posterior_caption)
def posterior(run: Run) -> "Figure":
    """A panel for each latent with the posteriors of many images."""
    model = model_of(run)
    if not model.is_discrete:
        raise UndefinedError(f"{model.config.latent.title} latents have no categories")
    images = drawn_images(dataset_of(run), IMAGES)
    return posterior_panels(model.posterior(images), model.vae.family.active.numpy())


@styled
def posterior_panels(probabilities: NDArray, active: NDArray[np.bool_]) -> "Figure":
    """(images, latents, categories), with the categories that are not masked: (latents, categories)."""
    latents = probabilities.shape[1]
    across = min(5, latents)
    drawing = new_figure(0.8 + 1.75 * across, 2.15 * ceil(latents / across))
    panels = drawing.subplots(ceil(latents / across), across, squeeze=False).ravel()
    for axes in panels[latents:]:
        axes.set_axis_off()
    for latent, axes in enumerate(panels[:latents]):
        _draw_posterior(axes, probabilities[:, latent][:, active[latent]], latent)
    shown = drawing.colorbar(panels[0].images[0], ax=panels, label="probability", shrink=0.8, aspect=30, pad=0.02)
    shown.outline.set_visible(False)
    return drawing


def _draw_posterior(axes: "Axes", table: NDArray, latent: int) -> None:
    """Images, sorted by their code, by categories."""
    count = table.shape[1]
    order = np.argsort(table @ np.arange(count), kind="stable")
    axes.imshow(table[order], cmap=SEQUENTIAL, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    used = len(np.unique(table.argmax(axis=1)))
    axes.set_title(f"latent {latent}: {table.max(axis=1).mean():.2f}, {used} of {count}", fontsize=8)
    axes.set(xlabel="category", yticks=(), xticks=(0, count - 1))
    axes.spines[:].set_visible(True)
