"""Five types of discrete latents: the decoder's input as a function of the encoder's output.

`python -m tools.discrete_kinds FILE.png` draws the figure of docs/discrete-latents.md.
"""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lddr.metrics.information import Floats
from lddr.report.style import FAINT, FIRST, HIGHLIGHT, SECOND, Axes, Figure, house_style, new_figure, rendered

VALUES, PLACES, SAMPLES, SEED = 6, 401, 1600, 0
BUMP = 25.0  # how fast the logits of a categorical latent fall on either side of e
LEARNED = {"quantised": (-1.0, -0.75, -0.2, 0.15, 0.65, 0.9), "codebook": (-2.2, -1.1, -0.6, 0.4, 1.1, 2.3)}


@dataclass(frozen=True)
class Kind:
    """A type of latent with its settings, the encoder's outputs from -far to far, and the panel's title."""

    title: str
    latent: str
    settings: dict[str, Any]
    far: float
    axis: str = "e"


KINDS = (
    Kind("categorical", "categorical", {}, 1.2, "e, where the logits peak"),
    Kind("categorical, hard", "categorical", {"hard": True}, 1.2, "e, where the logits peak"),
    Kind("fsq", "fsq", {}, 2.4),
    Kind("quantised", "quantised", {}, 1.2),
    Kind("codebook", "codebook", {}, 2.8),
)


@dataclass(frozen=True)
class Seen:
    """The curves of one latent: (places,) each, or (samples,) for samples."""

    values: Floats
    places: Floats
    tested: Floats  # z at test time
    path: Floats  # z before rounding, without noise: its slope is the gradient
    drawn: Floats  # places of samples
    trained: Floats  # z of samples


def seen(kind: Kind) -> Seen:
    """Compute the curves with the latents' own code, at the noise scale with which training starts."""
    import torch

    from lddr.latents import latents

    settings = {"num_latents": 1, "num_categories": VALUES} | kind.settings
    latent = latents[kind.latent](**settings).build()
    for parameter in latent.parameters():
        parameter.data.copy_(torch.tensor(LEARNED[kind.latent]))

    def outputs(places: torch.Tensor) -> torch.Tensor:
        if latent.parameters_per_latent == 1:
            return places[:, None]
        return -BUMP * (places[:, None] - latent.positions).square()

    with torch.no_grad():
        generator = torch.Generator().manual_seed(SEED)
        places, drawn = torch.linspace(-kind.far, kind.far, PLACES), torch.rand(SAMPLES, generator=generator)
        drawn = (2 * drawn - 1) * kind.far
        noise = latent.noise(SAMPLES, generator)
        trained = latent(outputs(drawn)).rsample(noise, latent.noise_scale(0, 2))
        posterior = latent(outputs(places))
        tested, path = posterior.expected().z, posterior.expected(hard=False).z
        found = (latent.values_of(0), places, tested[:, 0], path[:, 0], drawn, trained[:, 0])
    return Seen(*(each.double().numpy() for each in found))


@house_style()
def discrete_kinds() -> Figure:
    """Draw a column per type: the decoder's input during training (top) and at test time (bottom)."""
    figure = new_figure(10, 4.3)
    panels = figure.subplots(2, len(KINDS), sharex="col", sharey="col")
    for column, kind in enumerate(KINDS):
        found = seen(kind)
        for axes in panels[:, column]:
            axes.hlines(found.values, -kind.far, kind.far, FAINT, linewidth=0.5)
            axes.set(xlim=(-kind.far, kind.far), xticks=(-int(kind.far), 0, int(kind.far)), yticks=(-1, 0, 1))
        _draw_training(panels[0, column], found)
        _draw_staircase(panels[1, column], found.places, found.tested)
        panels[0, column].set_title(kind.title, fontweight="bold")
        panels[1, column].set_xlabel(kind.axis)
    panels[0, 0].set_ylabel("z in training")
    panels[1, 0].set_ylabel("z at test time")
    figure.legend(*_legend(), loc="outside lower center", ncols=4)
    return figure


def _draw_training(axes: Axes, found: Seen) -> None:
    axes.scatter(found.drawn, found.trained, s=3, color=FIRST, alpha=0.45, linewidths=0)
    axes.plot(found.places, found.path, color=SECOND, linestyle=(0, (4, 2)), linewidth=1.1)


def _draw_staircase(axes: Axes, places: Floats, z: Floats) -> None:
    """Draw a line that is interrupted where it jumps."""
    jumps = np.flatnonzero(np.abs(np.diff(z)) > 20 * np.diff(places)) + 1
    axes.plot(np.insert(places, jumps, np.nan), np.insert(z, jumps, np.nan), color=HIGHLIGHT, linewidth=2)


def _legend() -> tuple[list, list[str]]:
    from matplotlib.lines import Line2D

    marks: dict[str, dict[str, Any]] = {
        "one image, during training": {"color": FIRST, "marker": "o", "markersize": 3.5, "linestyle": ""},
        "without noise and rounding: its slope is the gradient": {"color": SECOND, "linestyle": (0, (4, 2))},
        "at test time": {"color": HIGHLIGHT, "linewidth": 2},
        "the latent's values": {"color": FAINT, "linewidth": 0.8},
    }
    return [Line2D([], [], **options) for options in marks.values()], list(marks)


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(rendered(discrete_kinds(), dpi=110))
