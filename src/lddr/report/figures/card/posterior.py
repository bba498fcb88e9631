"""How sure the posterior of a discrete model is of its categories."""

import numpy as np
from numpy.typing import NDArray

from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.heat_maps import colour_bar
from lddr.report.figures.figure import Drawn, card_figures
from lddr.report.loaded import LoadedRun
from lddr.report.style import SEQUENTIAL, Axes, Figure, house_style, paneled

IMAGES = 200  # whose posteriors are shown
TOLD = (
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
    return Drawn(posterior_panels(model.posterior(loaded.images(IMAGES)), model.vae.latent.active.numpy()), TOLD)


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
