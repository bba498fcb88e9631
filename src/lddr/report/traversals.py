"""One latent through all its values, the others kept: which latents, which values, and what they stand for."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lddr.data.dataset import Dataset, Images
from lddr.report.figures import dataset_of, drawn_images, model_of
from lddr.report.inside import best_factors
from lddr.runs.index import Run

if TYPE_CHECKING:
    from lddr.trained import Trained

Floats = NDArray[np.float32]
COLUMNS = 10  # values at most: all of a Gaussian latent, every seventh of 64 categories
SHOWN = 10  # latents at most
MEASURED = 256  # images that tell which latents are in use
IDLE = 0.02  # a latent whose standard deviation is below this share of the prior's is not in use


@dataclass(frozen=True)
class Traversal:
    """One latent at several of its values, the others kept: pictures with what stands above each."""

    latent: int
    title: str
    pictures: Floats  # (values, height, width, channels)
    labels: tuple[str, ...]


def traversals_of(run: Run, columns: int | None = COLUMNS) -> list[Traversal]:
    """The traversals of a run's model, from the first of the images that every model is shown."""
    dataset, model = dataset_of(run), model_of(run)
    return traversals(model, dataset, drawn_images(dataset, 1)[0], columns, best_factors(run))


def traversals(
    model: "Trained",
    dataset: Dataset,
    image: Images,
    columns: int | None = COLUMNS,
    known: Mapping[int, str] | None = None,
) -> list[Traversal]:
    """The latents that were tied to factors, or those in use, most spread first, with the factors they are `known` for.

    `columns` is how many values are shown, None for all.
    """
    tied = model.config.supervision is not None
    order = range(min(len(dataset.space.factors), SHOWN)) if tied else _by_use(model, dataset)
    found = []
    for latent in order:
        pictures = model.traverse(image, latent)
        chosen = spread(len(pictures), columns or len(pictures))
        labels = _labels(model, dataset, latent, tied)
        title = dataset.space.names[latent] if tied else f"latent {latent}\n{(known or {}).get(latent, '')}".strip()
        found.append(Traversal(latent, title, pictures[chosen], tuple(labels[place] for place in chosen)))
    return found


def spread(count: int, wanted: int) -> NDArray[np.int64]:
    """Up to `wanted` places among `count`, as evenly as possible, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(wanted, count)).round().astype(np.int64))


def _by_use(model: "Trained", dataset: Dataset) -> list[int]:
    """Latents by how far their codes spread, idle ones left out; all of them if all are idle."""
    spreads = model.represent(drawn_images(dataset, MEASURED)).std(axis=0)
    order = np.argsort(-spreads, kind="stable")[:SHOWN].tolist()
    limit = IDLE * float(np.sqrt(model.config.latent.prior_variance))
    return [latent for latent in order if spreads[latent] > limit] or order


def _labels(model: "Trained", dataset: Dataset, latent: int, tied: bool) -> list[str]:
    """What the values of a latent stand for: a factor's own values where categories are masked, else numbers."""
    values = model.values_of(latent)
    if tied and len(values) == dataset.space.sizes[latent]:
        return [dataset.space.factors[latent].label(value) for value in range(len(values))]
    return [f"{value:.2g}".replace("-", "−") for value in values]
