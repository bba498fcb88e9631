"""What a model draws: reconstructions, and traversals of its latents, still and moving (paper, Figure 8)."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lddr.data.dataset import Images
from lddr.files import written_whole
from lddr.metrics.metric import UndefinedError
from lddr.report.figures import (
    by_dataset,
    dataset_of,
    drawn_images,
    figure,
    figures,
    model_of,
    run_figures,
    supervised,
    unsupervised,
)
from lddr.report.style import FAINT, dataset_title, method_title, new_figure
from lddr.report.traversals import COLUMNS, Floats, Traversal, traversals_of
from lddr.runs.index import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from PIL.Image import Image

SIX_FRAMES_A_SECOND = 160  # milliseconds to a frame


# figures of a run


def _reconstructions_caption(run: Run) -> str:
    return f"Images of {dataset_title(str(run.value('dataset')))} (top) and what {method_title(run)} makes of them."


@figure(run_figures, "reconstructions", "Reconstructions", 20, _reconstructions_caption)
def reconstructions(run: Run) -> "Figure":
    """Images above, reconstructions below."""
    images = drawn_images(dataset_of(run), COLUMNS)
    return picture_rows({"input": images, "output": model_of(run).reconstruct(images)})


def picture_rows(rows: dict[str, NDArray]) -> "Figure":
    """Named rows of pictures of equal number: each (pictures, height, width, channels)."""
    columns = max(map(len, rows.values()))
    drawing = new_figure(0.7 + 0.85 * columns, 0.9 * len(rows))
    panels = drawing.subplots(len(rows), columns, squeeze=False)
    for (name, pictures), row in zip(rows.items(), panels, strict=True):
        for axes, picture in zip(row, pictures, strict=False):
            draw_picture(axes, picture)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center")
    return drawing


def _traversals_caption(run: Run) -> str:
    how = {
        None: "The latents in use, most spread first, each set to several of its values",
        "masked": "Each latent that is tied to a factor, at its active categories, one for each value of the factor",
    }
    loss = run.value("supervision")
    told = how.get(
        None if loss is None else str(loss), "Each latent that is tied to a factor, at several of its values"
    )
    return f"{told}; the others stay as they are for the first image. Model: {method_title(run)}."


@figure(run_figures, "traversals", "Traversals of the latents", 30, _traversals_caption)
def latent_traversals(run: Run) -> "Figure":
    """A row of pictures for each latent."""
    return draw_traversals(traversals_of(run))


def draw_traversals(rows: Sequence[Traversal]) -> "Figure":
    """A row of pictures for each traversal, its values above the pictures."""
    columns, alike = max(len(row.pictures) for row in rows), len({row.labels for row in rows}) == 1
    drawing = new_figure(1.2 + 0.85 * columns, (0.87 if alike else 1.05) * len(rows) + 0.2)
    panels = drawing.subplots(len(rows), columns, squeeze=False)
    for row, line in zip(rows, panels, strict=True):
        _draw_traversal(line, row)
    if alike:  # said once is enough
        for axes in panels[1:].ravel():
            axes.set_title("")
    return drawing


def _draw_traversal(line: Sequence["Axes"], row: Traversal) -> None:
    for axes in line:
        axes.set_axis_off()
    for axes, picture, label in zip(line, row.pictures, row.labels, strict=False):
        axes.set_axis_on()
        draw_picture(axes, picture)
        axes.set_title(label, fontsize=7, pad=2, color="#555555")
    line[0].set_ylabel(row.title, rotation=0, ha="right", va="center")


def draw_picture(axes: "Axes", picture: NDArray) -> None:
    """One image, uint8 or floats in [0, 1], grey or coloured, in a thin frame."""
    channels = np.broadcast_to(picture, (*picture.shape[:2], 3))
    axes.imshow(channels if picture.dtype == np.uint8 else channels.clip(0, 1), interpolation="nearest")
    axes.spines[:].set(visible=True, color=FAINT, linewidth=0.4)
    axes.set(xticks=(), yticks=())


# a figure of a report


def exemplary(runs: Sequence[Run]) -> Run:
    """On the first dataset, the masked run with the lowest R_s, else the run with the largest ELBO."""
    masked = [run for run in supervised(runs) if run.value("supervision") == "masked"]
    pool = masked or supervised(runs) or unsupervised(runs)
    if not pool:
        raise UndefinedError("there is no finished run whose model could be shown")
    members = next(iter(by_dataset(pool).values()))
    score, sign = ("validation_risk", 1) if supervised(members) else ("elbo", -1)
    return min(members, key=lambda run: (sign * run.scores.get(score, sign * float("inf")), run.name))


def _best_caption(runs: Sequence[Run]) -> str:
    run = exemplary(runs)
    return f"{dataset_title(str(run.value('dataset')))}, {run.name}. {_traversals_caption(run)}"


@figure(figures, "traversals", "Reconstructions and latent categories", 70, _best_caption)
def best_traversals(runs: Sequence[Run]) -> "Figure":
    """Reconstructions on the left, traversals on the right, of one exemplary run (paper, Figure 8)."""
    run = exemplary(runs)
    rows = traversals_of(run)
    images = drawn_images(dataset_of(run), len(rows))
    return _beside(images, model_of(run).reconstruct(images), rows)


def _beside(images: Images, outputs: Floats, rows: Sequence[Traversal]) -> "Figure":
    """Inputs and outputs in the first two columns, then room for the names, then the traversals."""
    columns = max(len(row.pictures) for row in rows)
    drawing = new_figure(2.9 + 0.85 * columns, 1.05 * len(rows))
    panels = drawing.subplots(len(rows), columns + 3, squeeze=False, width_ratios=(1, 1, 0.1, *columns * (1,)))
    for line, image, output, row in zip(panels, images, outputs, rows, strict=True):
        draw_picture(line[0], image)
        draw_picture(line[1], output)
        line[2].set_axis_off()
        _draw_traversal(line[3:], row)
    panels[0, 0].set_title("input", fontsize=8, pad=2)
    panels[0, 1].set_title("output", fontsize=8, pad=2)
    return drawing


# moving pictures


def write_traversals(run: Run, path: Path, size: int = 96) -> None:
    """An animated GIF: every latent of the model goes through its values and back, side by side."""
    frames = animated(traversals_of(run, columns=None), size)
    with written_whole(path) as draft:
        frames[0].save(draft, "GIF", save_all=True, append_images=frames[1:], duration=SIX_FRAMES_A_SECOND, loop=0)


def animated(rows: Sequence[Traversal], size: int = 96, frames: int = 12) -> list["Image"]:
    """Frames there and back; latents with few values stay longer on each."""
    there = np.linspace(0, 1, frames)
    return [_frame(rows, moment, size) for moment in [*there, *there[-2:0:-1]]]


def _frame(rows: Sequence[Traversal], moment: float, size: int) -> "Image":
    from PIL import Image, ImageDraw, ImageFont

    from lddr.data.sheet import as_picture

    font, gap, top = ImageFont.load_default(size=max(9, size // 8)), 6, 2 * max(9, size // 8) + 8
    sheet = Image.new("RGB", (gap + len(rows) * (size + gap), top + size + gap), (255, 255, 255))
    pen = ImageDraw.Draw(sheet)
    for number, row in enumerate(rows):
        value = min(int(moment * len(row.pictures)), len(row.pictures) - 1)
        left = gap + number * (size + gap)
        pen.text((left + size / 2, top / 2), row.title, (40, 40, 40), font, anchor="mm", align="center")
        sheet.paste(as_picture((row.pictures[value].clip(0, 1) * 255).round().astype(np.uint8), size), (left, top))
    return sheet
