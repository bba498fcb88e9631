"""Reconstructions and latent categories of one exemplary run (paper, Figure 8)."""

from collections.abc import Sequence

from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.traversals import draw_picture, draw_traversal, traversals, traversals_told
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group
from lddr.report.loaded import LoadedRun
from lddr.report.style import new_figure
from lddr.runs.index import Run


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
    """On the first dataset that has one, the masked run with the lowest R_s, else the run with the largest ELBO."""
    supervised = [(group, group.supervised) for group in groups if group.supervised]
    masked = [(group, [run for run in runs if run.value("supervision") == "masked"]) for group, runs in supervised]
    pools = [
        *((group, runs) for group, runs in masked if runs),
        *supervised,
        *((group, [*group.runs]) for group in groups),
    ]
    if not pools:
        raise UndefinedError("there is no finished run whose model could be shown")
    group, runs = pools[0]
    score, sign = ("validation_risk", 1) if supervised else ("elbo", -1)
    return group, min(runs, key=lambda run: (sign * run.scores.get(score, sign * float("inf")), run.name))
