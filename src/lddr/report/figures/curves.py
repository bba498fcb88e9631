"""The ELBO of all runs while they trained."""

from collections.abc import Sequence

import numpy as np

from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.curves import NOISE_TOLD, logged, model_legend, noise_scale, settled
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group
from lddr.report.palette import colour
from lddr.report.style import paneled
from lddr.runs.index import Run


@figures.add("curves", "Training of all runs", 80)
def all_curves(groups: Sequence[Group]) -> Drawn:
    """ELBO over steps, a panel for each dataset; runs without a log are left out."""
    logs = {group.title: found for group in groups if (found := _elbos(group.runs))}
    if not logs:
        raise UndefinedError("no run has a log of its training with an ELBO")
    figure, panels = paneled(len(logs), 3, (3.4, 3.1), (0.6, 0))
    for axes, (dataset, members) in zip(panels, logs.items(), strict=True):
        for run, (steps, values) in members:
            axes.plot(steps, values, color=colour(str(run.value("model"))), linewidth=1, alpha=0.8)
        lows, highs = zip(*(settled(values[~np.isnan(values)]) for _, (_, values) in members), strict=True)
        axes.set(title=dataset, xlabel="step", ylabel="ELBO (nats)", ylim=(min(lows), max(highs)))
        axes.grid(visible=True)
        model_legend(axes, [run for run, _ in members])
    noisy = any(noise_scale(run, steps) is not None for members in logs.values() for run, (steps, _) in members)
    told = "The ELBO of every run while it trained, in nats per image; a colour for each model."
    return Drawn(figure, f"{told} {NOISE_TOLD}" if noisy else told)


def _elbos(runs: Sequence[Run]) -> list[tuple[Run, tuple[np.ndarray, np.ndarray]]]:
    """The steps and the ELBO of the runs that have any."""
    found = []
    for run in runs:
        try:
            columns = logged(run)
        except UserError:
            continue
        if not np.isnan(columns.get("elbo", np.nan)).all():
            found.append((run, (columns["step"], columns["elbo"])))
    return found
