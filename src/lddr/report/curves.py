"""Training over time, and rate against distortion: what the terms of the loss did, from the logs and scores of runs."""

from collections.abc import Mapping, Sequence
from math import ceil
from typing import TYPE_CHECKING, Any

import numpy as np

from lddr.errors import UserError
from lddr.metrics.metric import UndefinedError
from lddr.report.figures import by_dataset, figure, figures, run_figures
from lddr.report.style import FAINT, INK, PAPER, SECOND, colour, dataset_title, marker, model_title, new_figure
from lddr.runs.index import Run
from lddr.schedules import cosine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from lddr.metrics.information import Floats

TITLES = {
    "elbo": "ELBO",
    "reconstruction": "reconstruction",
    "kl": "KL",
    "total_correlation": "total correlation",
    "supervision": "supervision",
    "validation_risk": "validation risk",
}
LEFT_OUT = ("loss",)  # the sum of the others
BLANK: Any = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}
SHORT = 15  # records that are shown from the first


def logged(run: Run) -> dict[str, "Floats"]:
    """Every term that was recorded, and the steps, as columns; NaN where a record has it not."""
    try:
        records = run.files.log
    except UserError as error:
        raise UndefinedError(f"the training of {run.name} cannot be drawn: {error}") from error
    if not records:
        raise UndefinedError(f"the log of {run.name} is empty; train it further")
    names = dict.fromkeys(name for record in records for name in record)
    return {name: np.array([record.get(name, np.nan) for record in records], np.float64) for name in names}


def noise_scale(run: Run, steps: "Floats") -> "Floats | None":
    """The scale of the Gumbel noise at these steps; None for Gaussian latents, which have none."""
    start, end, last = (run.number(name) for name in ("noise_start", "noise_end", "steps"))
    if start is None or end is None or last is None:
        return None
    return np.array([cosine(start, end, int(step), int(last)) for step in steps])


def _curves_caption(run: Run) -> str:
    noise = "; the noise scale multiplies the Gumbel noise" if run.number("noise_start") is not None else ""
    return f"Terms of the loss in nats per image, each the mean since the point before{noise}."


@figure(run_figures, "curves", "Training", 10, _curves_caption)
def training_curves(run: Run) -> "Figure":
    """A panel for each term, and one for the noise scale."""
    columns = logged(run)
    steps = columns.pop("step")
    terms = {name: values for name, values in columns.items() if name not in LEFT_OUT}
    scale = noise_scale(run, steps)
    if scale is not None:
        terms["noise scale"] = scale
    return _panels(steps, terms, colour(str(run.value("model"))))


def _panels(steps: "Floats", terms: Mapping[str, "Floats"], line_colour: str) -> "Figure":
    across = ceil(len(terms) / ceil(len(terms) / 4))
    drawing = new_figure(2.5 * across, 2.0 * ceil(len(terms) / across))
    panels = drawing.subplots(ceil(len(terms) / across), across, squeeze=False).ravel()
    for axes in panels[len(terms) :]:
        axes.set_axis_off()
    for axes, (name, values) in zip(panels, terms.items(), strict=False):
        seen = ~np.isnan(values)
        axes.plot(steps[seen], values[seen], color=SECOND if name == "noise scale" else line_colour)
        axes.set(title=TITLES.get(name, name.replace("_", " ")), xlabel="step")
        _tidy(axes, values[seen])
    return drawing


def _tidy(axes: "Axes", values: "Floats") -> None:
    from matplotlib.ticker import EngFormatter

    axes.grid(visible=True)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.locator_params(axis="x", nbins=4)
    axes.set_ylim(*_settled(values))


def _settled(values: "Floats") -> tuple[float, float]:
    """The range without the first tenth, which is steep and would flatten everything after it."""
    later = values[len(values) // 10 if len(values) > SHORT else 0 :]
    room = 0.06 * max(float(np.ptp(later)), 1e-6)
    return float(later.min()) - room, float(later.max()) + room


# all runs


def _all_caption(runs: Sequence[Run]) -> str:
    return "The ELBO of every run while it trained, in nats per image; a colour for each model."


@figure(figures, "curves", "Training of all runs", 80, _all_caption)
def all_curves(runs: Sequence[Run]) -> "Figure":
    """ELBO over steps, a panel for each dataset."""
    trained = [run for run in runs if run.state != "broken" and run.files.log_file.exists()]
    if not trained:
        raise UndefinedError("no run has a log of its training")
    drawing, panels = _one_per_dataset(trained)
    for axes, (dataset, members) in zip(panels, by_dataset(trained).items(), strict=False):
        lows, highs = zip(*(_draw_elbo(axes, run) for run in members), strict=True)
        axes.set(title=dataset_title(dataset), xlabel="step", ylabel="ELBO (nats)", ylim=(min(lows), max(highs)))
        axes.grid(visible=True)
        _legend(axes, members)
    return drawing


def _draw_elbo(axes: "Axes", run: Run) -> tuple[float, float]:
    """Draw a run's line; gives its range."""
    columns = logged(run)
    if "elbo" not in columns:
        raise UndefinedError(f"the log of {run.name} has no ELBO")
    values = columns["elbo"]
    axes.plot(columns["step"], values, color=colour(str(run.value("model"))), linewidth=1, alpha=0.8)
    return _settled(values[~np.isnan(values)])


def _rate_caption(runs: Sequence[Run]) -> str:
    return (
        "Every finished run by its rate (KL) and its distortion (reconstruction error), in nats per image; runs on one "
        "dashed line have the same ELBO, larger towards the lower left. Hollow: trained with labels."
    )


@figure(figures, "rate-distortion", "Rate and distortion", 81, _rate_caption)
def rate_distortion(runs: Sequence[Run]) -> "Figure":
    """A point for each run, a panel for each dataset."""
    scored = [run for run in runs if run.state == "finished" and {"kl", "reconstruction"} <= run.scores.keys()]
    if not scored:
        raise UndefinedError("there is no finished run with a rate and a distortion; train one to its end")
    drawing, panels = _one_per_dataset(scored)
    for axes, (dataset, members) in zip(panels, by_dataset(scored).items(), strict=False):
        for run in members:
            _draw_point(axes, run)
        _draw_elbo_lines(axes)
        axes.set(title=dataset_title(dataset), xlabel="rate: KL (nats)", ylabel="distortion: reconstruction (nats)")
        _legend(axes, members, points=True)
    return drawing


def _draw_point(axes: "Axes", run: Run) -> None:
    model = str(run.value("model"))
    hollow = run.value("supervision") is not None
    fill, edge = ("none", colour(model)) if hollow else (colour(model), INK)
    place = run.scores["kl"], run.scores["reconstruction"]
    axes.scatter(*place, s=34, marker=marker(model), facecolor=fill, edgecolor=edge, linewidth=1.2 if hollow else 0.4)


def _draw_elbo_lines(axes: "Axes") -> None:
    """Lines of equal ELBO with their values, kept inside the limits the points set."""
    from matplotlib.ticker import MaxNLocator

    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    for total in MaxNLocator(7).tick_values(left + bottom, right + top):
        axes.plot((left, right), (total - left, total - right), color=FAINT, linestyle="--", linewidth=0.6, zorder=0)
        if bottom < total - right < top - 0.05 * (top - bottom):
            note = f"ELBO {-total:g}".replace("-", "−")
            axes.text(right, total - right, note, ha="right", va="center", fontsize=6.5, color=INK, bbox=BLANK)
    axes.set(xlim=(left, right), ylim=(bottom, top))


def _one_per_dataset(runs: Sequence[Run]) -> tuple["Figure", list["Axes"]]:
    count = len(by_dataset(runs))
    across = min(3, count)
    drawing = new_figure(0.6 + 3.4 * across, 3.1 * ceil(count / across))
    panels = drawing.subplots(ceil(count / across), across, squeeze=False).ravel()
    for axes in panels[count:]:
        axes.set_axis_off()
    return drawing, list(panels)


def _legend(axes: "Axes", runs: Sequence[Run], points: bool = False) -> None:
    """An entry for each model, in the colour, and with the marker, it has everywhere."""
    from matplotlib.lines import Line2D

    models = sorted({str(run.value("model")) for run in runs})
    handles = [Line2D([], [], color=colour(model), label=model_title(model)) for model in models]
    for handle, model in zip(handles, models, strict=True):
        if points:
            handle.set(marker=marker(model), linestyle="none")
    axes.legend(handles=handles, frameon=True, framealpha=0.9, edgecolor="none")
