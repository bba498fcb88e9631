"""The latents of one model, each through its values, the others kept."""

from lddr.report.drawing.traversals import draw_traversal, traversals, traversals_told
from lddr.report.figures.figure import Drawn, card_figures
from lddr.report.loaded import LoadedRun
from lddr.report.style import new_figure


@card_figures.add("traversals", "Traversals of the latents", 30)
def latent_traversals(loaded: LoadedRun) -> Drawn:
    """A row of pictures for each latent, its values above the pictures."""
    rows = traversals(loaded)
    columns, alike = max(len(row.pictures) for row in rows), len({row.labels for row in rows}) == 1
    figure = new_figure(1.2 + 0.85 * columns, (0.87 if alike else 1.05) * len(rows) + 0.2)
    panels = figure.subplots(len(rows), columns, squeeze=False)
    for row, line in zip(rows, panels, strict=True):
        draw_traversal(line, row)
    if alike:  # said once is enough
        for axes in panels[1:].ravel():
            axes.set_title("")
    return Drawn(figure, traversals_told(loaded.run))
