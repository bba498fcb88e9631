"""Rate against distortion: a point for each run, a panel for each dataset."""

from collections.abc import Sequence
from typing import Any

from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.curves import model_legend
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group
from lddr.report.palette import colour, marker
from lddr.report.style import FAINT, INK, PAPER, Axes, paneled
from lddr.runs.index import Run, common_elbo

BLANK: Any = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}
TOLD = (
    "Every finished run by its rate (KL) and its distortion (reconstruction error), in nats per image; runs on one "
    "dashed line have the same ELBO, larger towards the lower left. Hollow: trained with labels."
)
NOISELESS_TOLD = (
    " Distortions are those of codes without noise, because runs of older versions have no others: "
    "lddr evaluate RUN --metrics elbo adds them."
)


@figures.add("rate-distortion", "Rate and distortion", 81)
def rate_distortion(groups: Sequence[Group]) -> Drawn:
    """Points over lines of equal ELBO."""
    bound = common_elbo(run for group in groups for run in group.runs)
    scored = {group.title: [run for run in group.runs if {"kl", bound} <= run.scores.keys()] for group in groups}
    scored = {dataset: members for dataset, members in scored.items() if members}
    if not scored:
        raise UndefinedError("there is no finished run with a rate and a distortion; train one to its end")
    figure, panels = paneled(len(scored), 3, (3.4, 3.1), (0.6, 0))
    for axes, (dataset, members) in zip(panels, scored.items(), strict=True):
        for run in members:
            _draw_point(axes, run, bound)
        _draw_elbo_lines(axes)
        axes.set(title=dataset, xlabel="rate: KL (nats)", ylabel="distortion: reconstruction (nats)")
        model_legend(axes, members, points=True)
    return Drawn(figure, TOLD + (NOISELESS_TOLD if bound == "elbo_noiseless" else ""))


def _draw_point(axes: Axes, run: Run, bound: str) -> None:
    model = str(run.value("model"))
    hollow = run.value("supervision") is not None
    fill, edge = ("none", colour(model)) if hollow else (colour(model), INK)
    rate, distortion = run.scores["kl"], -run.scores[bound] - run.scores["kl"]
    width = 1.2 if hollow else 0.4
    axes.scatter(rate, distortion, s=34, marker=marker(model), facecolor=fill, edgecolor=edge, linewidth=width)


def _draw_elbo_lines(axes: Axes) -> None:
    """Lines of equal ELBO with their values, kept inside the limits the points set."""
    from matplotlib.ticker import MaxNLocator

    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for total in MaxNLocator(7).tick_values(left + bottom, right + top):
        axes.plot((left, right), (total - left, total - right), color=FAINT, linestyle="--", linewidth=0.6, zorder=0)
        if bottom < total - right < top - 0.05 * (top - bottom):
            note = f"ELBO {-total:g}".replace("-", "−")
            axes.text(right, total - right, note, ha="right", va="center", fontsize=6.5, color=INK, bbox=BLANK)
    axes.set(xlim=(left, right), ylim=(bottom, top))
