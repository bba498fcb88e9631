"""The pictures of the results page: those drawn from the tables, and those that need the models."""

from collections.abc import Sequence
from pathlib import Path

import long
import numpy as np
from claims_labels import labelled
from kinds import PICTURE
from pools import pools
from table import RESULTS, of, read

from lddr.files import written_whole
from lddr.metrics.metric import UndefinedError
from lddr.report.exhibits import figures
from lddr.report.groups import Group
from lddr.report.style import (
    INK,
    Figure,
    colour,
    dataset_title,
    house_place,
    house_style,
    metric_title,
    model_title,
    paneled,
    rendered,
)
from lddr.runs.index import Run
from lddr_paper.score_figures import HeatMap, heat_maps

SHEETS = ("circles", "circles-vae", "circles-dvae")  # of the report, with the models at hand
DPI = 90
SHOWN = ("mig", "dci", "modularity")


def from_models(runs: Sequence[Run]) -> None:
    """The latent spaces of circles, a selection and all of each family, once all models of the table are at hand."""
    circles = of(runs, "circles", "vae", "dvae")
    if not circles or {run.name for run in read("circles")} - {run.name for run in circles}:
        return
    for name in SHEETS:
        _reported(name, circles, RESULTS / "circles" / f"{name}.png")


def from_tables() -> None:
    """Scores of all models, the families by six metrics, and how selectors order models."""
    _reported(
        "metrics", [r for r in read("families") if r.value("supervision") is None], RESULTS / "families" / "metrics.png"
    )
    pictures = {RESULTS / "scores.png": of(read("families", "penalties"), "dsprites"), PICTURE: read("discrete")}
    for path, runs in pictures.items():
        if runs:
            _save(scores_of_models(runs), path)
    if read("labels"):
        _drawn("semi-supervised", labelled(), RESULTS / "labels" / "wins.png")
    if pools():
        _save(selector_maps(), RESULTS / "selection" / "correlations.png")
    if any(len(steps) > 1 for steps in long.kinds().values()):
        _save(scores_by_step(), RESULTS / "long" / "steps.png")


def _reported(name: str, runs: Sequence[Run], path: Path) -> None:
    datasets = dict.fromkeys(str(run.value("dataset")) for run in runs)
    _drawn(name, [Group(name, tuple(of(runs, name)), {"dataset": name}) for name in datasets], path)


def _drawn(name: str, groups: Sequence[Group], path: Path) -> None:
    try:
        _save(figures[name].make(groups).figure, path)
    except UndefinedError as why:
        print(f"{path.name}: {why}")


def _save(figure: Figure, path: Path) -> None:
    with written_whole(path) as draft:
        draft.write_bytes(rendered(figure, dpi=DPI))


@house_style()
def scores_of_models(runs: Sequence[Run]) -> Figure:
    """A dot for each run, a line at the median; a row for each dataset, a column for each metric."""
    datasets = sorted({str(run.value("dataset")) for run in runs})
    kinds = sorted({str(run.value("model")) for run in runs}, key=house_place)
    figure, panels = paneled(len(datasets) * len(SHOWN), len(SHOWN), (3.0, 0.3 * len(kinds) + 0.8))
    for place, axes in enumerate(panels):
        dataset, metric = datasets[place // len(SHOWN)], SHOWN[place % len(SHOWN)]
        for row, model in enumerate(kinds):
            values = sorted(run.scores[metric] for run in of(runs, dataset, model) if metric in run.scores)
            if values:
                axes.plot(values, [row] * len(values), "o", color=colour(model), markersize=4, alpha=0.5)
                middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
                axes.plot([middle] * 2, [row - 0.3, row + 0.3], "-", color=INK)
        axes.set_yticks(range(len(kinds)), map(model_title, kinds))
        axes.set(title=f"{metric_title(metric)}, {dataset_title(dataset)}", ylim=(len(kinds) - 0.5, -0.5))
    return figure


def selector_maps() -> Figure:
    """Rank correlation of every selector with the six metrics, a map for each dataset."""
    maps = []
    for pool in pools():
        values = [[one.value for one in pool.correlations(name, pool.metrics)] for name in pool.selectors]
        titles = tuple(map(metric_title, pool.metrics))
        maps.append(HeatMap(dataset_title(pool.dataset), tuple(pool.selectors), titles, np.array(values)))
    return heat_maps(maps)


@house_style()
def scores_by_step() -> Figure:
    """How the scores of long runs go with their steps, a line for each model and beginning."""
    figure, panels = paneled(len(long.SCORES), len(long.SCORES), (3.6, 2.6))
    for axes, score in zip(panels, long.SCORES, strict=True):
        for (model, weights), reached in long.kinds().items():
            style = "-o" if weights == "truncated" else "--s"
            places, values = [one.step for one in reached], [one.score(score) for one in reached]
            axes.plot(
                places, values, style, color=colour(model), label=f"{model_title(model)}, {weights}", markersize=3
            )
        axes.set(title=metric_title(score), xlabel="steps", ylim=(0, None))
    panels[-1].legend()
    return figure
