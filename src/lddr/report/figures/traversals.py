"""Reconstructions and latent categories of one exemplary run (paper, Figure 8)."""

from collections.abc import Callable, Sequence
from itertools import product
from math import inf

from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.traversals import draw_picture, draw_traversal, traversals, traversals_told
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group
from lddr.report.loaded import LoadedRun
from lddr.report.palette import is_discrete
from lddr.report.style import new_figure
from lddr.runs.index import Run, common_elbo


@figures.add("traversals", "Reconstructions and latent categories", 70)
def best_traversals(groups: Sequence[Group]) -> Drawn:
    """Inputs and outputs in the first two columns, then room for the names, then the traversals."""
    group, run = exemplary(groups)
    loaded = LoadedRun(run)
    rows = traversals(loaded)
    images = loaded.images(len(rows))
    columns = max(len(row.pictures) for row in rows)
    figure = new_figure(2.9 + 0.85 * columns, 1.05 * len(rows))
    panels = figure.subplots(len(rows), columns + 3, squeeze=False, width_ratios=(1, 1, 0.1, *columns * (1,)))
    for line, image, output, row in zip(panels, images, loaded.model.reconstruct(images), rows, strict=True):
        draw_picture(line[0], image)
        draw_picture(line[1], output)
        line[2].set_axis_off()
        draw_traversal(line[3:], row)
    panels[0, 0].set_title("input", fontsize=8, pad=2)
    panels[0, 1].set_title("output", fontsize=8, pad=2)
    return Drawn(figure, f"{group.title}, {run.name}. {traversals_told(run)}")


def exemplary(groups: Sequence[Group]) -> tuple[Group, Run]:
    """A masked D-VAE where there is one, else what comes nearest; of several, the one with the best score.

    That is the lowest R_s, else the smallest gap, else the largest ELBO. A collapsed model is never taken, and the
    first dataset that has such a run is.
    """
    kinds: list[Callable[[Run], bool]] = [
        lambda run: run.value("supervision") == "masked" and run.value("model") == "dvae",
        lambda run: run.value("supervision") == "masked",
        lambda run: run.value("supervision") is not None,
        lambda run: is_discrete(str(run.value("model"))),
        lambda run: True,
    ]
    for kind, group in product(kinds, groups):
        if members := [run for run in group.runs if kind(run) and not run.collapsed]:
            bound = common_elbo(members)
            return group, min(members, key=lambda run: _preference(run, bound))
    raise UndefinedError("there is no finished run whose model could be shown")


def _preference(run: Run, bound: str) -> tuple[float, float, float, str]:
    risk, gap = (run.scores.get(name, inf) for name in ("validation_risk", "gap"))
    return risk, gap, -run.scores.get(bound, -inf), run.name
