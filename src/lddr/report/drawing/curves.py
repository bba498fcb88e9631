"""What was recorded while runs trained, and the panels and legends such figures share."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from lddr.errors import UserError
from lddr.metrics.information import Floats
from lddr.metrics.metric import UndefinedError
from lddr.report.palette import colour, marker
from lddr.report.style import Axes
from lddr.report.titles import model_title
from lddr.runs.index import Run

NOISE_TOLD = (
    "While the noise grows, a discrete model's training ELBO falls although the model may go on improving: every "
    "reconstruction is made from a noisier code. The score elbo_noiseless is without noise."
)
ENDLESS = 1e30  # nats: no term is like that
SHORT = 15  # records that are shown from the first


def logged(run: Run) -> dict[str, Floats]:
    """Every term that was recorded, and the steps, as columns; NaN where a record has no number."""
    records = [record for record in run.files.log if np.isfinite(_number(record["step"]))]
    names = dict.fromkeys(name for record in records for name in record if name.isprintable())
    columns = {name: np.array([_number(record.get(name)) for record in records]) for name in names}
    kept = {name: values for name, values in columns.items() if np.isfinite(values).any()}
    if kept.keys() <= {"step", "loss"}:
        raise UndefinedError(f"the log of {run.name} is empty; train it further")
    return kept


def _number(value: Any) -> float:
    """What is no number, or larger than anything that is recorded, cannot be drawn."""
    return float(value) if type(value) in (int, float) and abs(value) < ENDLESS else np.nan


def noise_scale(run: Run, steps: Floats) -> Floats | None:
    """How much of its noise the latents' family uses at these steps; None where it is always the same."""
    with suppress(UserError):
        latent, last = run.files.config.latent.build(), run.files.config.training.steps
        if latent.noise_scale(0, last) != latent.noise_scale(last, last):
            return np.array([latent.noise_scale(int(step), last) for step in steps])
    return None


def settled(values: Floats) -> tuple[float, float]:
    """The range without the first tenth, which is steep and would flatten everything after it."""
    later = values[len(values) // 10 if len(values) > SHORT else 0 :]
    room = 0.06 * max(float(np.ptp(later)), 0.01 * float(np.abs(later).max()), 1e-6)  # a constant is a line, not noise
    return float(later.min()) - room, float(later.max()) + room


def model_legend(axes: Axes, runs: Sequence[Run], points: bool = False) -> None:
    """An entry for each model, in the colour, and with the marker, it has everywhere."""
    from matplotlib.lines import Line2D

    handles = []
    for model in sorted({str(run.value("model")) for run in runs}):
        look: Any = {"marker": marker(model), "linestyle": "none"} if points else {}
        handles.append(Line2D([], [], color=colour(model), label=model_title(model), **look))
    axes.legend(handles=handles, frameon=True, framealpha=0.9, edgecolor="none")
