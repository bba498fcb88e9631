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
from lddr.data.samples import Samples
from lddr.errors import UserError
from lddr.report.style import FAINT, HIGHLIGHT, MUTED, SMALL_TEXT, Axes, method_title
from lddr.runs.index import Run
from lddr.runs.information import LEAST_SHARE, information_of

if TYPE_CHECKING:
    from PIL.Image import Image

    from lddr.trained import Trained

COLUMNS = 10  # values at most: all of a Gaussian latent, every seventh of 64 categories
MAX_LATENTS = 10
MEASURED_IMAGES = 256  # to find the active latents
CANDIDATES = 32  # images among which the start of the traversals is chosen
INACTIVE = 0.02  # the standard deviation of an inactive latent is below this share of the prior's
NAMED = (
    "Rows are grouped by the factor that a latent encodes most, with the share of the factor's entropy "
    f"if it is at least {LEAST_SHARE:g}."
)


@dataclass(frozen=True)
class LoadedRun:
    """A run whose model and images are loaded on first use."""

    run: Run
    given: Dataset | None = None  # images that are only in memory
    like: LoadedRun | None = None  # a run on the same images, whose traversals start from the same one
    shows_input: bool = True  # whether the start image is shown, or only its reconstruction

    @cached_property
    def model(self) -> Trained:
        from lddr.trained import Trained

        model = Trained.load(self.run.folder)
        if not all(weights.isfinite().all() for weights in model.vae.parameters()):
            raise UserError(f"the weights of {self.run.name} are NaN or infinite: training diverged; train it again")
        return model

    @cached_property
    def dataset(self) -> Dataset:
        """The images that the model was trained on, or the samples that it was shared with."""
        if self.given is not None:
            return self.given
        try:
            return self.run.files.dataset
        except UserError:
            if len(samples := self.model.samples):
                return Samples(samples)
            raise

    @property
    def is_tied(self) -> bool:
        """Whether latents are tied to factors of the images; samples have none."""
        return self.model.config.supervision is not None and bool(self.dataset.space.factors)

    def images(self, count: int) -> Images:
        """Return the same images for every model of a dataset."""
        return self.dataset.draw(stream(0, "pictures"), count)

    @cached_property
    def latents(self) -> list[int]:
        """The latents to show: those tied to factors, else the active ones; all of them if none is active."""
        if self.is_tied:
            return list(range(min(len(self.dataset.space.factors), MAX_LATENTS)))
        deviations = self.model.represent(self.images(MEASURED_IMAGES)).std(axis=0)
        order = np.argsort(-deviations, kind="stable")[:MAX_LATENTS].tolist()
        least = INACTIVE * float(np.sqrt(self.model.vae.latent.prior_variance))
        return [latent for latent in order if deviations[latent] > least] or order

    @cached_property
    def start(self) -> NDArray[np.uint8]:
        """The image that the traversals start from."""
        with suppress(UserError):  # the other model may be missing
            if self.like is not None and self.like.start.shape == self.model.image_shape:
                return self.like.start
        images = self.images(CANDIDATES)
        return images[most_changed(self.model, self.latents, images)]


def most_changed(model: Trained, latents: Sequence[int], images: Images) -> int:
    """Return which of some images changes most when the latents are traversed."""
    codes, total = model.represent(images), np.zeros(len(images))
    for latent in latents:
        ends = codes.copy(), codes.copy()
        ends[0][:, latent], ends[1][:, latent] = model.values_of(latent)[[0, -1]]
        total += np.abs(model.decode(ends[1]) - model.decode(ends[0])).mean(axis=(1, 2, 3))
    return int(total.argmax())


@dataclass(frozen=True)
class Traversal:
    """One latent at several of its values, with the others fixed: pictures with a label above each."""

    title: str
    pictures: NDArray  # (values, height, width, channels), uint8 or floats in [0, 1]
    labels: tuple[str, ...]
    nearest: int | None = None  # the picture whose value is nearest to that of the start image


@dataclass(frozen=True)
class Traversals:
    """The image that traversals start from, its reconstruction, and a row of pictures for each latent."""

    start: Traversal
    rows: list[Traversal]


def traversals(loaded: LoadedRun, columns: int | None = COLUMNS) -> Traversals:
    """Return traversals of the supervised or active latents, grouped by factor; `columns` values each, None for all."""
    model, space, shares = loaded.model, loaded.dataset.space, _shares(loaded.run)
    tied, code = loaded.is_tied, model.represent(loaded.start[np.newaxis])[0]
    places = {factor: place for place, factor in enumerate(space.names)}

    def position(latent: int) -> tuple[int, float]:
        factor, share = shares.get(latent, ("", 0.0))
        return places.get(factor, len(places) + (not factor)), -share

    order = loaded.latents if tied else sorted(loaded.latents, key=position)
    rows = []
    for latent in order:
        values = model.values_of(latent)
        chosen = evenly_spaced(len(values), columns or len(values))
        title, labels = f"latent {latent}", _labels(loaded, latent, tied)
        if tied:
            title = space.names[latent]
        elif latent in shares:
            title = "{} {:.2f}\n".format(*shares[latent]) + title
        rows.append(
            Traversal(
                title.replace("_", " "),
                model.traverse(loaded.start, latent)[chosen],
                tuple(labels[place] for place in chosen),
                int(np.abs(values[chosen] - code[latent]).argmin()),
            )
        )
    pair = np.stack([loaded.start / 255, model.reconstruct(loaded.start[np.newaxis])[0]])
    first = 0 if loaded.shows_input else 1
    return Traversals(Traversal("start image", pair[first:], ("input", "reconstruction")[first:]), rows)


def traversals_caption(loaded: LoadedRun) -> str:
    """Describe the rows of a run's traversals."""
    run, supervision = loaded.run, loaded.run.value("supervision") if loaded.is_tied else None
    rows = {
        "None": "The active latents, each set to several of its values",
        "masked": "Each latent that is tied to a factor, at its active categories, one for each value of the factor",
    }.get(str(supervision), "Each latent that is tied to a factor, at several of its values")
    named = "" if supervision else f" {NAMED}"
    return (
        f"{rows}; the others keep the start image's values. Frames mark the values nearest to the start image's. "
        f"Model: {method_title(run)}.{named}"
    )


def evenly_spaced(count: int, wanted: int) -> NDArray[np.int64]:
    """Return up to `wanted` indices among `count`, evenly spaced, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(wanted, count)).round().astype(np.int64))


def _shares(run: Run) -> dict[int, tuple[str, float]]:
    """Return for each latent the factor that it encodes most and the share of its entropy, if known and substantial."""
    with suppress(UserError):
        known = information_of(run.folder)
        return {latent: label for latent in range(len(known.matrix)) if (label := known.label(latent))}
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
    for place, (axes, picture, label) in enumerate(zip(line, row.pictures, row.labels, strict=False)):
        axes.set_axis_on()
        draw_picture(axes, picture)
        axes.set_title(label, fontsize=SMALL_TEXT, pad=2, color=MUTED)
        if place == row.nearest:
            axes.spines[:].set(color=HIGHLIGHT, linewidth=1.4)
    line[0].set_ylabel(row.title, rotation=0, ha="right", va="center")


def draw_picture(axes: Axes, picture: NDArray) -> None:
    """Draw one image, uint8 or floats in [0, 1], greyscale or colour, in a thin frame."""
    channels = np.broadcast_to(picture, (*picture.shape[:2], 3))
    axes.imshow(channels if picture.dtype == np.uint8 else channels.clip(0, 1), interpolation="nearest")
    axes.spines[:].set(visible=True, color=FAINT, linewidth=0.4)
    axes.set(xticks=(), yticks=())


FRAME_DURATION = 160  # milliseconds


def animation(loaded: LoadedRun, size: int = 96) -> bytes:
    """Return a GIF file: the input, its reconstruction, and all latents of a model going through their values."""
    found = traversals(loaded, columns=None)
    still = [
        Traversal(label, picture[np.newaxis], ("",))
        for picture, label in zip(found.start.pictures, found.start.labels, strict=True)
    ]
    first, *others = frames([*still, *found.rows], size)
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
