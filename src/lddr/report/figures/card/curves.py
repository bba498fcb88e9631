"""The training of one model: a panel for each term of the loss, and one for the noise scale."""

from contextlib import suppress
from math import ceil

import numpy as np

from lddr.errors import UserError
from lddr.metrics.information import Floats
from lddr.report.drawing.curves import logged, settled
from lddr.report.figures.figure import Drawn, card_figures
from lddr.report.loaded import LoadedRun
from lddr.report.palette import colour
from lddr.report.style import SECOND, Axes, paneled
from lddr.runs.index import Run

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
    noise = "" if scale is None else "; the noise scale multiplies the noise of the latents"
    return Drawn(figure, f"Terms of the loss in nats per image, each the mean since the point before{noise}.")


def noise_scale(run: Run, steps: Floats) -> Floats | None:
    """How much of its noise the latents' family uses at these steps; None where it is always the same."""
    with suppress(UserError):
        latent, last = run.files.config.latent, run.files.config.training.steps
        if latent.noise_scale(0, last) != latent.noise_scale(last - 1, last):
            return np.array([latent.noise_scale(int(step), last) for step in steps])
    return None


def _tidy(axes: Axes, values: Floats) -> None:
    from matplotlib.ticker import EngFormatter

    axes.grid(visible=True)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.locator_params(axis="x", nbins=4)
    axes.set_ylim(*settled(values))
