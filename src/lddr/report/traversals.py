"""A run with its model and images, and traversals of its latents, as pictures and animated."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lddr.data.dataset import Dataset, Images, stream
from lddr.errors import UserError
from lddr.report.style import FAINT, Axes, method_title
from lddr.runs.index import Run
from lddr.runs.information import LEAST_SHARE, information_of

if TYPE_CHECKING:
    from PIL.Image import Image

    from lddr.trained import Trained


@dataclass(frozen=True)
class LoadedRun:
    """A run whose model and images are loaded on first use."""

    run: Run
    given: Dataset | None = None  # images that are only in memory

    @cached_property
    def model(self) -> Trained:
        from lddr.trained import Trained

        model = Trained.load(self.run.folder)
        if not all(weights.isfinite().all() for weights in model.vae.parameters()):
            raise UserError(f"the weights of {self.run.name} are NaN or infinite: training diverged; train it again")
        return model

    @cached_property
    def dataset(self) -> Dataset:
        """The images that the model was trained on."""
        return self.run.files.dataset if self.given is None else self.given

    def images(self, count: int) -> Images:
        """Return the same images for every model of a dataset."""
        return self.dataset.draw(stream(0, "pictures"), count)


FRAME_DURATION = 160  # milliseconds


def animation(loaded: LoadedRun, size: int = 96) -> bytes:
    """Return a GIF file with all latents of a model side by side."""
    first, *others = frames(traversals(loaded, columns=None), size)
    content = BytesIO()
    first.save(content, "GIF", save_all=True, append_images=others, duration=FRAME_DURATION, loop=0)
    return content.getvalue()


def frames(rows: Sequence[Traversal], size: int = 96, count: int = 12) -> list[Image]:
    """Return frames that run forwards and backwards; latents with few values show each one longer."""
    there = np.linspace(0, 1, count)
    return [_frame(rows, moment, size) for moment in [*there, *there[-2:0:-1]]]


def _frame(rows: Sequence[Traversal], moment: float, size: int) -> Image:
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


COLUMNS = 10  # values at most: all of a Gaussian latent, every seventh of 64 categories
MAX_LATENTS = 10
MEASURED_IMAGES = 256  # to find the active latents
NAMED = f"most, with the share of the factor's entropy, if that is at least {LEAST_SHARE:.0%}".replace("%", " %")
INACTIVE = 0.02  # the standard deviation of an inactive latent is below this share of the prior's


@dataclass(frozen=True)
class Traversal:
    """One latent at several of its values, with the others fixed: pictures with a label above each."""

    latent: int
    title: str
    pictures: NDArray[np.float32]  # (values, height, width, channels)
    labels: tuple[str, ...]


def traversals(loaded: LoadedRun, columns: int | None = COLUMNS) -> list[Traversal]:
    """Return traversals of the supervised or active latents, largest variance first, from the image all models share.

    `columns` is the number of values to show, None for all.
    """
    model, space, image = loaded.model, loaded.dataset.space, loaded.images(1)[0]
    tied = model.config.supervision is not None
    named, found = _factors(loaded.run), []
    for latent in range(min(len(space.factors), MAX_LATENTS)) if tied else _by_use(loaded):
        pictures = model.traverse(image, latent)
        chosen = evenly_spaced(len(pictures), columns or len(pictures))
        labels = _labels(loaded, latent, tied)
        title = space.names[latent] if tied else f"latent {latent}\n{named.get(latent, '')}".strip()
        found.append(Traversal(latent, title, pictures[chosen], tuple(labels[place] for place in chosen)))
    return found


def traversals_caption(run: Run) -> str:
    """Describe the rows of a run's traversals."""
    rows = {
        "None": "The active latents, largest variance first, each set to several of its values",
        "masked": "Each latent that is tied to a factor, at its active categories, one for each value of the factor",
    }.get(str(run.value("supervision")), "Each latent that is tied to a factor, at several of its values")
    named = "" if run.value("supervision") else f" A latent is named after the factor of which it encodes {NAMED}."
    return f"{rows}; the others stay as they are for the first image. Model: {method_title(run)}.{named}"


def evenly_spaced(count: int, wanted: int) -> NDArray[np.int64]:
    """Return up to `wanted` indices among `count`, evenly spaced, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(wanted, count)).round().astype(np.int64))


def _by_use(loaded: LoadedRun) -> list[int]:
    """Return latents by decreasing spread of their codes, without inactive ones; all of them if all are inactive."""
    spreads = loaded.model.represent(loaded.images(MEASURED_IMAGES)).std(axis=0)
    order = np.argsort(-spreads, kind="stable")[:MAX_LATENTS].tolist()
    limit = INACTIVE * float(np.sqrt(loaded.model.vae.latent.prior_variance))
    return [latent for latent in order if spreads[latent] > limit] or order


def _factors(run: Run) -> dict[int, str]:
    """Return the factor that each latent encodes best, if it is known and substantial."""
    with suppress(UserError):
        known = information_of(run.folder)
        labels = {latent: known.label(latent) for latent in range(len(known.matrix))}
        return {
            latent: f"{label[0].replace('_', ' ')} {100 * label[1]:.0f} %" for latent, label in labels.items() if label
        }
    return {}


def _labels(loaded: LoadedRun, latent: int, tied: bool) -> list[str]:
    """Return labels for a latent's values: a factor's own values if categories are masked, else numbers."""
    values, space = loaded.model.values_of(latent), loaded.dataset.space
    if tied and len(values) == space.sizes[latent]:
        return [space.factors[latent].label(value) for value in range(len(values))]
    return [f"{value:.2g}".replace("-", "−") for value in values]


def draw_traversal(line: Sequence[Axes], row: Traversal) -> None:
    """Draw a row of pictures, with the values above and the name on the left."""
    for axes in line:
        axes.set_axis_off()
    for axes, picture, label in zip(line, row.pictures, row.labels, strict=False):
        axes.set_axis_on()
        draw_picture(axes, picture)
        axes.set_title(label, fontsize=7, pad=2, color="#555555")
    line[0].set_ylabel(row.title, rotation=0, ha="right", va="center")


def draw_picture(axes: Axes, picture: NDArray) -> None:
    """Draw one image, uint8 or floats in [0, 1], greyscale or colour, in a thin frame."""
    channels = np.broadcast_to(picture, (*picture.shape[:2], 3))
    axes.imshow(channels if picture.dtype == np.uint8 else channels.clip(0, 1), interpolation="nearest")
    axes.spines[:].set(visible=True, color=FAINT, linewidth=0.4)
    axes.set(xticks=(), yticks=())
