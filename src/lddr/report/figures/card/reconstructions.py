"""Images, and below each what a model makes of it."""

from numpy.typing import NDArray

from lddr.report.drawing.traversals import COLUMNS, draw_picture
from lddr.report.figures.figure import Drawn, card_figures
from lddr.report.loaded import LoadedRun
from lddr.report.style import new_figure
from lddr.report.titles import dataset_title, method_title


@card_figures.add("reconstructions", "Reconstructions", 20)
def reconstructions(loaded: LoadedRun) -> Drawn:
    """Images above, reconstructions below."""
    images = loaded.images(COLUMNS)
    figure = new_figure(0.7 + 0.85 * COLUMNS, 0.9 * 2)
    rows: dict[str, NDArray] = {"input": images, "output": loaded.model.reconstruct(images)}
    for (name, pictures), row in zip(rows.items(), figure.subplots(2, COLUMNS, squeeze=False), strict=True):
        for axes, picture in zip(row, pictures, strict=True):
            draw_picture(axes, picture)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    dataset = dataset_title(str(loaded.run.value("dataset")))
    return Drawn(figure, f"Images of {dataset} (top) and what {method_title(loaded.run)} makes of them.")
