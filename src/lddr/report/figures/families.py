"""What the report begins with: the latents of a discrete model beside those of a Gaussian one."""

from collections.abc import Sequence
from itertools import product

from lddr.metrics.metric import UndefinedError
from lddr.report.drawing.traversals import NAMED, draw_traversal, traversals
from lddr.report.figures.figure import Drawn, figures
from lddr.report.groups import Group
from lddr.report.loaded import LoadedRun
from lddr.report.pairs import pairs
from lddr.report.style import new_figure
from lddr.report.titles import model_title
from lddr.runs.index import Run, common_elbo

NAME = "families"
COLUMNS = 7  # values of each latent
MOST = 6  # latents


@figures.add(NAME, "What the latents do", 1)
def two_families(groups: Sequence[Group]) -> Drawn:
    """A block of traversals for each of two models, the discrete one first."""
    group, both = typical(groups)
    blocks = [traversals(LoadedRun(run), COLUMNS)[:MOST] for run in both]
    count, gap = max(map(len, blocks)), 1.6  # between the blocks stand the names of the second one's latents
    figure = new_figure(1.6 + 0.8 * (2 * COLUMNS + gap), 0.95 * count + 0.5)
    widths = [*COLUMNS * [1.0], gap, *COLUMNS * [1.0]]
    panels = figure.subplots(count, len(widths), squeeze=False, width_ratios=widths)
    for axes in panels.ravel():
        axes.set_axis_off()
    for first, run, rows in zip((0, COLUMNS + 1), both, blocks, strict=True):
        for line, row in zip(panels, rows, strict=False):
            draw_traversal(line[first : first + COLUMNS], row)
        told = ", ".join(f"{name.upper()} {run.scores[name]:.2f}" for name in ("mig",) if name in run.scores)
        heading = " · ".join([model_title(str(run.value("model"))), *([told] if told else [])])
        middle = panels[0, first + COLUMNS // 2]
        middle.annotate(
            heading, (0.5, 1.3), xycoords="axes fraction", ha="center", va="bottom", fontweight="bold", in_layout=False
        )
    figure.suptitle(" ")  # room for the headings, which must not widen their columns
    return Drawn(figure, _caption(group, both))


def _caption(group: Group, both: Sequence[Run]) -> str:
    counts = " and ".join(
        f"{len(group.unsupervised(str(run.value('model'))))} of {model_title(str(run.value('model')))}" for run in both
    )
    by = {"mig": "MIG", "elbo": "ELBO"}.get(_score(both), "ELBO without noise")
    names = " and ".join(run.name for run in both)
    return (
        f"{group.title}. In each row one latent goes through its values, the others stay; in a disentangled model one "
        f"thing changes in each row. Shown are those with the median {by} of {counts}: {names}. "
        f"A latent is called after the factor of which it tells {NAMED}."
    )


def typical(groups: Sequence[Group]) -> tuple[Group, tuple[Run, Run]]:
    """A discrete and a Gaussian run with the same objective, each the median of its kind, from the first such group."""
    for (gaussian, discrete), group in product(pairs(), groups):
        members = [group.unsupervised(model) for model in (discrete, gaussian)]
        if all(members):
            first, second = (_median(runs) for runs in members)
            return group, (first, second)
    raise UndefinedError("there are no two runs on the same images, one Gaussian and one discrete, to put side by side")


def _median(runs: Sequence[Run]) -> Run:
    score = _score(runs)
    ranked = sorted(runs, key=lambda run: (run.scores.get(score, float("-inf")), run.name))
    return ranked[(len(ranked) - 1) // 2]


def _score(runs: Sequence[Run]) -> str:
    """What runs are ranked by: MIG where all have it."""
    return "mig" if all("mig" in run.scores for run in runs) else common_elbo(runs)
