"""The pictures of the results page, from the tables or from the models."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from lddr.files import written_whole
from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import figures
from lddr.report.groups import Group
from lddr.report.style import (
    INK,
    Figure,
    colour,
    dataset_title,
    house_style,
    metric_title,
    model_order,
    model_title,
    paneled,
    rendered,
)
from lddr.runs.index import Run
from lddr_paper.claims import labelled
from lddr_paper.judging import matching
from lddr_paper.results.selection import pools
from lddr_paper.results.tables import LONG_SCORES, RESULTS, read_long, read_runs
from lddr_paper.score_figures import HeatMap, heat_maps

SHOWN = ("mig", "dci", "modularity")


def draw_from_models(runs: Sequence[Run]) -> None:
    """Draw the latent spaces of Circles, once all models of the table are at hand."""
    circles = matching(runs, "circles", "vae", "dvae")
    if not circles or {run.name for run in read_runs("circles")} - {run.name for run in circles}:
        return
    for name in ("circles", "circles-vae", "circles-dvae"):
        _draw_reported(name, _groups(circles), RESULTS / "circles" / f"{name}.png")


def draw_from_tables() -> None:
    """Draw scores of all models, the families by six metrics, wins with labels, selectors, and scores by step."""
    families = [run for run in read_runs("families") if run.value("supervision") is None]
    _draw_reported("metrics", _groups(families), RESULTS / "families" / "metrics.png")
    _draw_reported("semi-supervised", labelled(read_runs), RESULTS / "labels" / "wins.png")
    _save(scores_of_models(matching(read_runs("families", "penalties"), "dsprites")), RESULTS / "scores.png")
    _save(scores_of_models(read_runs("discrete")), RESULTS / "discrete" / "scores.png")
    _save(selector_maps(), RESULTS / "selection" / "correlations.png")
    _save(scores_by_step(), RESULTS / "long" / "steps.png")


def _groups(runs: Sequence[Run]) -> list[Group]:
    datasets = dict.fromkeys(str(run.value("dataset")) for run in runs)
    return [Group(name, tuple(matching(runs, name)), {"dataset": name}) for name in datasets]


def _draw_reported(name: str, groups: Sequence[Group], path: Path) -> None:
    try:
        _save(figures[name].make(groups).figure, path)
    except UndefinedError as why:
        print(f"{path.name}: {why}")


def _save(figure: Figure, path: Path) -> None:
    with written_whole(path) as draft:
        draft.write_bytes(rendered(figure, dpi=90))


@house_style()
def scores_of_models(runs: Sequence[Run]) -> Figure:
    """Draw a dot for each run and a line at the median; a row for each dataset, a column for each metric."""
    datasets = sorted({str(run.value("dataset")) for run in runs})
    kinds = sorted({str(run.value("model")) for run in runs}, key=model_order)
    figure, panels = paneled(len(datasets) * len(SHOWN), len(SHOWN), (3.0, 0.3 * len(kinds) + 0.8))
    for place, axes in enumerate(panels):
        dataset, metric = datasets[place // len(SHOWN)], SHOWN[place % len(SHOWN)]
        for row, model in enumerate(kinds):
            values = [run.scores[metric] for run in matching(runs, dataset, model) if metric in run.scores]
            if values:
                axes.plot(values, [row] * len(values), "o", color=colour(model), markersize=4, alpha=0.5)
                axes.plot([np.median(values)] * 2, [row - 0.3, row + 0.3], "-", color=INK)
        axes.set_yticks(range(len(kinds)), map(model_title, kinds))
        axes.set(title=f"{metric_title(metric)}, {dataset_title(dataset)}", ylim=(len(kinds) - 0.5, -0.5))
    return figure


def selector_maps() -> Figure:
    """Draw the rank correlation of every selector with the six metrics, a map for each dataset."""
    maps = []
    for pool in pools():
        values = np.array([[one.value for one in pool.correlations(name)] for name in pool.selectors])
        titles = tuple(map(metric_title, pool.metrics))
        maps.append(HeatMap(dataset_title(pool.dataset), tuple(pool.selectors), titles, values))
    return heat_maps(maps)


@house_style()
def scores_by_step() -> Figure:
    """Draw the scores of long runs by step, a line for each model and initialiser."""
    figure, panels = paneled(len(LONG_SCORES), len(LONG_SCORES), (3.6, 2.6))
    for axes, score in zip(panels, LONG_SCORES, strict=True):
        for (model, weights), rows in read_long().items():
            steps, values = [int(row["step"]) for row in rows], [float(row[score]) for row in rows]
            style, label = "-o" if weights == "truncated" else "--s", f"{model_title(model)}, {weights}"
            axes.plot(steps, values, style, color=colour(model), label=label, markersize=3)
        axes.set(title=metric_title(score), xlabel="steps", ylim=(0, None))
    panels[-1].legend()
    return figure
