"""One latent through all its values, the others kept: which latents, which values, what they mean."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lddr.errors import UserError
from lddr.report.loaded import LoadedRun
from lddr.report.style import FAINT, Axes
from lddr.report.titles import method_title
from lddr.runs.index import Run
from lddr.runs.information import LEAST_SHARE, information_of

COLUMNS = 10  # values at most: all of a Gaussian latent, every seventh of 64 categories
SHOWN = 10  # latents at most
MEASURED = 256  # images that tell which latents are in use
NAMED = f"most, with the share of the factor's entropy, if that is at least {LEAST_SHARE:.0%}".replace("%", " %")
IDLE = 0.02  # a latent whose standard deviation is below this share of the prior's is not in use


@dataclass(frozen=True)
class Traversal:
    """One latent at several of its values, the others kept: pictures with what stands above each."""

    latent: int
    title: str
    pictures: NDArray[np.float32]  # (values, height, width, channels)
    labels: tuple[str, ...]


def traversals(loaded: LoadedRun, columns: int | None = COLUMNS) -> list[Traversal]:
    """The latents that were tied to factors, or those in use, most spread first, from the image all models are shown.

    `columns` is how many values are shown, None for all.
    """
    model, space, image = loaded.model, loaded.dataset.space, loaded.images(1)[0]
    tied = model.config.supervision is not None
    named, found = _factors(loaded.run), []
    for latent in range(min(len(space.factors), SHOWN)) if tied else _by_use(loaded):
        pictures = model.traverse(image, latent)
        chosen = spread(len(pictures), columns or len(pictures))
        labels = _labels(loaded, latent, tied)
        title = space.names[latent] if tied else f"latent {latent}\n{named.get(latent, '')}".strip()
        found.append(Traversal(latent, title, pictures[chosen], tuple(labels[place] for place in chosen)))
    return found


def traversals_told(run: Run) -> str:
    """What the rows of a run's traversals are."""
    told = {
        "None": "The latents in use, most spread first, each set to several of its values",
        "masked": "Each latent that is tied to a factor, at its active categories, one for each value of the factor",
    }.get(str(run.value("supervision")), "Each latent that is tied to a factor, at several of its values")
    named = "" if run.value("supervision") else f" A latent is called after the factor of which it tells {NAMED}."
    return f"{told}; the others stay as they are for the first image. Model: {method_title(run)}.{named}"


def spread(count: int, wanted: int) -> NDArray[np.int64]:
    """Up to `wanted` places among `count`, as evenly as possible, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(wanted, count)).round().astype(np.int64))


def _by_use(loaded: LoadedRun) -> list[int]:
    """Latents by how far their codes spread, idle ones left out; all of them if all are idle."""
    spreads = loaded.model.represent(loaded.images(MEASURED)).std(axis=0)
    order = np.argsort(-spreads, kind="stable")[:SHOWN].tolist()
    limit = IDLE * float(np.sqrt(loaded.model.vae.latent.prior_variance))
    return [latent for latent in order if spreads[latent] > limit] or order


def _factors(run: Run) -> dict[int, str]:
    """What each latent knows most of, as far as that is known and worth a word."""
    with suppress(UserError):
        known = information_of(run.folder)
        labels = {latent: known.label(latent) for latent in range(len(known.matrix))}
        return {
            latent: f"{label[0].replace('_', ' ')} {100 * label[1]:.0f} %" for latent, label in labels.items() if label
        }
    return {}


def _labels(loaded: LoadedRun, latent: int, tied: bool) -> list[str]:
    """What the values of a latent stand for: a factor's own values where categories are masked, else numbers."""
    values, space = loaded.model.values_of(latent), loaded.dataset.space
    if tied and len(values) == space.sizes[latent]:
        return [space.factors[latent].label(value) for value in range(len(values))]
    return [f"{value:.2g}".replace("-", "−") for value in values]


def draw_traversal(line: Sequence[Axes], row: Traversal) -> None:
    """A row of pictures, the values above them, the name to their left."""
    for axes in line:
        axes.set_axis_off()
    for axes, picture, label in zip(line, row.pictures, row.labels, strict=False):
        axes.set_axis_on()
        draw_picture(axes, picture)
        axes.set_title(label, fontsize=7, pad=2, color="#555555")
    line[0].set_ylabel(row.title, rotation=0, ha="right", va="center")


def draw_picture(axes: Axes, picture: NDArray) -> None:
    """One image, uint8 or floats in [0, 1], grey or coloured, in a thin frame."""
    channels = np.broadcast_to(picture, (*picture.shape[:2], 3))
    axes.imshow(channels if picture.dtype == np.uint8 else channels.clip(0, 1), interpolation="nearest")
    axes.spines[:].set(visible=True, color=FAINT, linewidth=0.4)
    axes.set(xticks=(), yticks=())
