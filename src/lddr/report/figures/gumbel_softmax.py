"""The paper's Figure 2: parameters of one Gumbel-softmax variable and the density of the number it becomes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from lddr.data.dataset import stream
from lddr.metrics.information import Floats
from lddr.report.figures.figure import Drawn, check_wanted, figures
from lddr.report.groups import Group
from lddr.report.style import FIRST, HIGHLIGHT, INK, SECOND, Axes, new_figure

# The paper prints no numbers: these have the properties it names. From (a) to (b) classes 3 and 5 change places.
CASES = {
    "(a) two classes, far apart": (0.01, 0.485, 0.01, 0.01, 0.485),
    "(b) two classes, neighbours": (0.01, 0.485, 0.485, 0.01, 0.01),
    "(c) one class": (0.001, 0.001, 0.996, 0.001, 0.001),
}
SAMPLES, BINS, SEED = 1_000_000, 80, 0
TOLD = (
    "Top: the normalised parameters of one Gumbel-softmax variable with five classes. Bottom: the density of the "
    f"one-dimensional variable z̄ it is mapped to, from {SAMPLES:,} samples; the dashed line is the representation, "
    "z̄ without noise. From (a) to (b) the parameters of classes 3 and 5 change places: the KL divergence stays, "
    "the spread shrinks. (c) is almost discrete. The paper (Figure 2) prints no parameters; these have the "
    "properties it names."
)


def class_positions(classes: int) -> Floats:
    """v_j = (j - 1) / (m - 1)."""
    return np.linspace(0, 1, classes)


def sampled(alpha: ArrayLike, samples: int = SAMPLES, seed: int = SEED) -> Floats:
    """z̄ = Σ_j v_j softmax(log α + g)_j for Gumbel noise g: (samples,)."""
    weights = np.asarray(alpha, np.float64)
    noise = stream(seed, "gumbel").exponential(size=(samples, len(weights)))  # exp(g) = 1 / an exponential variable
    drawn = weights / noise
    return drawn @ class_positions(len(weights)) / drawn.sum(axis=1)


def density(alpha: ArrayLike, bins: int = BINS, samples: int = SAMPLES) -> tuple[Floats, Floats]:
    """The density of z̄ on [0, 1], by sampling: its values (bins,) and the edges between them (bins + 1,)."""
    return np.histogram(sampled(alpha, samples), bins=bins, range=(0, 1), density=True)


@figures.add("gumbel-softmax", "Gumbel-softmax parameters and the variable they become", 20)
def gumbel_softmax(groups: Sequence[Group] = ()) -> Drawn:
    """Parameters above, densities below, a column for each case; it needs no runs."""
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
    return Drawn(figure, TOLD)


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
