"""The training of one model: a panel for each term of the loss, and one for the noise scale."""

from math import ceil

import numpy as np

from lddr.metrics.information import Floats
from lddr.report.drawing.curves import NOISE_TOLD, logged, noise_scale, settled
from lddr.report.figures.figure import Drawn, card_figures
from lddr.report.loaded import LoadedRun
from lddr.report.palette import colour
from lddr.report.style import SECOND, Axes, paneled

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
